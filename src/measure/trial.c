#include "measure/trial_ways.h"

#include "base/error.h"
#include "base/memory.h"
#include "measure/accuracy.h"
#include "measure/element.h"
#include "measure/reference.h"

#include <float.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void khub__found(khub_compare_layer *layer, khub_check check, const char *name, int good, const char *format,
                 ...)
{
    khub_finding *finding = &layer->findings[check];
    finding->tried++;
    if (finding->verdict == KHUB_VERDICT_NONE) finding->verdict = KHUB_VERDICT_YES;
    if (good) return;
    finding->failed++;
    if (finding->verdict == KHUB_VERDICT_NO) return; /* the first one is told */
    va_list args;
    va_start(args, format);
    vsnprintf(finding->words, sizeof(finding->words), format, args);
    va_end(args);
    snprintf(finding->name, sizeof(finding->name), "%s", name);
    finding->verdict = KHUB_VERDICT_NO;
}

static void place_free(khub__trial_place *p)
{
    if (p->own) khub__filling_give_up(p->layers, p->own);
    khub_layers_free(p->layers);
    khub_gpu_array_free(&p->weight);
    khub_array_free(&p->prepared);
}

const khub_tensor *khub__trial_prepared(const khub__trial_place *p)
{
    if (!p->own || p->own->prepared_arg < 0) return NULL;
    return p->gpu ? &p->prepared.tensor : &p->own->prepared.array.tensor;
}

static int take_prepared(khub__trial_place *p, khub_error *err)
{
    const khub_tensor *from = &p->own->prepared.array.tensor;
    if (p->own->prepared_arg < 0) return KHUB_OK;
    int rc = khub_array_new(&p->prepared, from->dtype, from->ndim, from->shape, err);
    if (rc == KHUB_OK) rc = khub_gpu_take(p->gpu, &p->prepared.tensor, from, err);
    return rc == KHUB_OK ? khub_gpu_synchronize(p->gpu, err) : rc;
}

/* What the kernel says of the layer, made for this slot. */
static int fit(khub__trial_place *p, const khub__subject *target, khub_dtype dtype, khub_error *err)
{
    khub__recipe *recipe;
    p->source = (khub__source){.uses = 1, .kernel = (khub_kernel *)(uintptr_t)target->kernel};
    int rc = khub__recipe_of(&recipe, p->layers, &p->source, target->layer, dtype, p->gpu, target->spec, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__recipe_fill(&p->own, recipe, p->slot, err);
    khub__recipe_give_up(recipe);
    return rc == KHUB_OK && p->gpu ? take_prepared(p, err) : rc;
}

/* Binds a weight where the calls are. */
static int bind(khub__trial_place *p, const char *arg, const khub_tensor *weight, khub_error *err)
{
    int rc = p->gpu ? khub_gpu_array_new(&p->weight, p->gpu, weight, err) : KHUB_OK;
    if (rc == KHUB_OK && p->gpu) rc = khub_gpu_put(p->gpu, &p->weight.tensor, weight, err);
    return rc == KHUB_OK ? khub_slot_bind(p->slot, arg, p->gpu ? &p->weight.tensor : weight, err) : rc;
}

static int place_new(khub__trial_place *p, const khub__subject *target, const khub__trial *t,
                     const khub_tensor *weight, khub_error *err)
{
    const char *bound = target->spec ? target->spec->prepare_arg : NULL;
    khub_slot_options options;
    KHUB_INIT(&options);
    options.dtype = t->c->dtype;
    p->gpu = target->gpu;
    int rc = khub_layers_new(&p->layers, err);
    if (rc == KHUB_OK)
        rc = khub_layers_add(p->layers, t->c->layer->name, t->c->layer->name, target->function, &options,
                             &p->slot, err);
    if (rc == KHUB_OK && target->axis_count)
        rc = khub_slot_slice(p->slot, target->axes, target->axis_count, err);
    if (rc == KHUB_OK && bound) rc = bind(p, bound, weight, err);
    if (rc == KHUB_OK && target->kernel) rc = fit(p, target, t->c->dtype, err);
    if (rc == KHUB_OK) p->filling = p->own ? p->own : khub_slot_filling(p->slot);
    return rc;
}

static int64_t count_of(const khub__case *c, int32_t arg)
{
    return (int64_t)(khub__case_bytes(c, arg) / (c->args[arg].dtype.bits ? c->args[arg].dtype.bits / 8 : 1));
}

static void trial_free(khub__trial *t)
{
    place_free(&t->target);
    place_free(&t->other);
    for (int32_t i = 0; i < KHUB__MAX_ARGS; i++) {
        void *const all[] = {t->in[i], t->whole[i], t->now[i], t->numbers[i], t->exact[i], t->scale[i]};
        for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
            khub__free(all[k]);
    }
    khub__free(t->scratch);
}

/* Memory for every argument, inputs filled. */
static int fill(khub__trial *t)
{
    const khub__case *c = t->c;
    int missing = 0;
    size_t most = 64;
    for (int32_t i = 0; i < c->layer->arg_count; i++) {
        size_t bytes = khub__case_bytes(c, i), doubles = (size_t)count_of(c, i) * sizeof(double);
        if (c->args[i].is_none || !c->args[i].dtype.bits) continue;
        if (bytes > most) most = bytes;
        if (c->args[i].is_output) {
            t->whole[i] = khub__malloc(bytes + 1);
            t->now[i] = khub__malloc(bytes + 1);
            t->exact[i] = khub__malloc(doubles + 1);
            t->scale[i] = khub__malloc(doubles + 1);
            missing |= !t->whole[i] || !t->now[i] || !t->exact[i] || !t->scale[i];
        } else {
            t->in[i] = khub__malloc(bytes + 1);
            t->numbers[i] = khub__malloc(doubles + 1);
            missing |= !t->in[i] || !t->numbers[i];
            if (!missing) khub__case_fill(c, i, t->in[i]);
        }
    }
    const khub_tensor *prepared = khub__trial_prepared(&t->target);
    if (prepared && (size_t)khub_tensor_bytes(prepared) > most) most = (size_t)khub_tensor_bytes(prepared);
    t->scratch = khub__malloc(most);
    return missing || !t->scratch ? -1 : 0;
}

static void compute_exact(khub__trial *t)
{
    khub__exact e = {0};
    for (int32_t i = 0; i < t->c->layer->arg_count; i++) {
        for (int64_t k = 0; t->numbers[i] && k < count_of(t->c, i); k++)
            t->numbers[i][k] = khub__element_get(t->c->args[i].dtype, t->in[i], k);
        e.in[i] = t->numbers[i];
        e.out[i] = t->exact[i];
        e.scale[i] = t->scale[i];
    }
    khub__reference(t->c, &e);
}

int khub__trial_arguments(khub__arguments *out, const khub__trial *t, const khub__trial_place *p,
                          khub__placement placement, khub_error *err)
{
    int rc = khub__arguments_new(out, t->c, t->in, placement, p->gpu, err);
    const khub_tensor *prepared = khub__trial_prepared(p);
    if (rc == KHUB_OK && prepared)
        rc = khub__arguments_prepare(out, p->own->prepared_arg, prepared, placement, err);
    return rc;
}

/* How this thread computes: the rounding mode, and whether subnormal results and operands become 0. */
static unsigned arithmetic(void)
{
    volatile float smallest = FLT_MIN, subnormal = FLT_TRUE_MIN, large = 0x1p60F;
    volatile float result = smallest / 2, product = subnormal * large;
    return (unsigned)fegetround() << 2 | (result == 0) << 1 | (product == 0);
}

int khub__trial_begin(khub__trial *t, khub__arguments *args, size_t count, khub_error *err)
{
    int rc = KHUB_OK;
    fegetenv(&t->environment);
    t->arithmetic = arithmetic();
    khub__progress *progress = t->tester->progress;
    memset(&progress->fault, 0, sizeof(progress->fault));
    khub__watch(&progress->fault, args->buffers, t->c->layer->arg_count);
    progress->beat++;
    t->tester->layer->calls++;
    for (size_t i = 0; i < count && rc == KHUB_OK; i++)
        rc = khub__arguments_put(&args[i], err);
    return rc;
}

static int is_lost(khub_gpu *gpu)
{
    return gpu && khub_gpu_synchronize(gpu, NULL) != KHUB_OK;
}

/* Also after a failure: what came before it may have gone wrong, too. */
static int take_all(khub__arguments *args, size_t count, int rc, khub_error *err)
{
    for (size_t i = 0; i < count; i++) {
        int took = khub__arguments_take(&args[i], rc == KHUB_OK ? err : NULL);
        if (rc == KHUB_OK) rc = took;
    }
    return rc;
}

/* A kernel that flushes subnormals to zero must not do so to the exact results, nor to the rest of a model.
 */
int khub__trial_end(khub__trial *t, khub__arguments *args, size_t count, int rc, khub_error *err)
{
    khub__progress *progress = t->tester->progress;
    unsigned after = arithmetic();
    fesetenv(&t->environment);
    rc = take_all(args, count, rc, err);
    if (rc != KHUB_OK && is_lost(args->gpu)) progress->lost = 1;
    progress->beat++;
    khub__watch(NULL, NULL, 0);
    if (after != t->arithmetic && progress->stage != KHUB__STAGE_OTHER)
        khub__found(t->tester->layer, KHUB_CHECK_INPUTS, t->name, 0, "left the thread %s",
                    after >> 2 != t->arithmetic >> 2 ? "rounding otherwise"
                                                     : "treating subnormal numbers otherwise");
    return rc;
}

int khub__trial_call(khub__trial *t, const khub__trial_place *p, khub__arguments *args, khub_error *err)
{
    int rc = khub__trial_begin(t, args, 1, err);
    if (rc == KHUB_OK) rc = khub_filling_call(p->slot, p->filling, args->values, t->c->layer->arg_count, err);
    return khub__trial_end(t, args, 1, rc, err);
}

static void get_outputs(const khub__trial *t, const khub__arguments *args, void *const *to)
{
    for (int32_t i = 0; i < t->c->layer->arg_count; i++)
        if (t->c->args[i].is_output && to[i]) khub__guarded_get(&args->buffers[i], to[i]);
}

static const char *arg_name(const khub__trial *t, int32_t at)
{
    return t->c->layer->args[at].name;
}

void khub__trial_look_beside(khub__trial *t, const khub__arguments *args)
{
    khub_compare_layer *layer = t->tester->layer;
    int32_t at;
    int64_t where;
    int intact = khub__arguments_are_intact(args, &at, &where);
    khub__found(layer, KHUB_CHECK_MEMORY, t->name, intact, "wrote %s of %s (byte %lld from its first)",
                intact ? "" : khub__guarded_where(&args->buffers[at], where), intact ? "" : arg_name(t, at),
                (long long)where);
    const khub_tensor *prepared = khub__trial_prepared(&t->target);
    int same = khub__arguments_are_unchanged(args, t->in, prepared, t->scratch, &at, &where);
    khub__found(layer, KHUB_CHECK_INPUTS, t->name, same, "changed %s, from element %lld on",
                same ? "" : arg_name(t, at), (long long)where);
}

void khub__trial_look_at_bits(khub__trial *t, const khub__arguments *args, khub_check check, int64_t from,
                              int64_t to, const char *how)
{
    get_outputs(t, args, t->now);
    for (int32_t i = 0; i < t->c->layer->arg_count; i++) {
        const khub__case_arg *arg = &t->c->args[i];
        if (!arg->is_output || arg->is_none) continue;
        int64_t count = count_of(t->c, i), first = 0;
        if (to > from) {
            int64_t row = count / arg->shape[0];
            first = from * row;
            count = (to - from) * row;
        }
        size_t offset = (size_t)first * (arg->dtype.bits / 8);
        const char *base = (char *)t->whole[i] + offset, *now = (char *)t->now[i] + offset;
        int64_t at = khub__first_different(arg->dtype, base, now, count);
        double was = at < 0 ? 0 : khub__element_get(arg->dtype, base, at),
               is = at < 0 ? 0 : khub__element_get(arg->dtype, now, at);
        khub__found(t->tester->layer, check, t->name, at < 0, "%s[%" PRId64 "] is %.9g %s, %.9g otherwise",
                    arg_name(t, i), first + at, is, how, was);
    }
}

static khub_compare_row *row_of(khub_compare_layer *layer, const khub__case *c)
{
    char name[KHUB__CASE_NAME], values[16] = "";
    khub__case_name(name, c);
    const char *start = strchr(name, '/') + 1;
    size_t n = strcspn(start, "/0123456789");
    memcpy(values, start, n < sizeof(values) ? n : sizeof(values) - 1);
    for (size_t i = 0; i < layer->row_count; i++)
        if (!memcmp(&layer->rows[i].dtype, &c->dtype, sizeof(c->dtype)) &&
            !strcmp(layer->rows[i].values, values))
            return &layer->rows[i];
    khub_compare_row *row =
        &layer->rows[layer->row_count < KHUB_COMPARE_ROWS ? layer->row_count++ : KHUB_COMPARE_ROWS - 1];
    row->dtype = c->dtype;
    memcpy(row->values, values, sizeof(values));
    return row;
}

static void look_at_accuracy(khub__trial *t, khub_accuracy *accuracy, void *const *got)
{
    for (int32_t i = 0; i < t->c->layer->arg_count; i++) {
        if (!t->c->args[i].is_output || t->c->args[i].is_none) continue;
        khub__results r = {t->c->args[i].dtype, got[i],  t->exact[i],   t->scale[i],
                           count_of(t->c, i),   t->name, arg_name(t, i)};
        khub__accuracy_add(accuracy, &r);
    }
}

/* NaN and infinities of the target. */
static void look_at_classes(khub__trial *t, uint64_t elements, uint64_t unlike)
{
    khub_finding *finding = &t->tester->layer->findings[KHUB_CHECK_CLASSES];
    if (!elements) return;
    khub__found(
        t->tester->layer, KHUB_CHECK_CLASSES, t->name, unlike == 0,
        "%llu of %llu elements are NaN or infinite where the exact result isn't, or the other way round",
        (unsigned long long)unlike, (unsigned long long)elements);
    finding->tried += elements - 1;
    finding->failed += unlike ? unlike - 1 : 0;
}

static int run_base(khub__trial *t, khub_error *err)
{
    khub__arguments args;
    khub_error why = {0};
    khub_compare_layer *layer = t->tester->layer;
    int rc = khub__trial_arguments(&args, t, &t->target, KHUB__MIDDLE, err);
    if (rc == KHUB_OK && t->counts) layer->cases++;
    int called = rc == KHUB_OK ? khub__trial_call(t, &t->target, &args, &why) : rc;
    if (rc == KHUB_OK && t->counts) {
        khub__found(layer, KHUB_CHECK_RETURNS, t->name, called == KHUB_OK, "an error: %s", why.message);
        layer->refused += called != KHUB_OK;
    }
    if (rc == KHUB_OK && called == KHUB_OK) {
        get_outputs(t, &args, t->whole);
        if (t->counts) khub__trial_look_beside(t, &args);
    }
    khub__arguments_free(&args);
    return rc == KHUB_OK && called != KHUB_OK ? 1 : rc;
}

static void look_at_result(khub__trial *t)
{
    uint64_t elements = 0;
    khub_compare_row *row = row_of(t->tester->layer, t->c);
    compute_exact(t);
    uint64_t unlike = row->kernel.unlike;
    look_at_accuracy(t, &row->kernel, t->whole);
    for (int32_t i = 0; i < t->c->layer->arg_count; i++)
        if (t->c->args[i].is_output) elements += (uint64_t)count_of(t->c, i);
    row->cases++;
    row->elements += elements;
    look_at_classes(t, elements, row->kernel.unlike - unlike);
}

/* Where the largest of each row is: what a classifier's answer depends on. */
static void look_at_argmax(khub_compare_row *row, const khub__trial *t, int32_t arg)
{
    const khub__case_arg *a = &t->c->args[arg];
    const khub_tensor own = khub_tensor_over(t->whole[arg], a->dtype, a->ndim, a->shape),
                      other = khub_tensor_over(t->now[arg], a->dtype, a->ndim, a->shape);
    khub_comparison comparison = {0};
    if (khub_comparison_add(&comparison, &own, &other, NULL) != KHUB_OK) return;
    row->rows += comparison.rows;
    row->argmax_same += comparison.argmax_same;
}

/* The other implementation's result, and what it shares with the target's. */
static int run_other(khub__trial *t, khub_error *err)
{
    khub__arguments args;
    khub_error why = {0};
    khub_compare_row *row = row_of(t->tester->layer, t->c);
    khub_finding *finding = &t->tester->layer->findings[KHUB_CHECK_IDENTICAL];
    int rc = khub__trial_arguments(&args, t, &t->other, KHUB__MIDDLE, err);
    if (rc == KHUB_OK && khub__trial_call(t, &t->other, &args, &why) == KHUB_OK) {
        get_outputs(t, &args, t->now);
        look_at_accuracy(t, &row->other, t->now);
        khub__trial_look_at_bits(t, &args, KHUB_CHECK_IDENTICAL, 0, 0, "in the other implementation");
        for (int32_t i = 0; i < t->c->layer->arg_count; i++) { /* looks are counted by element here */
            if (!t->c->args[i].is_output || t->c->args[i].is_none) continue;
            int64_t count = count_of(t->c, i),
                    same = khub__count_same(t->c->args[i].dtype, t->whole[i], t->now[i], count);
            row->identical += (uint64_t)same;
            look_at_argmax(row, t, i);
            finding->tried += (uint64_t)count - 1;
            finding->failed += (uint64_t)(count - same) - (count > same);
        }
    }
    khub__arguments_free(&args);
    return rc;
}

/* A pass over all numbers looks at the numbers, and at its many rows in batches. */
static int is_wanted(const khub__trial *t, khub__stage stage)
{
    const khub__progress *progress = t->tester->progress;
    if (stage < progress->from || progress->left_out >> stage & 1) return 0;
    if (stage == KHUB__STAGE_THREADS && t->target.gpu) return 0; /* a device is one thread's at a time */
    return t->c->values != KHUB__BITS || stage == KHUB__STAGE_BATCHES;
}

static int run_stages(khub__trial *t, khub_error *err)
{
    khub__progress *progress = t->tester->progress;
    progress->stage = KHUB__STAGE_BASE;
    int rc = run_base(t, err);
    if (rc != KHUB_OK || progress->lost)
        return rc > 0 ? KHUB_OK : rc; /* it raised an error: there is nothing to compare with */
    if (t->counts) look_at_result(t);
    progress->stage = KHUB__STAGE_OTHER;
    if (progress->from <= KHUB__STAGE_OTHER && t->other.filling &&
        !(progress->left_out >> KHUB__STAGE_OTHER & 1))
        rc = run_other(t, err);
    for (int s = KHUB__STAGE_END; s < KHUB__STAGES && rc == KHUB_OK && !progress->lost; s++) {
        progress->stage = (khub__stage)s;
        if (is_wanted(t, (khub__stage)s)) rc = khub__trial_ways[s](t, err);
    }
    return rc;
}

/* The argument that one of the two kernels prepares, as compact memory; data NULL: none does. */
static int make_weight(const khub__trial *t, khub_tensor *weight, khub_error *err)
{
    const khub_layer_spec *spec = t->tester->target.spec;
    if (!spec || !spec->prepare_arg) spec = t->tester->other.spec;
    int32_t at = spec && spec->prepare_arg ? khub__layer_position(t->c->layer, spec->prepare_arg) : -1;
    if (at < 0) return KHUB_OK;
    const khub__case_arg *arg = &t->c->args[at];
    void *memory = khub__malloc(khub__case_bytes(t->c, at) + 1);
    if (!memory) return khub__fail_memory(err, "trying a case");
    khub__case_fill(t->c, at, memory);
    *weight = khub_tensor_over(memory, arg->dtype, arg->ndim, arg->shape);
    return KHUB_OK;
}

/* The device was lost before there was a call. */
static void give_up(const khub__trial *t, const khub_error *why)
{
    khub__found(t->tester->layer, KHUB_CHECK_RETURNS, t->name, 0, "an error before the call: %s",
                why->message);
    t->tester->progress->lost = 1;
}

int khub__try(khub__tester *tester, const khub__case *c, khub_error *err)
{
    khub__trial t = {.tester = tester, .c = c, .counts = tester->progress->from <= KHUB__STAGE_BASE};
    khub_tensor weight = {0};
    khub__case_name(t.name, c);
    memcpy(tester->progress->name, t.name, sizeof(t.name));
    tester->progress->stage = KHUB__STAGE_BASE;
    int rc = make_weight(&t, &weight, err);
    tester->progress->beat++;
    if (rc == KHUB_OK) rc = place_new(&t.target, &tester->target, &t, &weight, err);
    tester->progress->beat++;
    if (rc == KHUB_OK && tester->other.name && c->dtype.bits != 0)
        rc = place_new(&t.other, &tester->other, &t, &weight, err);
    if (rc == KHUB_OK && fill(&t) != 0) rc = khub__fail_memory(err, "trying a case");
    if (rc == KHUB_OK)
        rc = run_stages(&t, err);
    else if (is_lost(t.target.gpu))
        give_up(&t, err);
    trial_free(&t);
    khub__free(weight.data);
    return tester->progress->lost ? KHUB_E_CANCELED : rc;
}
