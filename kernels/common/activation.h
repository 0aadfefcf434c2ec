/* The activations of docs/layers.md on sixteen lanes, for khub/activation and for kernels that end in one. */
#ifndef KHUB_KERNELS_ACTIVATION_H
#define KHUB_KERNELS_ACTIVATION_H

#include "linear_call.h"
#include "vmath.h"

/* A product whose second factor, a power of two, may take it below the normal numbers. */
typedef struct v_scaled {
    v16 value, by;
} v_scaled;

/* x, but between what exponents allow; keeps a NaN. */
VEC v16 v_between(v16 x, float least, float most)
{
    return v_min(v_set(most), v_max(v_set(least), x));
}

/* x / (1 + e): 1 + e is one / by, e is (1 + p r) · up / by. */
VEC v_scaled v_over_one_and(v16 x, v_power e, v16 up, v16 by)
{
    return (v_scaled){v_div(x, v_fma(v_mantissa(e), up, by)), by};
}

/* x / (1 + exp(-x · factor)). Where x is negative, everything is 2^-32 of itself, so that nothing overflows
 * before the result is 0: at `least`, where the exponent is 160. */
VEC v16 v_times_sigmoid(v16 x, v_power e, v16 by)
{
    v_scaled s = v_over_one_and(x, e, v_two_to(e.t), by);
    return v_mul(s.value, s.by);
}
#define SIGMOID_ROUNDER(x) v_negative(x, v_set(V_BIASED - 32), v_set(V_BIASED))
#define SIGMOID_BY(x)      v_negative(x, v_set(0x1p-32f), v_set(1))

VEC_LONG v16 v_silu(v16 x)
{
    v16 u = v_between(x, -110.9f, 87);
    return v_times_sigmoid(x, v_exp2(u, -LOG2_E_HIGH, -LOG2_E_LOW, SIGMOID_ROUNDER(x)), SIGMOID_BY(x));
}

VEC_LONG v16 v_quick_gelu(v16 x)
{
    const float high = -0x1.3a4cbep+1f, low = 0x1.c08ecap-26f; /* -1.702 · log2(e) */
    v16 u = v_between(x, -65.16f, 51);
    return v_times_sigmoid(x, v_exp2(u, high, low, SIGMOID_ROUNDER(x)), SIGMOID_BY(x));
}

/* x/2 · (1 + tanh(t/2)) is x / (1 + exp(-t)), which doesn't cancel where tanh is near -1. t = 2 √(2/π) (x + a
 * x³) is 2 √(2/π) a · x (x² + 1/a), a = 0.044715, with twice the usual digits: exp makes them the result's.
 */
VEC_LONG v16 v_gelu_tanh(v16 x)
{
    const float high = -0x1.a5a7dp-4f, low = 0x1.151aaep-29f; /* -2 √(2/π) a log2(e) */
    const v16 b = v_set(0x1.65d25p+4f),
              b_low = v_set(0x1.dbb3dcp-17f); /* 1/a, of which b has 16 bits after the point */
    v16 u = v_between(x, -10.93f, 9.9f);
    v16 sum = v_fma(u, u, b);
    v16 sum_low = v_add(v_fma(u, u, v_sub(b, sum)), b_low); /* b - sum is exact for every sum up to 256 */
    v16 t = v_mul(u, sum), t_low = v_fma(u, sum_low, v_fma(u, sum, v_sub(v_set(0), t)));
    return v_times_sigmoid(x, v_exp2_of_two(t, t_low, high, low, SIGMOID_ROUNDER(x)), SIGMOID_BY(x));
}

/* exp(-u²/2), n by `rounder` */
VEC v_power v_bell(v16 u, v16 rounder)
{
    v16 square = v_mul(u, u), square_low = v_fma(u, u, v_sub(v_set(0), square));
    return v_exp2_of_two(square, square_low, -LOG2_E_HIGH / 2, -LOG2_E_LOW / 2, rounder);
}

/* a · (1 + p r) */
VEC v16 v_times_mantissa(v16 a, v_power e)
{
    return v_fma(v_mul(a, e.p), e.r, a);
}

/* x · Φ(x) is |x| Φ(-|x|) less than x, or than -0 where x is negative. */
VEC v16 v_gelu_near(v16 x, v16 size)
{
    return v_sub(v_max(v_set(-0.0f), x), v_gelu_tail(size));
}

/* |x| from V_PIECES_END on: all but the last step with 2^64 of |x| Φ(-|x|), which is 0 from 16.27 on, so that
 * infinity's is a NaN. */
VEC_RARE v16 v_gelu_far(v16 x)
{
    v16 size = v_abs(v_min(v_set(15), x));
    v_power bell = v_bell(v_min(v_set(16.27f), size), v_set(V_BIASED + 64));
    v16 tail = v_times_mantissa(v_mul(v_normal_tail(size), v_two_to(bell.t)), bell);
    return v_fma(tail, v_set(-0x1p-64f), v_max(v_set(-0.0f), x));
}

/* What a lane gets doesn't depend on the others: only whether the far ones cost anything. */
VEC_LONG v16 v_gelu(v16 x)
{
    v16 size = v_abs(x), near = v_gelu_near(x, size), end = v_set(V_PIECES_END);
    if (v_all_less(size, end)) return near;
    return v_less(size, end, near, v_gelu_far(x));
}

/* Times a second factor, `gate`, which may be huge: results below the normal numbers become large again.
 * Where x is far below 0, 2^-64 is taken from the gate, for which exponents are FAR larger. A gate that loses
 * digits by it has a product that is 0. */
#define FAR 64.0f
VEC v16 v_times_gate(v_scaled a, v16 far, v16 gate)
{
    return v_mul(v_mul(a.value, v_mul(gate, v_negative(far, v_set(0x1p-64f), v_set(1)))), a.by);
}

VEC_LONG v16 v_silu_times(v16 x, v16 gate)
{
    v16 up, down, far = v_add(x, v_set(80)),
                  rounder = v_negative(far, v_set(V_ROUNDER - FAR), v_set(V_ROUNDER));
    v_power e = v_exp2(v_between(x, -220.4f, 87), -LOG2_E_HIGH, -LOG2_E_LOW, rounder);
    v_growth(e.t, &up, &down);
    return v_times_gate(v_over_one_and(x, e, up, down), far, gate);
}

VEC_RARE v16 v_gelu_times_far(v16 x, v16 gate)
{
    const v16 one = v_set(1);
    v16 size = v_abs(v_min(v_set(15), x)), far = v_add(x, v_set(13)), half, rest;
    v_power bell = v_bell(v_min(v_set(21), size), v_negative(far, v_set(V_ROUNDER + FAR), v_set(V_ROUNDER)));
    v_powers(bell.t, &half, &rest);
    v16 tail = v_times_mantissa(v_mul(v_normal_tail(size), half), bell);
    v_scaled s = {v_sub(v_max(v_set(-0.0f), x), v_mul(tail, v_negative(x, one, rest))),
                  v_negative(x, rest, one)};
    return v_times_gate(s, far, gate);
}

VEC_LONG v16 v_gelu_times(v16 x, v16 gate)
{
    v16 size = v_abs(x), near = v_mul(v_gelu_near(x, size), gate), end = v_set(V_PIECES_END);
    if (v_all_less(size, end)) return near;
    return v_less(size, end, near, v_gelu_times_far(x, gate));
}

/* NaN stays NaN. */
VEC v16 v_relu(v16 x)
{
    return v_max(v_set(0), x);
}

VEC_LONG v16 v_activated_by(v16 x, activation_kind kind)
{
    switch (kind) {
    case ACTIVATION_GELU:
        return v_gelu(x);
    case ACTIVATION_GELU_TANH:
        return v_gelu_tanh(x);
    case ACTIVATION_SILU:
        return v_silu(x);
    case ACTIVATION_RELU:
        return v_relu(x);
    case ACTIVATION_NONE:
        break;
    }
    return x;
}

#endif
