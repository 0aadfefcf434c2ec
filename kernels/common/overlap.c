#include "overlap.h"

int khub__same_memory(const DLTensor *a, const DLTensor *b)
{
    if (khub__data(a) != khub__data(b)) return 0;
    for (int32_t i = 0; i < a->ndim; i++)
        if (a->shape[i] > 1 && khub__step(a, i) != khub__step(b, i)) return 0;
    return 1;
}

/* The bytes of a tensor: runs without gaps, at equal distances along each axis. */
typedef struct region {
    uintptr_t from, to; /* the first byte, and the one behind the last */
    int axes;
    struct {
        int64_t step, extent; /* both above 0; in the order of the tensor's axes, those of one run left out */
    } axis[KHUB__MAX_AXES];
} region;

/* 0: the tensor is empty. */
static int region_of(region *r, const DLTensor *t)
{
    int64_t run = t->dtype.bits / 8;
    uintptr_t from = (uintptr_t)khub__data(t), last = from;
    r->axes = 0;
    for (int32_t i = t->ndim - 1; i >= 0; i--) {
        int64_t step = khub__step(t, i), extent = t->shape[i];
        if (extent == 0) return 0;
        if (extent == 1 || step == 0) continue;
        *(step < 0 ? &from : &last) += (uintptr_t)step * (uintptr_t)(extent - 1);
        if (step < 0) step = -step;
        if (r->axes == 0 && step == run) {
            run *= extent;
        } else {
            r->axis[r->axes].step = step;
            r->axis[r->axes++].extent = extent;
        }
    }
    r->from = from;
    r->to = last + (uintptr_t)(t->dtype.bits / 8);
    return 1;
}

/* The axis with the largest step that still has more than one element; -1: a run. */
static int widest(const region *r)
{
    int best = -1;
    for (int i = 0; i < r->axes; i++)
        if (r->axis[i].extent > 1 && (best < 0 || r->axis[i].step > r->axis[best].step)) best = i;
    return best;
}

static region half(const region *r, int axis, int second)
{
    region h = *r;
    int64_t first = r->axis[axis].extent / 2, step = r->axis[axis].step;
    h.axis[axis].extent = second ? r->axis[axis].extent - first : first;
    if (second)
        h.from += (uintptr_t)(step * first);
    else
        h.to -= (uintptr_t)(step * (r->axis[axis].extent - first));
    return h;
}

/* Halves the larger region that has gaps until two runs meet, or nothing does. `steps` is what may still be
 * spent: tensors that meet mostly do so within the first dozen. */
static int meet(const region *a, const region *b, int *steps)
{
    if (a->to <= b->from || b->to <= a->from) return 0;
    int i = widest(a), j = widest(b);
    if (i < 0 && j < 0) return 1;
    if (--*steps < 0) return 0;
    int cut_b = i < 0 || (j >= 0 && b->to - b->from > a->to - a->from);
    for (int second = 0; second < 2; second++) {
        region h = cut_b ? half(b, j, second) : half(a, i, second);
        if (cut_b ? meet(a, &h, steps) : meet(&h, b, steps)) return 1;
    }
    return 0;
}

int khub__overlap(const DLTensor *a, const DLTensor *b)
{
    enum { MOST_STEPS = 200 }; /* some microseconds */
    region x, y;
    int steps = MOST_STEPS;
    return region_of(&x, a) && region_of(&y, b) && meet(&x, &y, &steps);
}
