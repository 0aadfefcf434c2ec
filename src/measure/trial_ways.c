/* The ways of making a call that must come to the same: placed otherwise, again, in pieces, in a batch, at
 * once. Each is given a trial whose base run is done. */
#include "measure/trial_ways.h"

#include "measure/accuracy.h"
#include "measure/element.h"

#include "model/cut.h"

#include <stdio.h>

static void clear_outputs(khub__arguments *args, int zero)
{
    for (int32_t i = 0; i < args->c->layer->arg_count; i++)
        if (args->c->args[i].is_output) khub__guarded_clear(&args->buffers[i], zero);
}

static int run_placed(khub__trial *t, khub__placement placement, const char *how, khub_error *err)
{
    khub__arguments args;
    khub_error why = {0};
    int rc = khub__trial_arguments(&args, t, &t->target, placement, err);
    if (rc == KHUB_OK) {
        if (placement == KHUB__AT_END) khub__arguments_freeze(&args);
        int called = khub__trial_call(t, &t->target, &args, &why);
        khub__found(t->tester->layer, KHUB_CHECK_RETURNS, t->name, called == KHUB_OK, "an error %s: %s", how,
                    why.message);
        if (called == KHUB_OK) {
            khub__trial_look_at_bits(t, &args, KHUB_CHECK_PLACES, 0, 0, how);
            khub__trial_look_beside(t, &args);
        }
    }
    khub__arguments_free(&args);
    return rc;
}

static int run_end(khub__trial *t, khub_error *err)
{
    return run_placed(t, KHUB__AT_END, "with memory that ends where its tensors do", err);
}

static int run_start(khub__trial *t, khub_error *err)
{
    return run_placed(t, KHUB__AT_START, "with memory that begins where its tensors do", err);
}

static int run_aligned(khub__trial *t, khub_error *err)
{
    return run_placed(t, KHUB__ALIGNED, "elsewhere, 64-byte aligned", err);
}

static int run_shifted(khub__trial *t, khub_error *err)
{
    return run_placed(t, KHUB__SHIFTED, "one element behind 64-byte alignment", err);
}

static int run_strided(khub__trial *t, khub_error *err)
{
    return run_placed(t, KHUB__STRIDED, "with rows that lie apart", err);
}

/* Outputs in the memory of inputs, where the layer allows it; what comes out is copied to where it is looked
 * for. */
static int run_in_place(khub__trial *t, khub_error *err)
{
    khub__arguments args;
    khub_error why = {0};
    int shared = 0, rc = khub__trial_arguments(&args, t, &t->target, KHUB__MIDDLE, err);
    for (int32_t i = 0; i < t->c->layer->arg_count && rc == KHUB_OK; i++) {
        int32_t in = khub__case_in_place(t->c, i);
        if (in >= 0) args.values[i] = args.values[in], shared = 1;
    }
    if (shared && khub__trial_call(t, &t->target, &args, &why) == KHUB_OK) {
        for (int32_t i = 0; i < t->c->layer->arg_count; i++) {
            int32_t in = khub__case_in_place(t->c, i);
            if (in < 0) continue;
            khub__guarded_get(&args.buffers[in], t->scratch);
            khub__guarded_put(&args.buffers[i], t->scratch);
        }
        khub__trial_look_at_bits(t, &args, KHUB_CHECK_PLACES, 0, 0, "in the memory of the input");
    } else if (shared) {
        khub__found(t->tester->layer, KHUB_CHECK_RETURNS, t->name, 0,
                    "an error in the memory of the input: %s", why.message);
    }
    khub__arguments_free(&args);
    return rc;
}

/* Other inputs in the same memory: the elements of each the other way round, but for what is prepared. */
static void turn_around(khub__trial *t, khub__arguments *args)
{
    for (int32_t i = 0; i < t->c->layer->arg_count; i++) {
        const khub__case_arg *arg = &t->c->args[i];
        if (arg->is_output || arg->is_none || !arg->dtype.bits || i == args->prepared) continue;
        size_t item = arg->dtype.bits / 8, count = khub__case_bytes(t->c, i) / item;
        char *first = t->scratch, kept[8];
        khub__guarded_get(&args->buffers[i], first);
        for (char *last = first + count * item; count > 1; count -= 2, first += item) {
            last -= item;
            memcpy(kept, first, item);
            memcpy(first, last, item);
            memcpy(last, kept, item);
        }
        khub__guarded_put(&args->buffers[i], t->scratch);
    }
}

/* Whether two calls left the same. */
static void look_at_both(khub__trial *t, const khub__arguments *now, const khub__arguments *otherwise)
{
    for (int32_t i = 0; i < t->c->layer->arg_count; i++) {
        const khub__case_arg *arg = &t->c->args[i];
        if (!arg->is_output || arg->is_none) continue;
        khub__guarded_get(&now->buffers[i], t->now[i]);
        khub__guarded_get(&otherwise->buffers[i], t->scratch);
        int64_t count = (int64_t)(khub__case_bytes(t->c, i) / (arg->dtype.bits / 8)),
                at = khub__first_different(arg->dtype, t->scratch, t->now[i], count);
        khub__found(t->tester->layer, KHUB_CHECK_REPEATS, t->name, at < 0,
                    "%s[%lld] is %.9g where other numbers lay before, %.9g otherwise",
                    t->c->layer->args[i].name, (long long)at,
                    at < 0 ? 0 : khub__element_get(arg->dtype, t->now[i], at),
                    at < 0 ? 0 : khub__element_get(arg->dtype, t->scratch, at));
    }
}

/* What a function keeps by the address of a tensor is another one's the next time. */
static int run_changed(khub__trial *t, khub_error *err)
{
    khub__arguments args[2] = {{0}, {0}};
    khub_error why = {0};
    int rc = khub__trial_arguments(&args[0], t, &t->target, KHUB__MIDDLE, err);
    if (rc == KHUB_OK) rc = khub__trial_arguments(&args[1], t, &t->target, KHUB__MIDDLE, err);
    if (rc == KHUB_OK && khub__trial_call(t, &t->target, &args[0], &why) == KHUB_OK) {
        clear_outputs(&args[0], 0);
        turn_around(t, &args[0]);
        turn_around(t, &args[1]);
        if (khub__trial_call(t, &t->target, &args[0], &why) == KHUB_OK &&
            khub__trial_call(t, &t->target, &args[1], &why) == KHUB_OK)
            look_at_both(t, &args[0], &args[1]);
    }
    if (why.code)
        khub__found(t->tester->layer, KHUB_CHECK_REPEATS, t->name, 0, "an error with other numbers: %s",
                    why.message);
    for (int i = 0; i < 2; i++)
        khub__arguments_free(&args[i]);
    return rc;
}

/* Several calls on the same arguments. */
static int run_repeats(khub__trial *t, khub_error *err)
{
    khub__arguments args;
    int rc = khub__trial_arguments(&args, t, &t->target, KHUB__MIDDLE, err);
    for (int i = 0; i < 3 && rc == KHUB_OK && !t->tester->progress->lost; i++) {
        khub_error why = {0};
        clear_outputs(&args, i % 2 == 0);
        if (khub__trial_call(t, &t->target, &args, &why) == KHUB_OK)
            khub__trial_look_at_bits(t, &args, KHUB_CHECK_REPEATS, 0, 0,
                                     i % 2 ? "when called again" : "over an out of zeros");
        else
            khub__found(t->tester->layer, KHUB_CHECK_REPEATS, t->name, 0, "an error when called again: %s",
                        why.message);
    }
    khub__arguments_free(&args);
    return rc == KHUB_OK && !t->tester->progress->lost ? run_changed(t, err) : rc;
}

static khub__call call_of(const khub__trial *t, const khub__arguments *args)
{
    khub__call call = {.slot = t->target.slot, .filling = t->target.filling, .n = t->c->layer->arg_count};
    memcpy(call.args, args->values, sizeof(call.args));
    return call;
}

/* In `parts` pieces, the last one first. */
static void run_cut(khub__trial *t, khub__arguments *args, const khub_slot_axis *axis, int64_t parts)
{
    int64_t size, unit;
    char how[100];
    khub__call whole = call_of(t, args);
    if (!khub__cut_extent(&size, &unit, &whole, axis)) return;
    int64_t steps = (size + unit - 1) / unit;
    if (parts > steps) parts = steps;
    clear_outputs(args, 0);
    for (int64_t i = parts; i-- > 0;) {
        khub_error why = {0};
        int rc = khub__trial_begin(t, args, 1, &why);
        if (rc == KHUB_OK)
            rc = khub__cut_call(&whole, axis, khub__cut_at(size, unit, parts, i),
                                khub__cut_at(size, unit, parts, i + 1), &why);
        rc = khub__trial_end(t, args, 1, rc, &why);
        if (rc == KHUB_OK) continue;
        khub__found(t->tester->layer, KHUB_CHECK_SLICES, t->name, 0, "an error in a piece of \"%s\": %s",
                    axis->axis, why.message);
        return;
    }
    snprintf(how, sizeof(how), "in %lld pieces along \"%s\"", (long long)parts, axis->axis);
    khub__trial_look_at_bits(t, args, KHUB_CHECK_SLICES, 0, 0, how);
    khub__trial_look_beside(t, args);
}

static int run_slices(khub__trial *t, khub_error *err)
{
    static const int parts[] = {2, 3, 7};
    const khub_slot_axis *axes;
    size_t count = khub_filling_axes(t->target.filling, &axes);
    khub__arguments args;
    int rc = khub__trial_arguments(&args, t, &t->target, KHUB__MIDDLE, err);
    for (size_t i = 0; i < count && rc == KHUB_OK; i++)
        for (size_t k = 0; k < sizeof(parts) / sizeof(*parts) && !t->tester->progress->lost; k++)
            run_cut(t, &args, &axes[i], parts[k]);
    khub__arguments_free(&args);
    return rc;
}

/* The axis that a batch grows along: the first one of what is batched. */
static khub_slot_axis batch_axis(const khub__trial *t)
{
    khub_slot_axis axis = {.axis = "batch"};
    for (int32_t i = 0; i < t->c->layer->arg_count; i++) {
        if (!khub__case_is_batched(t->c, i)) continue;
        axis.part[axis.part_count].arg = i;
        axis.part[axis.part_count].dim = 0;
        axis.part[axis.part_count].unit = 1;
        axis.part[axis.part_count++].min_ndim = 1;
    }
    return axis;
}

static void run_rows(khub__trial *t, khub__arguments *args, const khub_slot_axis *axis, int64_t from,
                     int64_t to)
{
    char how[100];
    khub_error why = {0};
    khub__call whole = call_of(t, args);
    clear_outputs(args, 0);
    int rc = khub__trial_begin(t, args, 1, &why);
    if (rc == KHUB_OK) rc = khub__cut_call(&whole, axis, from, to, &why);
    rc = khub__trial_end(t, args, 1, rc, &why);
    if (to - from == 1)
        snprintf(how, sizeof(how), "alone");
    else
        snprintf(how, sizeof(how), "in a batch of %lld from row %lld on", (long long)(to - from),
                 (long long)from);
    if (rc == KHUB_OK)
        khub__trial_look_at_bits(t, args, KHUB_CHECK_BATCHES, from, to, how);
    else
        khub__found(t->tester->layer, KHUB_CHECK_BATCHES, t->name, 0, "an error %s: %s", how, why.message);
}

static int run_batches(khub__trial *t, khub_error *err)
{
    khub_slot_axis axis = batch_axis(t);
    khub__arguments args;
    int64_t size, unit;
    int rc = khub__trial_arguments(&args, t, &t->target, KHUB__MIDDLE, err);
    khub__call whole = call_of(t, &args);
    int can = rc == KHUB_OK && axis.part_count && khub__cut_extent(&size, &unit, &whole, &axis);
    static const int64_t sizes[] = {1, 2, 7, 8};
    for (size_t i = 0; can && !t->tester->progress->lost && i < sizeof(sizes) / sizeof(*sizes); i++) {
        if (size < sizes[i]) continue;
        run_rows(t, &args, &axis, 0, sizes[i]);                         /* row 0 first */
        if (size > 1) run_rows(t, &args, &axis, size - sizes[i], size); /* the last row last */
        if (size / 2 >= sizes[i]) run_rows(t, &args, &axis, size / 2 - sizes[i] + 1, size / 2 + 1);
    }
    khub__arguments_free(&args);
    return rc;
}

/* Calls at once: each of its own outputs, or all pieces of one. */
typedef struct at_once {
    const khub__call *calls;
    const khub_slot_axis *axis; /* NULL: whole calls */
    int64_t size, unit, parts;
} at_once;

static int run_one(void *user, size_t i, khub_error *err)
{
    const at_once *w = user;
    if (!w->axis)
        return khub_filling_call(w->calls[i].slot, w->calls[i].filling, w->calls[i].args, w->calls[i].n, err);
    int64_t from = khub__cut_at(w->size, w->unit, w->parts, (int64_t)i);
    return khub__cut_call(w->calls, w->axis, from, khub__cut_at(w->size, w->unit, w->parts, (int64_t)i + 1),
                          err);
}

static void run_at_once(khub__trial *t, khub__arguments *args, size_t count, at_once *work, const char *how)
{
    khub_error why = {0};
    size_t sets = work->axis ? 1 : count;
    for (size_t i = 0; i < sets; i++)
        clear_outputs(&args[i], 0);
    int rc = khub__trial_begin(t, args, sets, &why);
    if (rc == KHUB_OK)
        rc = khub__threads_run(t->tester->threads, work->axis ? (size_t)work->parts : count, run_one, work,
                               &why);
    rc = khub__trial_end(t, args, sets, rc, &why);
    if (rc != KHUB_OK)
        khub__found(t->tester->layer, KHUB_CHECK_THREADS, t->name, 0, "an error %s: %s", how, why.message);
    for (size_t i = 0; i < sets && rc == KHUB_OK; i++)
        khub__trial_look_at_bits(t, &args[i], KHUB_CHECK_THREADS, 0, 0, how);
}

enum { AT_ONCE = 8 }; /* calls */

static int run_threads(khub__trial *t, khub_error *err)
{
    const khub_slot_axis *axes;
    size_t axis_count = khub_filling_axes(t->target.filling, &axes);
    khub__arguments args[AT_ONCE] = {{0}};
    khub__call calls[AT_ONCE];
    int rc = KHUB_OK;
    for (int i = 0; i < AT_ONCE && rc == KHUB_OK; i++) {
        rc = khub__trial_arguments(&args[i], t, &t->target, KHUB__MIDDLE, err);
        calls[i] = call_of(t, &args[i]);
    }
    at_once work = {.calls = calls};
    for (int round = 0; round < 2 && rc == KHUB_OK; round++)
        run_at_once(t, args, AT_ONCE, &work, "beside other threads' calls");
    for (size_t i = 0; i < axis_count && rc == KHUB_OK; i++) {
        work = (at_once){.calls = calls, .axis = &axes[i]};
        if (!khub__cut_extent(&work.size, &work.unit, calls, &axes[i])) continue;
        int64_t steps = (work.size + work.unit - 1) / work.unit;
        work.parts = steps < AT_ONCE ? steps : AT_ONCE;
        run_at_once(t, args, AT_ONCE, &work, "in pieces on several threads");
    }
    for (int i = 0; i < AT_ONCE; i++)
        khub__arguments_free(&args[i]);
    return rc;
}

int (*const khub__trial_ways[KHUB__STAGES])(khub__trial *t, khub_error *err) = {
    [KHUB__STAGE_END] = run_end,         [KHUB__STAGE_START] = run_start,
    [KHUB__STAGE_ALIGNED] = run_aligned, [KHUB__STAGE_SHIFTED] = run_shifted,
    [KHUB__STAGE_STRIDED] = run_strided, [KHUB__STAGE_IN_PLACE] = run_in_place,
    [KHUB__STAGE_REPEATS] = run_repeats, [KHUB__STAGE_SLICES] = run_slices,
    [KHUB__STAGE_BATCHES] = run_batches, [KHUB__STAGE_THREADS] = run_threads};
