/* How numbers become integers: the scale of a row, or a part of one, whose largest is to become `most`. */
#ifndef KHUB_KERNELS_RANGE_H
#define KHUB_KERNELS_RANGE_H

#include "vec.h"

enum { RANGE_BYTES = 127, RANGE_WIDE = 32767 };

/* Where nothing is larger all counts as 0: most / largest has to be a number. */
#define RANGE_TINY 0x1p-100f

typedef struct range {
    float scale;   /* of the integers: largest / most. 0: they are 0. NaN: there is one, or an infinity */
    float inverse; /* most / largest; 0: they are 0 */
} range;

/* `largest` has the sizes of some numbers, `nan` has NaN where one isn't finite and 0 elsewhere. */
VEC range range_by(v16 largest, v16 nan, int most)
{
    float size = v_largest(largest);
    range r = {.scale = v_sum(nan)};
    if (r.scale != r.scale || !(size > RANGE_TINY)) return r;
    r.scale = size / (float)most;
    r.inverse = (float)most / size;
    return r;
}

/* What isn't finite times 0 is NaN. */
VEC_LONG range range_of_row(const char *row, int64_t n, int type)
{
    v16 largest = v_set(0), nan = v_set(0);
    for (int64_t i = 0; i < n; i += 16) {
        v16 v = v_read(row, i, n, type);
        largest = v_max(v_abs(v), largest);
        nan = v_fma(v, v_set(0), nan);
    }
    return range_by(largest, nan, RANGE_BYTES);
}

/* The integers, as V_ROUNDER + n. */
VEC v16 range_round(const range *r, v16 v)
{
    v16 integers = v_add(v_mul(v, v_set(r->inverse)), v_set(V_ROUNDER));
    return r->scale != r->scale ? v_set(V_ROUNDER) : integers;
}

#endif
