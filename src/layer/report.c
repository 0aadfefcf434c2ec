#include "layer/report.h"

#include "base/error.h"
#include "base/memory.h"

/* The strings of a line, for what treats them all alike. */
enum { STRINGS = 6 };
static void strings_of(khub_slot_report *line, const char ***out)
{
    out[0] = &line->path, out[1] = &line->layer, out[2] = &line->kernel;
    out[3] = &line->variant, out[4] = &line->function, out[5] = &line->reason;
}

khub_report *khub__report_new(size_t count)
{
    khub_report *report = khub__calloc(1, sizeof(*report));
    if (!report) return NULL;
    report->slots = khub__calloc(count, sizeof(*report->slots));
    if (report->slots) return report;
    khub__free(report);
    return NULL;
}

int khub__report_add(khub_report *report, const khub_slot_report *line, khub_error *err)
{
    khub_slot_report *own = &report->slots[report->count++]; /* counted first: freed whatever happens */
    *own = *line;
    const char **copies[STRINGS];
    int failed = 0;
    strings_of(own, copies);
    for (int i = 0; i < STRINGS; i++) {
        const char *text = *copies[i];
        *copies[i] = khub__strdup(text);
        if (text && !*copies[i]) failed = 1;
    }
    report->filled += own->kernel != NULL;
    return failed ? khub__fail_memory(err, "writing a report") : KHUB_OK;
}

void khub_report_free(khub_report *report)
{
    if (!report) return;
    for (size_t i = 0; i < report->count; i++) {
        const char **owned[STRINGS];
        strings_of(&report->slots[i], owned);
        for (int s = 0; s < STRINGS; s++)
            khub__free((void *)(uintptr_t)*owned[s]);
    }
    khub__free(report->slots);
    khub__free(report);
}

size_t khub_report_count(const khub_report *report)
{
    return report->count;
}

size_t khub_report_filled(const khub_report *report)
{
    return report->filled;
}

const khub_slot_report *khub_report_at(const khub_report *report, size_t i)
{
    return i < report->count ? &report->slots[i] : NULL;
}
