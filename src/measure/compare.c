/* khub_compare: what is tried, with which cases, in which process. */
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "kernel/kernel.h"
#include "layer/shapes.h"
#include "measure/device.h"
#include "measure/report.h"
#include "measure/save.h"
#include "ops/whose.h"
#include "torch/torch.h"

#include <stdio.h>

/* All that a child needs; private to each process but for the report. */
typedef struct job {
    khub_compare_report *report;
    khub_compare_options options;
    const char *wanted, *other; /* as the caller named them; wanted NULL: `function` */
    khub__subject function;
    khub_kernel *kernel, *other_kernel;
    khub_gpu *gpu, *other_gpu; /* that these two are called on; NULL: on the host */
    khub_get_options get;
    khub_layer_spec inline_spec; /* of options.layer */
    khub__threads *threads;
} job;

enum { THREADS = 4, TIMEOUT_MS = 20000, NAME = 512 };

/* "NAME:WHAT" in two; what is empty when there is no colon behind the last slash. */
static int split(char name[NAME], const char **what, const char *text, khub_error *err)
{
    const char *slash = strrchr(text, '/'), *colon = strrchr(slash ? slash : text, ':');
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    if (n >= NAME)
        return khub__fail(err, KHUB_E_INVAL, "the name of a kernel has %zu bytes, at most %d are taken", n,
                          NAME - 1);
    memcpy(name, text, n);
    name[n] = 0;
    *what = colon ? colon + 1 : "";
    return KHUB_OK;
}

/* The kernel, and the device that its build is for. */
static int get(khub_kernel **out, khub_gpu **gpu, const job *j, const char *text, khub_error *err)
{
    char name[NAME];
    const char *what = "";
    int rc = split(name, &what, text, err);
    return rc == KHUB_OK ? khub__get_with_device(out, gpu, name, &j->get, err) : rc;
}

/* The layer of the report that `spec` describes. */
static const char *standard_name(const job *j, const char *layer)
{
    const char *whose = khub__standard_whose(j->options.standard, layer);
    return strcmp(whose, "khub") ? whose : "standard";
}

static int add_layer(job *j, const khub_kernel *kernel, const khub_layer_spec *spec, khub_error *err)
{
    khub_compare_report *r = j->report;
    if (r->count == KHUB__COMPARE_LAYERS)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: serves more than %d layers", khub_kernel_name(kernel),
                          KHUB__COMPARE_LAYERS);
    khub_compare_layer *layer = &r->layers[r->count++];
    snprintf(layer->kernel, sizeof(layer->kernel), "%s", khub_kernel_name(kernel));
    snprintf(layer->variant, sizeof(layer->variant), "%s", khub_kernel_variant(kernel));
    const char *serves = khub__layer_served(spec);
    snprintf(layer->layer, sizeof(layer->layer), "%s", spec->layer);
    snprintf(layer->serves, sizeof(layer->serves), "%s", serves);
    snprintf(layer->function, sizeof(layer->function), "%s", spec->function);
    snprintf(layer->other, sizeof(layer->other), "%s", j->other ? j->other : standard_name(j, serves));
    layer->deterministic = spec->deterministic;
    for (size_t i = 0; i < spec->tolerance_count && i < KHUB_COMPARE_TOLERANCES; i++) {
        khub_compare_tolerance *t = &layer->tolerances[layer->tolerance_count++];
        snprintf(t->dtype, sizeof(t->dtype), "%s", spec->tolerances[i].dtype);
        t->ulp = spec->tolerances[i].ulp;
        t->relative = spec->tolerances[i].relative;
    }
    if (!khub__layer_find(serves))
        snprintf(layer->error, sizeof(layer->error), "there is no layer \"%s\"; docs/layers.md lists them",
                 serves);
    return KHUB_OK;
}

/* What is after the colon, or all the kernel has. */
static int list(job *j, khub_error *err)
{
    char name[NAME];
    const char *what = "";
    const khub_layer_spec *spec;
    const khub__layers *all;
    int rc = split(name, &what, j->wanted, err);
    j->report->count = 0; /* of a child that ended before it came to its list's end */
    if (rc != KHUB_OK) return rc;
    if (j->options.layer) return add_layer(j, j->kernel, &j->inline_spec, err);
    if (what[0]) {
        rc = khub_kernel_layer(&spec, j->kernel, what, err);
        return rc == KHUB_OK ? add_layer(j, j->kernel, spec, err) : rc;
    }
    rc = khub__kernel_layers(&all, j->kernel, err);
    if (rc == KHUB_OK && !all->count)
        return khub__fail(err, KHUB_E_NOTFOUND,
                          "%s: has no layers.json: a function of it is compared as %s:FUNCTION with the "
                          "layer that it serves",
                          j->wanted, j->wanted);
    for (size_t i = 0; rc == KHUB_OK && i < all->count; i++)
        rc = add_layer(j, j->kernel, all->specs[i], err);
    return rc;
}

static int open_all(job *j, khub_error *err)
{
    int rc = KHUB_OK;
    if (j->wanted) rc = get(&j->kernel, &j->gpu, j, j->wanted, err);
    if (rc == KHUB_OK && j->other) rc = get(&j->other_kernel, &j->other_gpu, j, j->other, err);
    if (rc == KHUB_OK && !j->report->listed && j->wanted) rc = list(j, err);
    if (rc == KHUB_OK)
        rc = khub__threads_new(&j->threads, j->options.threads ? j->options.threads : THREADS, err);
    khub__torch_set_threads(1); /* a call is one thread's, whoever's function it is */
    if (rc == KHUB_OK) j->report->listed = 1;
    return rc;
}

static int find_standard(khub__subject *out, const job *j, const khub__layer_def *layer, khub_error *err)
{
    khub__standard standard;
    int rc =
        khub__standard_of(&standard, khub__whose_with(j->options.standard, j->options.get), layer->name, err);
    out->function = standard.function;
    out->name = standard_name(j, layer->name);
    return rc;
}

/* What the layer's function is compared with. */
static int find_other(khub__subject *out, const job *j, const khub__layer_def *layer, khub_error *err)
{
    char name[NAME];
    const char *what = "";
    *out = (khub__subject){.name = "standard", .layer = layer};
    if (!j->other) return find_standard(out, j, layer, err);
    int rc = split(name, &what, j->other, err);
    out->name = j->other;
    out->kernel = j->other_kernel;
    out->gpu = j->other_gpu;
    return rc == KHUB_OK ? khub_kernel_layer(&out->spec, j->other_kernel, what[0] ? what : layer->name, err)
                         : rc;
}

static int find_target(khub__subject *out, const job *j, const khub_compare_layer *layer, khub_error *err)
{
    *out = j->function;
    if (!j->wanted) return KHUB_OK; /* a function of the program's own */
    *out =
        (khub__subject){.name = layer->kernel, .layer = khub__layer_find(layer->serves), .kernel = j->kernel};
    out->gpu = j->gpu;
    out->spec = &j->inline_spec;
    return j->options.layer ? KHUB_OK : khub_kernel_layer(&out->spec, j->kernel, layer->layer, err);
}

static int serves(const khub_layer_spec *spec, const char *dtype)
{
    for (size_t i = 0; spec && spec->dtypes && spec->dtypes[i]; i++)
        if (!strcmp(spec->dtypes[i], dtype)) return 1;
    return !spec || !spec->dtypes;
}

/* 1: its "shapes" allow the case. */
static int takes(const khub_layer_spec *spec, const khub__case *c)
{
    khub_slot_shape shapes[KHUB__MAX_ARGS];
    khub_slot slot = {.layer = c->layer, .shapes = shapes};
    for (int32_t i = 0; i < c->layer->arg_count; i++)
        if (!c->args[i].is_none && !khub__arg_is_number(c->args[i].kind))
            shapes[slot.shape_count++] =
                (khub_slot_shape){c->layer->args[i].name, c->args[i].ndim, c->args[i].shape};
    return !spec || !spec->shape_count || khub__shapes_fit(spec, "", &slot, NULL) != KHUB_E_UNSUPPORTED;
}

/* The cases of one dtype, from where the process before this one ended. */
static int try_dtype(const job *j, khub__tester *tester, const char *dtype, size_t *number, khub_error *err)
{
    khub_dtype d;
    khub__case c;
    int rc = khub_dtype_parse(&d, dtype, err);
    size_t count = rc == KHUB_OK ? khub__case_count(tester->target.layer, d) : 0;
    for (size_t i = 0; i < count && rc == KHUB_OK; i++, ++*number) {
        if (*number < tester->progress->at) continue;
        tester->progress->at = *number;
        khub__case_at(&c, tester->target.layer, d, i, j->options.seed);
        if (takes(tester->target.spec, &c)) rc = khub__try(tester, &c, err);
        tester->progress->from = KHUB__STAGE_LOAD;
    }
    return rc;
}

static int try_sweep(const job *j, khub__tester *tester, khub_error *err)
{
    static const char *const dtypes[] = {"float32", "bfloat16"}; /* that layers have */
    size_t number = 0;
    int rc = KHUB_OK, tried = 0;
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes) && rc == KHUB_OK; i++) {
        if (!serves(tester->target.spec, dtypes[i])) continue;
        if (j->options.dtype && strcmp(j->options.dtype, dtypes[i]) != 0) continue;
        rc = try_dtype(j, tester, dtypes[i], &number, err);
        tried = 1;
    }
    if (rc == KHUB_OK && !tried)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s is not served in %s", tester->target.layer->name,
                          j->options.dtype ? j->options.dtype : "float32 or bfloat16");
    return rc;
}

static int try_one(const job *j, khub__tester *tester, khub_error *err)
{
    khub__case c;
    int rc = khub__case_parse(&c, tester->target.layer, j->options.case_name, j->options.seed, err);
    return rc == KHUB_OK && tester->progress->at == 0 ? khub__try(tester, &c, err) : rc;
}

/* Errors are the layer's: the other layers are tried all the same. */
static void try_layer(const job *j, khub_compare_layer *layer)
{
    khub_compare_report *report = j->report;
    khub__tester tester = {.layer = layer, .progress = &report->progress, .threads = j->threads};
    khub_error why = {0};
    khub__log(KHUB_LOG_DEBUG, "compare", layer->kernel, "%s", layer->layer);
    int rc = find_target(&tester.target, j, layer, &why);
    if (rc == KHUB_OK) rc = find_other(&tester.other, j, tester.target.layer, &why);
    if (rc == KHUB_OK) rc = j->options.case_name ? try_one(j, &tester, &why) : try_sweep(j, &tester, &why);
    if (rc != KHUB_OK && !report->progress.lost)
        snprintf(layer->error, sizeof(layer->error), "%s", why.message);
}

static void work(void *user)
{
    job *j = user;
    khub_compare_report *report = j->report;
    khub__progress *progress = &report->progress;
    report->status = open_all(j, &report->why);
    while (report->status == KHUB_OK && progress->layer < report->count) {
        khub_compare_layer *layer = &report->layers[progress->layer];
        if (!layer->error[0]) try_layer(j, layer);
        if (progress->lost) return;
        progress->layer++;
        progress->at = 0;
        progress->from = KHUB__STAGE_LOAD;
        progress->left_out = 0;
        report->deaths = 0;
    }
}

/* In children, one after the other as long as they end early; or here. */
static int run(job *j, khub_error *err)
{
    khub_compare_report *report = j->report;
    uint32_t limit = j->options.timeout_ms ? j->options.timeout_ms : TIMEOUT_MS;
    if (j->options.same_process) {
        work(j);
        return report->progress.lost ? khub_gpu_synchronize(j->gpu, err) : KHUB_OK;
    }
    for (;;) {
        khub__end end;
        int rc = khub__contain(&end, work, j, &report->progress.beat, limit, err);
        if (rc != KHUB_OK || (end.how == KHUB__RETURNED && !report->progress.lost)) return rc;
        if (end.how == KHUB__RETURNED)
            khub__report_lost(report);
        else
            rc = khub__report_ended(report, &end, err);
        if (rc != KHUB_OK || report->progress.layer >= report->count) return rc;
    }
}

/* The case that is worth looking at: of the first finding that breaks something, else the worst. */
static const char *telling_case(const khub_compare_layer *layer)
{
    for (int i = 0; i < KHUB_CHECK_IDENTICAL; i++)
        if (layer->findings[i].verdict == KHUB_VERDICT_NO) return layer->findings[i].name;
    return layer->worst.name;
}

static int finish(const job *j, khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t i = 0; i < j->report->count; i++)
        khub__report_judge(&j->report->layers[i]);
    for (size_t i = 0; i < j->report->count && j->options.save && rc == KHUB_OK; i++) {
        const khub_compare_layer *layer = &j->report->layers[i];
        const char *name = telling_case(layer);
        khub__case c;
        if (!name[0]) continue;
        rc = khub__case_parse(&c, khub__layer_find(layer->serves), name, j->options.seed, err);
        if (rc == KHUB_OK) rc = khub__save_case(j->options.save, &c, err);
    }
    return rc;
}

static int compare(khub_compare_report **out, job *j, khub_error *err)
{
    int rc = run(j, err);
    if (rc == KHUB_OK && j->report->status != KHUB_OK)
        rc = khub__fail(err, j->report->status, "%s", j->report->why.message);
    khub__threads_free(j->threads);
    khub_gpu_close(j->gpu);
    khub_gpu_close(j->other_gpu);
    khub_kernel_close(j->kernel);
    khub_kernel_close(j->other_kernel);
    if (rc == KHUB_OK) rc = finish(j, err);
    if (rc == KHUB_OK)
        *out = j->report;
    else
        khub_compare_free(j->report);
    return rc;
}

static int start(job *j, const khub_compare_options *options, khub_error *err)
{
    khub_dtype dtype;
    int rc = khub__options(&j->options, sizeof(j->options), options, "khub_compare_options", err);
    if (rc == KHUB_OK && j->options.dtype) rc = khub_dtype_parse(&dtype, j->options.dtype, err);
    if (rc == KHUB_OK) rc = khub__get_on(&j->get, j->options.get, j->options.device, err);
    if (rc != KHUB_OK) return rc;
    j->report = khub__shared_new(sizeof(*j->report));
    return j->report ? KHUB_OK : khub__fail_memory(err, "comparing");
}

/* The layer that a function serves by the caller's word, and the case that it is to be tried with. */
static int check_layer(const char *layer, const khub_compare_options *options, khub_error *err)
{
    const khub__layer_def *def = khub__layer_find(layer);
    khub__case c;
    if (!def)
        return khub__fail(err, KHUB_E_INVAL, "there is no layer \"%s\"; docs/layers.md lists them", layer);
    return options->case_name ? khub__case_parse(&c, def, options->case_name, 0, err) : KHUB_OK;
}

/* The function behind the kernel's colon serves options.layer. */
static int take_layer(job *j, khub_error *err)
{
    char name[NAME];
    khub_layer_spec *spec = &j->inline_spec;
    int rc = check_layer(j->options.layer, &j->options, err);
    spec->layer = j->options.layer;
    spec->args = j->options.args;
    while (spec->args && spec->args[spec->arg_count])
        spec->arg_count++;
    return rc == KHUB_OK ? split(name, &spec->function, j->wanted, err) : rc;
}

int khub_compare(khub_compare_report **out, const char *kernel, const char *other,
                 const khub_compare_options *options, khub_error *err)
{
    job j = {.wanted = kernel, .other = other};
    int rc = khub__given("khub_compare", out && kernel, err);
    if (out) *out = NULL;
    if (rc == KHUB_OK) rc = start(&j, options, err);
    if (rc != KHUB_OK) return rc;
    if (j.options.layer) rc = take_layer(&j, err);
    if (rc == KHUB_OK) return compare(out, &j, err);
    khub_compare_free(j.report);
    return rc;
}

int khub_compare_function(khub_compare_report **out, const char *layer, khub_function function,
                          const khub_slot_axis *axes, size_t axis_count, const khub_compare_options *options,
                          khub_error *err)
{
    job j = {0};
    int rc = khub__given("khub_compare_function", out && layer && function.call, err);
    if (out) *out = NULL;
    if (rc == KHUB_OK) rc = start(&j, options, err);
    if (rc != KHUB_OK) return rc;
    rc = check_layer(layer, &j.options, err);
    if (rc == KHUB_OK && j.options.device)
        rc = khub__fail(err, KHUB_E_INVAL, "khub_compare_function: a function is called on the host alone");
    if (rc != KHUB_OK) {
        khub_compare_free(j.report);
        return rc;
    }
    j.function = (khub__subject){.name = "function",
                                 .layer = khub__layer_find(layer),
                                 .function = function,
                                 .axes = axes,
                                 .axis_count = axis_count};
    khub_compare_layer *only = &j.report->layers[0];
    snprintf(only->layer, sizeof(only->layer), "%s", layer);
    snprintf(only->serves, sizeof(only->serves), "%s", layer);
    snprintf(only->other, sizeof(only->other), "%s", standard_name(&j, layer));
    j.report->count = 1;
    return compare(out, &j, err);
}
