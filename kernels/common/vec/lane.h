/* v16 as one float, the lane that a thread of a GPU is: each has the meaning of its namesake for arrays
 * (portable.h). */
#ifndef KHUB_KERNELS_VEC_LANE_H
#define KHUB_KERNELS_VEC_LANE_H

#include <math.h>

typedef float v16;

VEC v16 v_set(float a)
{
    return a;
}
VEC v16 v_add(v16 a, v16 b)
{
    return a + b;
}
VEC v16 v_sub(v16 a, v16 b)
{
    return a - b;
}
VEC v16 v_mul(v16 a, v16 b)
{
    return a * b;
}
VEC v16 v_div(v16 a, v16 b)
{
    return a / b;
}
VEC v16 v_fma(v16 a, v16 b, v16 c)
{
    return fmaf(a, b, c);
}
VEC v16 v_max(v16 a, v16 b)
{
    return a > b ? a : b;
}
VEC v16 v_min(v16 a, v16 b)
{
    return a < b ? a : b;
}
VEC v16 v_abs(v16 a)
{
    return float_of(bits_of(a) & UINT32_C(0x7fffffff));
}
VEC v16 v_sign(v16 a, v16 s)
{
    return float_of((bits_of(a) & UINT32_C(0x7fffffff)) | (bits_of(s) & UINT32_C(0x80000000)));
}
VEC v16 v_less(v16 a, v16 b, v16 x, v16 y)
{
    return a < b ? x : y;
}
VEC int v_all_less(v16 a, v16 b)
{
    return a < b;
}
VEC v16 v_pick(const float four[4], v16 t)
{
    return four[bits_of(t) & 3];
}
VEC v16 v_negative(v16 s, v16 x, v16 y)
{
    return bits_of(s) >> 31 ? x : y;
}
VEC void v_powers(v16 t, v16 *half, v16 *rest)
{
    lane_powers(t, half, rest);
}
VEC void v_growth(v16 t, v16 *up, v16 *down)
{
    lane_growth(t, up, down);
}
VEC v16 v_two_to(v16 t)
{
    return float_of(bits_of(t) << 23);
}

#endif
