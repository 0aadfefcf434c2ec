/* What scores become. */
#ifndef KHUB_KERNELS_WEIGHT_H
#define KHUB_KERNELS_WEIGHT_H

#include "vmath.h"

#include <float.h>
#include <math.h>

/* How many of a sequence's keys count. */
VEC int64_t attention_keys(int64_t keys, const int32_t *lengths, int64_t sequence)
{
    int64_t length = lengths ? lengths[sequence] : keys;
    return length < 0 ? 0 : length < keys ? length : keys;
}

/* A score's weight beside that of a larger one: 2^(x · scale), x being their difference; 0 below 2^-126.5. */
typedef struct scaling {
    v16 scale, least; /* least · scale = -127, or as far as numbers go */
} scaling;

VEC scaling scaling_by(float scale)
{
    return (scaling){v_set(scale), v_max(v_set(-127 / scale), v_set(-FLT_MAX))};
}

VEC v16 v_weight(v16 x, scaling by)
{
    /* vmath.h's for 2^r */
    static const float tail[] = {0x1.62e43p-1f,  0x1.ebfbdcp-3f,  0x1.c6af7ap-5f,
                                 0x1.3b2dd4p-7f, 0x1.5f0952p-10f, 0x1.4178a4p-13f};
    const v16 rounder = v_set(V_ROUNDER + 127);
    x = v_max(by.least, x);
    v16 t = v_fma(x, by.scale, rounder);
    v16 r = v_fma(x, by.scale, v_sub(rounder, t)); /* what rounding took */
    return v_mul(v_fma(v_polynomial(r, tail, COUNT(tail)), r, v_set(1)), v_two_to(t));
}

#endif
