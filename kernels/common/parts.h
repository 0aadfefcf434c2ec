/* Sums over a row: the same bits wherever they are asked for. */
#ifndef KHUB_KERNELS_PARTS_H
#define KHUB_KERNELS_PARTS_H

#include "vec.h"

/* A row's sum in 64 parts, by index modulo 64: four chains that don't wait for each other. */
typedef struct v_parts {
    v16 of[4];
} v_parts;

#define V_PARTS_0                                                                                            \
    {                                                                                                        \
        {                                                                                                    \
            v_set(0), v_set(0), v_set(0), v_set(0)                                                           \
        }                                                                                                    \
    }

/* Parts i and i + 32, then i + 16, then as v_sum. */
VEC float v_parts_sum(v_parts p)
{
    return v_sum(v_add(v_add(p.of[0], p.of[2]), v_add(p.of[1], p.of[3])));
}

/* For each sixteen elements of a row of n, in order: `step(part, i, end)`, elements i … end - 1, into the
 * part that is theirs. A macro, so that the parts are registers. */
#define V_PARTS_EACH(n, parts, step)                                                                         \
    do {                                                                                                     \
        int64_t v_i = 0;                                                                                     \
        for (; v_i + 64 <= (n); v_i += 64) {                                                                 \
            step((parts).of[0], v_i, v_i + 16);                                                              \
            step((parts).of[1], v_i + 16, v_i + 32);                                                         \
            step((parts).of[2], v_i + 32, v_i + 48);                                                         \
            step((parts).of[3], v_i + 48, v_i + 64);                                                         \
        }                                                                                                    \
        if (v_i < (n)) step((parts).of[0], v_i, n);                                                          \
        if (v_i + 16 < (n)) step((parts).of[1], v_i + 16, n);                                                \
        if (v_i + 32 < (n)) step((parts).of[2], v_i + 32, n);                                                \
        if (v_i + 48 < (n)) step((parts).of[3], v_i + 48, n);                                                \
    } while (0)

/* The sum of the squares of a row of n, each element times `by` first. */
VEC_LONG float rms_squares(const char *row, int64_t n, int type, float by)
{
    v_parts squares = V_PARTS_0;
#define RMS_STEP(part, i, end)                                                                               \
    do {                                                                                                     \
        v16 rms_v = v_mul(v_read(row, (i), (end), type), v_set(by));                                         \
        (part) = v_fma(rms_v, rms_v, (part));                                                                \
    } while (0)
    V_PARTS_EACH(n, squares, RMS_STEP);
#undef RMS_STEP
    return v_parts_sum(squares);
}

#endif
