#include "rows.h"

#include <string.h>

/* Of a last-level cache, what a call can count on for its result: of more, the first is gone before anybody
 * reads it, and storing it past the caches saves reading what is overwritten. */
#define STREAMED_BYTES (8 << 20)

/* Whether axis `outer` of every tensor goes on where `inner` ends, so that both are one. */
static int goes_on(const khub__walk *w, int outer, int inner)
{
    for (int t = 0; t < KHUB__MAX_TOGETHER; t++)
        if (w->axis[outer].step[t] != w->axis[inner].step[t] * w->axis[inner].extent) return 0;
    return 1;
}

static void add_axis(khub__walk *w, const DLTensor *const *tensors, int count, int32_t axis)
{
    int64_t extent = tensors[0]->shape[axis];
    if (extent == 1) return;
    int at = w->axes++;
    memset(&w->axis[at], 0, sizeof(w->axis[at]));
    w->axis[at].extent = extent;
    for (int t = 0; t < count; t++)
        w->axis[at].step[t] = khub__step(tensors[t], axis);
    if (at == 0 || !goes_on(w, at - 1, at)) return;
    w->axes = at;
    w->axis[at].extent *= w->axis[at - 1].extent;
    w->axis[at - 1] = w->axis[at];
}

int khub__streams(const DLTensor *const *tensors, int count)
{
    int64_t bytes = tensors[0]->dtype.bits / 8;
    for (int32_t axis = 0; axis < tensors[0]->ndim; axis++)
        bytes *= tensors[0]->shape[axis];
    for (int t = 1; t < count; t++)
        if (khub__data(tensors[t]) == khub__data(tensors[0])) return 0;
    return bytes >= STREAMED_BYTES;
}

int khub__walk_first(khub__walk *w, const DLTensor *const *tensors, int count, int inner)
{
    memset(&w->rows, 0, sizeof(w->rows));
    w->axes = 0; /* axes are emptied as they are added */
    for (int t = 0; t < count; t++)
        w->rows.data[t] = khub__data(tensors[t]);
    for (int32_t axis = 0; axis < tensors[0]->ndim; axis++)
        if (tensors[0]->shape[axis] == 0) return 0;
    for (int32_t axis = 0; axis < tensors[0]->ndim - inner; axis++)
        add_axis(w, tensors, count, axis);
    w->rows.count = 1;
    w->rows.stream = khub__streams(tensors, count);
    if (w->axes == 0) return 1;
    w->axes--; /* the innermost that is left: the rows */
    w->rows.count = w->axis[w->axes].extent;
    memcpy(w->rows.step, w->axis[w->axes].step, sizeof(w->rows.step));
    return 1;
}

int khub__walk_next(khub__walk *w)
{
    for (int i = w->axes - 1; i >= 0; i--) {
        int64_t back = ++w->axis[i].at < w->axis[i].extent ? 0 : w->axis[i].extent;
        for (int t = 0; t < KHUB__MAX_TOGETHER; t++)
            if (w->rows.data[t]) w->rows.data[t] += w->axis[i].step[t] * (1 - back);
        if (!back) return 1;
        w->axis[i].at = 0;
    }
    return 0;
}
