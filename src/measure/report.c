#include "measure/report.h"

#include "base/error.h"
#include "measure/accuracy.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_DEATHS = 8 }; /* in one layer */

/* "read behind the end of x (byte 528 from its first)" */
static void fault_words(char *to, size_t size, const khub_compare_report *report)
{
    const khub__fault *fault = &report->progress.fault;
    const char *arg = khub_layer_arg(report->layers[report->progress.layer].serves, (size_t)fault->buffer);
    const char *how = fault->is_write < 0 ? "touched" : fault->is_write ? "wrote" : "read";
    if (fault->inside)
        snprintf(to, size, "wrote to %s (byte %lld from its first)", arg ? arg : "?", (long long)fault->at);
    else
        snprintf(to, size, "%s %s of %s (byte %lld from its first)", how,
                 fault->at < 0 ? "before the start" : "behind the end", arg ? arg : "?",
                 (long long)fault->at);
}

static const char *stage_words(khub__stage stage)
{
    static const char *const words[KHUB__STAGES] = {
        [KHUB__STAGE_OTHER] = " in the other implementation",
        [KHUB__STAGE_END] = " with memory that ends where its tensors do",
        [KHUB__STAGE_START] = " with memory that begins where its tensors do",
        [KHUB__STAGE_SHIFTED] = " one element behind 64-byte alignment",
        [KHUB__STAGE_STRIDED] = " with rows that lie apart",
        [KHUB__STAGE_IN_PLACE] = " in the memory of the input",
        [KHUB__STAGE_REPEATS] = " when called again",
        [KHUB__STAGE_SLICES] = " on a slice",
        [KHUB__STAGE_BATCHES] = " on some rows of the batch",
        [KHUB__STAGE_THREADS] = " on several threads"};
    return words[stage] ? words[stage] : "";
}

/* Where the next child goes on. */
static void move_on(khub_compare_report *report, const khub__end *end)
{
    khub__progress *progress = &report->progress;
    int gives_up = end->how == KHUB__HUNG || ++report->deaths >= MAX_DEATHS;
    progress->beat = 0;
    if (gives_up) {
        progress->layer++;
        progress->at = 0;
        progress->from = KHUB__STAGE_LOAD;
        progress->left_out = 0;
        report->deaths = 0;
    } else if (progress->stage <= KHUB__STAGE_BASE) {
        progress->at++;
        progress->from = KHUB__STAGE_LOAD;
    } else {
        progress->left_out |= 1u << progress->stage;
        progress->from = (khub__stage)(progress->stage + 1);
    }
}

int khub__report_ended(khub_compare_report *report, const khub__end *end, khub_error *err)
{
    khub__progress *progress = &report->progress;
    char how[100], fault[200];
    khub__end_words(end, how);
    if (!report->listed || progress->layer >= report->count || !progress->name[0])
        return khub__fail(err, KHUB_E_LOAD, "loading the kernel ended the process: %s", how);
    khub_compare_layer *layer = &report->layers[progress->layer];
    const char *when = stage_words(progress->stage);
    if (progress->stage == KHUB__STAGE_OTHER) {
        khub__found(layer, KHUB_CHECK_IDENTICAL, progress->name, 0, "the process ended%s: %s", when, how);
    } else if (progress->fault.hit) {
        fault_words(fault, sizeof(fault), report);
        khub__found(layer, progress->fault.inside ? KHUB_CHECK_INPUTS : KHUB_CHECK_MEMORY, progress->name, 0,
                    "%s%s", fault, when);
    } else {
        khub__found(layer, KHUB_CHECK_RETURNS, progress->name, 0, "the process ended%s: %s", when, how);
        layer->broken = 1;
    }
    move_on(report, end);
    return KHUB_OK;
}

void khub__report_lost(khub_compare_report *report)
{
    const khub__end end = {KHUB__RETURNED, 0};
    report->layers[report->progress.layer].broken = 1;
    report->progress.lost = 0;
    move_on(report, &end);
}

static khub_verdict all_of(const khub_compare_layer *layer, const khub_check *checks, size_t count)
{
    khub_verdict verdict = KHUB_VERDICT_NONE;
    for (size_t i = 0; i < count; i++)
        if (layer->findings[checks[i]].verdict > verdict) verdict = layer->findings[checks[i]].verdict;
    return verdict;
}

/* The classes where nothing on the way leaves the range of the dtype. */
static int is_ordinary(const khub_compare_row *row)
{
    static const char *const names[] = {"normal", "zeros", "ties", "bits"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(row->values, names[i])) return 1;
    return 0;
}

static void judge_tolerance(khub_compare_layer *layer, const khub_compare_tolerance *tolerance)
{
    char dtype[32];
    for (size_t i = 0; i < layer->row_count; i++) {
        const khub_compare_row *row = &layer->rows[i];
        if (strcmp(khub_dtype_name(row->dtype, dtype), tolerance->dtype) != 0 || !is_ordinary(row)) continue;
        const khub_accuracy *a = &row->kernel;
        double rms = khub__accuracy_rms(a);
        if (tolerance->ulp >= 0)
            khub__found(layer, KHUB_CHECK_TOLERANCE, a->name, a->worst <= tolerance->ulp,
                        "%s[%llu] is %.9g, %.4g ULP from %.9g: %g are promised", a->arg,
                        (unsigned long long)a->index, a->got, a->worst, a->exact, tolerance->ulp);
        else
            khub__found(layer, KHUB_CHECK_TOLERANCE, a->name, rms <= tolerance->relative,
                        "the results of \"%s\" are %.3g of their size off (root mean square): %g is promised",
                        row->values, rms, tolerance->relative);
        khub__found(layer, KHUB_CHECK_TOLERANCE, a->name, a->unlike == 0,
                    "%llu elements of \"%s\" are NaN or infinite and shouldn't be, or the other way round",
                    (unsigned long long)a->unlike, row->values);
    }
}

void khub__report_judge(khub_compare_layer *layer)
{
    static const khub_check bits[] = {KHUB_CHECK_REPEATS, KHUB_CHECK_PLACES, KHUB_CHECK_SLICES,
                                      KHUB_CHECK_THREADS, KHUB_CHECK_BATCHES};
    static const khub_check never[] = {KHUB_CHECK_MEMORY, KHUB_CHECK_INPUTS, KHUB_CHECK_TOLERANCE};
    for (size_t i = 0; i < layer->row_count; i++)
        if (is_ordinary(&layer->rows[i])) khub__accuracy_merge(&layer->worst, &layer->rows[i].kernel);
    for (size_t i = 0; i < layer->tolerance_count; i++)
        judge_tolerance(layer, &layer->tolerances[i]);
    layer->is_deterministic = all_of(layer, bits, sizeof(bits) / sizeof(*bits));
    if (all_of(layer, never, sizeof(never) / sizeof(*never)) == KHUB_VERDICT_NO) layer->broken = 1;
    if (layer->deterministic && layer->is_deterministic == KHUB_VERDICT_NO) layer->broken = 1;
    if (layer->cases && layer->refused == layer->cases && !layer->error[0])
        snprintf(layer->error, sizeof(layer->error), "no call succeeded: %s",
                 layer->findings[KHUB_CHECK_RETURNS].words);
    khub__accuracy_finish(&layer->worst);
    for (size_t i = 0; i < layer->row_count; i++) {
        khub__accuracy_finish(&layer->rows[i].kernel);
        khub__accuracy_finish(&layer->rows[i].other);
    }
}

const char *khub_check_name(khub_check check)
{
    static const char *const names[KHUB_CHECKS] = {"returns", "memory",    "inputs",   "repeats",
                                                   "places",  "slices",    "threads",  "batches",
                                                   "classes", "tolerance", "identical"};
    return (unsigned)check < KHUB_CHECKS ? names[check] : "?";
}

size_t khub_compare_count(const khub_compare_report *report)
{
    return report->count;
}

const khub_compare_layer *khub_compare_at(const khub_compare_report *report, size_t i)
{
    return i < report->count ? &report->layers[i] : NULL;
}

void khub_compare_free(khub_compare_report *report)
{
    khub__shared_free(report, sizeof(*report));
}
