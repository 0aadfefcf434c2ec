/* Calls of slots, cut along the axes that their functions declare, on the threads of a pool. */
#ifndef MODEL_CUT_H
#define MODEL_CUT_H

#include "model/threads.h"

#include "layer/names.h"

/* One call of a slot with the layer's arguments in the layer's own order. */
typedef struct khub__call {
    const khub_slot *slot;
    const khub_filling *filling;     /* what was in it when the call was planned */
    khub_value args[KHUB__MAX_ARGS]; /* prepared, once it is planned */
    khub_value own[KHUB__MAX_ARGS];  /* as they were */
    khub_kept *kept;                 /* NULL: a failure is the call's */
    int32_t n;
    double work; /* about how many multiply-adds it costs */
} khub__call;

/* Calls and their pieces; {0} is an empty list, which keeps its memory from use to use. */
typedef struct khub__calls {
    khub__call *list;
    size_t count, capacity;
    struct khub__piece *pieces;
    size_t piece_count, piece_capacity;
} khub__calls;

/* Adds a call; the tensors in `args` are borrowed until the calls have run. KHUB_E_NOMEM. */
int khub__calls_add(khub__calls *calls, const khub_slot *slot, const khub_value *args, int32_t n, double work,
                    khub_error *err);

/* Runs all calls, which must not depend on one another, cut where that helps, and empties the list. The first
 * failure in the order of adding is returned: KHUB_E_KERNEL with the slot's path, KHUB_E_NOMEM. */
int khub__calls_run(khub__calls *calls, khub__threads *threads, khub_error *err);

void khub__calls_free(khub__calls *calls);

/* How far a planned call reaches along an axis, and the unit that cuts fall on multiples of. 0: it can't be
 * cut there. */
int khub__cut_extent(int64_t *size, int64_t *unit, const khub__call *call, const khub_slot_axis *axis);

/* Calls what lies from `from` to `to` along an axis that the call can be cut along: multiples of the unit, or
 * the size. */
int khub__cut_call(const khub__call *call, const khub_slot_axis *axis, int64_t from, int64_t to,
                   khub_error *err);

/* How a call of `extent` along an axis in steps of `unit` falls into `pieces`: where piece i starts. */
int64_t khub__cut_at(int64_t extent, int64_t unit, int64_t pieces, int64_t i);

#endif
