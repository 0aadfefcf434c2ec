#include "measure/calls.h"

#include "base/error.h"
#include "base/memory.h"
#include "measure/cases.h"
#include "measure/fill.h"
#include "tensor/array.h"

#include <stdio.h>

enum { MOST_SETS = 1024 };

/* Whether an argument stays the same from call to call in a model. */
static int is_weight(const char *name)
{
    return !strcmp(name, "weight") || !strcmp(name, "bias");
}

static void fill_lengths(const khub_tensor *lengths, int64_t keys)
{
    int32_t *to = lengths->data;
    for (int64_t i = 0; i < khub_tensor_count(lengths); i++)
        to[i] = (int32_t)keys;
}

/* The array, or its like on the device. */
static int give(khub__call_set *set, int32_t i, khub_gpu *gpu, khub_error *err)
{
    const khub_tensor *here = &set->arrays[i].tensor;
    khub_gpu_array *there = &set->there[i];
    set->args[i] = khub_arg_tensor(gpu ? &there->tensor : here);
    int rc = gpu ? khub_gpu_array_new(there, gpu, here, err) : KHUB_OK;
    if (rc == KHUB_OK && gpu) rc = khub_gpu_put(gpu, &there->tensor, here, err);
    if (rc == KHUB_OK && gpu) rc = khub_gpu_synchronize(gpu, err);
    if (gpu) khub_array_free(&set->arrays[i]);
    return rc;
}

static int make_args(khub__call_set *set, const khub__case *c, khub_gpu *gpu, khub_error *err)
{
    for (int32_t i = 0; i < c->layer->arg_count; i++) {
        const khub__case_arg *arg = &c->args[i];
        set->args[i] = khub_arg_none();
        if (arg->is_none) continue;
        if (khub__arg_is_number(arg->kind)) {
            set->args[i] = arg->kind == KHUB__ARG_FLOAT  ? khub_arg_float(arg->number)
                           : arg->kind == KHUB__ARG_BOOL ? khub_arg_bool(arg->number != 0)
                                                         : khub_arg_int((int64_t)arg->number);
            continue;
        }
        khub_array *array = &set->arrays[i];
        int rc = khub__array_make(array, arg->dtype, arg->ndim, arg->shape, NULL, err);
        if (rc != KHUB_OK) return rc;
        if (arg->kind == KHUB__ARG_MAYBE_LENGTHS)
            fill_lengths(&array->tensor, c->extents[2]);
        else if (khub__arg_is_index(arg->kind))
            khub__case_fill(c, i, array->tensor.data);
        else
            khub__fill(&array->tensor);
        rc = give(set, i, gpu, err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

static int add_slot(khub_slot **slot, khub_layers *layers, const khub__call_set *set, const khub__case *c,
                    khub__whose whose, size_t number, khub_error *err)
{
    char path[32];
    khub__standard standard;
    const char *layer = c->layer->name;
    khub_slot_options options;
    khub_slot_shape shapes[KHUB__MAX_ARGS];
    KHUB_INIT(&options);
    options.dtype = c->dtype;
    options.shapes = shapes;
    for (int32_t i = 0; i < c->layer->arg_count; i++)
        if (khub_value_tensor(&set->args[i]))
            shapes[options.shape_count++] =
                (khub_slot_shape){c->layer->args[i].name, c->args[i].ndim, c->args[i].shape};
    snprintf(path, sizeof(path), "%zu", number);
    int rc = khub__standard_of(&standard, whose, layer, err);
    if (rc == KHUB_OK) khub__torch_leave_result(&standard.function);
    if (rc == KHUB_OK) rc = khub_layers_add(layers, path, layer, standard.function, &options, slot, err);
    if (rc == KHUB_OK && standard.axis_count)
        rc = khub_slot_slice(*slot, standard.axes, standard.axis_count, err);
    for (int32_t i = 0; i < c->layer->arg_count && rc == KHUB_OK; i++)
        if (is_weight(c->layer->args[i].name) && khub_value_tensor(&set->args[i]))
            rc = khub_slot_bind(*slot, c->layer->args[i].name, khub_value_tensor(&set->args[i]), err);
    return rc;
}

/* Puts the kernel into the slots. */
static int fill_slots(khub__timed_calls *calls, const khub__case *c, const khub__calls_options *options,
                      khub_error *err)
{
    khub__recipe *recipe;
    calls->source = (khub__source){.uses = 1, .kernel = options->kernel};
    int rc = khub__recipe_of(&recipe, calls->kernels, &calls->source, c->layer, c->dtype, options->gpu,
                             options->spec, err);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; i < calls->count && rc == KHUB_OK; i++) {
        khub_filling *filling;
        rc = khub__recipe_fill(&filling, recipe, calls->sets[i]->kernel, err);
        if (rc == KHUB_OK) khub__slot_fill(calls->kernels, calls->sets[i]->kernel, filling);
    }
    khub__recipe_give_up(recipe);
    return rc;
}

static int make_sets(khub__timed_calls *calls, const khub__case *c, const khub__calls_options *options,
                     khub_error *err)
{
    int rc = KHUB_OK;
    size_t wanted = 1;
    for (size_t i = 0; i < wanted && rc == KHUB_OK; i++) {
        if (khub__grow((void **)&calls->sets, &calls->capacity, i + 1, sizeof(*calls->sets), MOST_SETS) != 0)
            return khub__fail_memory(err, "making arguments");
        khub__call_set *set = khub__calloc(1, sizeof(*set));
        if (!set) return khub__fail_memory(err, "making arguments");
        calls->sets[calls->count++] = set;
        rc = make_args(set, c, options->gpu, err);
        if (rc == KHUB_OK && i == 0) {
            calls->work = khub__work_of(c->layer->name, set->args, calls->n);
            double bytes = khub__bytes_of(set->args, calls->n);
            double sets = bytes > 0 ? (double)options->fill / bytes : 0;
            wanted = sets > MOST_SETS ? MOST_SETS : (size_t)sets + 1;
        }
        if (rc == KHUB_OK) rc = add_slot(&set->kernel, calls->kernels, set, c, (khub__whose){0}, i, err);
        if (rc == KHUB_OK && calls->standards)
            rc = add_slot(&set->standard, calls->standards, set, c, options->whose, i, err);
    }
    return rc;
}

int khub__timed_calls_new(khub__timed_calls *out, const khub__case *c, const khub__calls_options *options,
                          khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->n = c->layer->arg_count;
    out->pool = options->pool;
    out->gpu = options->gpu;
    out->kernel = (khub__caller){out, 0, 0};
    out->standard = (khub__caller){out, 1, 0};
    int rc = out->gpu ? khub__stopwatch_new(&out->watch, out->gpu, err) : KHUB_OK;
    if (rc == KHUB_OK) rc = khub_layers_new(&out->kernels, err);
    if (rc == KHUB_OK && options->standard) rc = khub_layers_new(&out->standards, err);
    if (rc == KHUB_OK) rc = make_sets(out, c, options, err);
    return rc == KHUB_OK ? fill_slots(out, c, options, err) : rc;
}

void khub__timed_calls_free(khub__timed_calls *calls)
{
    khub_layers_free(calls->kernels);
    khub_layers_free(calls->standards);
    for (size_t i = 0; i < calls->count; i++) {
        for (int32_t k = 0; k < calls->n; k++) {
            khub_array_free(&calls->sets[i]->arrays[k]);
            khub_gpu_array_free(&calls->sets[i]->there[k]);
        }
        khub__free(calls->sets[i]);
    }
    khub__free(calls->sets);
    khub__calls_free(&calls->list);
    khub__stopwatch_free(&calls->watch);
    memset(calls, 0, sizeof(*calls));
}

/* On the pool a call is cut where it is worth it: a byte counts as much as a multiply-add. */
static int run_cut(khub__timed_calls *calls, const khub_slot *slot, const khub_value *args, khub_error *err)
{
    double work = calls->work.flops / 2 + calls->work.bytes;
    int rc = khub__calls_add(&calls->list, slot, args, calls->n, work, err);
    return rc == KHUB_OK ? khub__calls_run(&calls->list, calls->pool, err) : rc;
}

int khub__timed_calls_run(void *user, uint64_t count, khub_error *err)
{
    khub__caller *caller = user;
    khub__timed_calls *calls = caller->calls;
    int alone = khub__threads_count(calls->pool) == 1, rc = KHUB_OK;
    for (uint64_t i = 0; i < count && rc == KHUB_OK; i++) {
        const khub__call_set *set = calls->sets[caller->next];
        const khub_slot *slot = caller->standard ? set->standard : set->kernel;
        caller->next = caller->next + 1 == calls->count ? 0 : caller->next + 1;
        rc = alone ? khub_slot_call(slot, set->args, calls->n, err) : run_cut(calls, slot, set->args, err);
    }
    return rc;
}

int khub__timed_calls_time(double *seconds, void *user, uint64_t count, khub_error *err)
{
    const khub__caller *caller = user;
    return khub__stopwatch_run(&caller->calls->watch, seconds, khub__timed_calls_run, user, count, err);
}
