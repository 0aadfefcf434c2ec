/* The activations of docs/layers.md on sixteen lanes, for khub/activation and for kernels that end in one. */
#ifndef KHUB_KERNELS_ACTIVATION_H
#define KHUB_KERNELS_ACTIVATION_H

#include "vmath.h"

/* What an activation gives, value · rest: the latter is a power of two that is 1 where x isn't negative.
 * There the result may be as small as 2^-277 before a second factor makes it larger again. Where it is
 * smaller still it is 0, and infinity's is a NaN. */
typedef struct v_activated {
    v16 value, rest;
} v_activated;

VEC v16 v_activated_value(v_activated a)
{
    return v_mul(a.value, a.rest);
}

/* Times `gate`: nothing under- or overflows on the way but what the product does. */
VEC v16 v_activated_times(v_activated a, v16 gate)
{
    return v_mul(v_mul(a.value, gate), a.rest);
}

/* What makes the results of negative numbers small, y · half · rest = whole. */
typedef struct v_small {
    v16 y, half, rest, whole;
} v_small;

/* `deep`: for v_activated_times, which asks for exponents below those of v_powers. Factors of 2^32 that
 * cancel keep `half` a normal number; `rest`, the last factor, may be a subnormal one. */
VEC v_small v_small_of(v_power p, int deep)
{
    const v16 less = v_set(0x1p-32f);
    v_small s = {.y = deep ? v_mul(p.y, less) : p.y};
    v_powers(deep ? v_add(p.t, v_set(64)) : p.t, &s.half, &s.rest);
    if (deep) s.rest = v_mul(s.rest, less);
    s.whole = v_mul(v_mul(s.y, s.half), s.rest);
    return s;
}

VEC v_activated v_by_sign(v16 x, v_small s, v16 negative, v16 positive)
{
    return (v_activated){v_less(x, v_set(0), negative, positive), v_less(x, v_set(0), s.rest, v_set(1))};
}

/* x / (1 + exp(-t)), s being exp(-|t|), t having the sign of x and growing with it. */
VEC v_activated v_times_sigmoid(v16 x, v_small s)
{
    v_activated a = v_by_sign(x, s, v_mul(v_mul(x, s.half), s.y), x);
    a.value = v_div(a.value, v_add(v_set(1), s.whole));
    return a;
}

/* |x|, but no more than where v_powers gives 0 (from 2^-253, when `deep` from 2^-317 on); keeps a NaN. */
VEC v16 v_size_within(v16 x, float most)
{
    return v_min(v_set(most), v_abs(x));
}

VEC_LONG v_activated v_silu_parts(v16 x, int deep)
{
    v16 u = v_size_within(x, deep ? 220.5f : 175.75f);
    v_power p = v_exp2(u, -LOG2_E_HIGH, -LOG2_E_LOW);
    return v_times_sigmoid(x, v_small_of(p, deep));
}

VEC v16 v_silu(v16 x)
{
    return v_activated_value(v_silu_parts(x, 0));
}

VEC v16 v_silu_times(v16 x, v16 gate)
{
    return v_activated_times(v_silu_parts(x, 1), gate);
}

VEC_LONG v16 v_quick_gelu(v16 x)
{
    const float high = -0x1.3a4cbep+1f, low = 0x1.c08ecap-26f; /* -1.702 · log2(e) */
    v16 u = v_size_within(x, 103.25f);
    return v_activated_value(v_times_sigmoid(x, v_small_of(v_exp2(u, high, low), 0)));
}

/* x/2 · (1 + tanh(t/2)) is x · sigmoid(t), which doesn't cancel where tanh is near -1. t = 2 √(2/π) (x + a
 * x³) is 2 √(2/π) a · x (x² + 1/a), a = 0.044715, with twice the usual digits: exp makes them the result's.
 */
VEC_LONG v16 v_gelu_tanh(v16 x)
{
    const float high = -0x1.a5a7dp-4f, low = 0x1.151aaep-29f; /* -2 √(2/π) a log2(e) */
    const v16 b = v_set(0x1.65d25p+4f),
              b_low = v_set(0x1.dbb3dcp-17f); /* 1/a, of which b has 16 bits after the point */
    v16 u = v_size_within(x, 12.9375f);
    v16 sum = v_fma(u, u, b);
    v16 sum_low = v_add(v_fma(u, u, v_sub(b, sum)), b_low); /* b - sum is exact for every sum up to 256 */
    v16 t = v_mul(u, sum), t_low = v_fma(u, sum_low, v_fma(u, sum, v_sub(v_set(0), t)));
    return v_activated_value(v_times_sigmoid(x, v_small_of(v_exp2_of_two(t, t_low, high, low), 0)));
}

/* x · Φ(x), by the tail of Φ on both sides: where x is negative it is all of the result, else 1 less it. */
VEC_LONG v_activated v_gelu_parts(v16 x, int deep)
{
    v16 u = v_size_within(x, deep ? 21.0f : 18.75f), square = v_mul(u, u);
    v16 square_low = v_fma(u, u, v_sub(v_set(0), square));
    v_power p = v_exp2_of_two(square, square_low, -LOG2_E_HIGH / 2, -LOG2_E_LOW / 2);
    p.y = v_mul(p.y, v_normal_tail(u));
    v_small s = v_small_of(p, deep);
    return v_by_sign(x, s, v_mul(v_mul(x, s.half), s.y), v_mul(x, v_sub(v_set(1), s.whole)));
}

VEC v16 v_gelu(v16 x)
{
    return v_activated_value(v_gelu_parts(x, 0));
}

VEC v16 v_gelu_times(v16 x, v16 gate)
{
    return v_activated_times(v_gelu_parts(x, 1), gate);
}

/* NaN stays NaN. */
VEC v16 v_relu(v16 x)
{
    return v_max(v_set(0), x);
}

#endif
