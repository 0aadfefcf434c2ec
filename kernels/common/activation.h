/* The activations of docs/layers.md on sixteen lanes, for khub/activation and for kernels that end in one. */
#ifndef KHUB_KERNELS_ACTIVATION_H
#define KHUB_KERNELS_ACTIVATION_H

#include "linear_call.h"
#include "vmath.h"

/* x, but between what exponents allow; keeps a NaN. */
VEC v16 v_between(v16 x, float least, float most)
{
    return v_min(v_set(most), v_max(v_set(least), x));
}

/* Each function has two ways. NAME_near takes V_TOGETHER at most in one go, has the right result for lanes
 * between -NAME_END and NAME_END, and says whether all are. NAME_far is for the others, NaN among them, of
 * one v16. So what a lane gets doesn't depend on its neighbours: only whether far ones cost anything.
 * NAME_times: times a second factor, `gate`, which may be huge. */
VEC int v_all_near(const v16 *x, const int count, float end)
{
    int all = 1;
    V_EACH(k, count) all &= v_all_less(v_abs(x[k]), v_set(end));
    return all;
}
VEC v16 v_near_or_far(v16 x, float end, v16 near, v16 far)
{
    return v_less(v_abs(x), v_set(end), near, far);
}

/* x / (1 + e) */
VEC int v_sigmoid_near(v16 *near, v_power *e, const v16 *x, const int count, float end)
{
    V_EACH(k, count) e[k].p = v_mantissa(e[k]);
    V_EACH(k, count) e[k].p = v_fma(e[k].p, v_two_to(e[k].t), v_set(1));
    V_EACH(k, count) near[k] = v_div(x[k], e[k].p);
    return v_all_near(x, count, end);
}

/* A product whose second factor, a power of two, may take it below the normal numbers. */
typedef struct v_scaled {
    v16 value, by;
} v_scaled;

/* x / (1 + e): 1 + e is one / by, e is (1 + p r) · up / by. */
VEC v_scaled v_over_one_and(v16 x, v_power e, v16 up, v16 by)
{
    return (v_scaled){v_div(x, v_fma(v_mantissa(e), up, by)), by};
}

/* x / (1 + e) in full, e by SIGMOID_ROUNDER. Where x is negative, everything is 2^-32 of itself, so that
 * nothing overflows before the result is 0: where e's exponent is 160. */
VEC v16 v_sigmoid_far(v16 x, v_power e)
{
    v_scaled s = v_over_one_and(x, e, v_two_to(e.t), v_negative(x, v_set(0x1p-32f), v_set(1)));
    return v_mul(s.value, s.by);
}
#define SIGMOID_ROUNDER(x) v_negative(x, v_set(V_BIASED - 32), v_set(V_BIASED))

#define V_SILU_END 80.0f
VEC int v_silu_near(v16 *near, const v16 *x, const int count)
{
    v_power e[V_TOGETHER];
    v_exp2(e, x, count, -LOG2_E_HIGH, -LOG2_E_LOW, v_set(V_BIASED));
    return v_sigmoid_near(near, e, x, count, V_SILU_END);
}
VEC_LONG v16 v_silu_far(v16 x)
{
    v16 u = v_between(x, -110.9f, 87);
    v_power e;
    v_exp2(&e, &u, 1, -LOG2_E_HIGH, -LOG2_E_LOW, SIGMOID_ROUNDER(x));
    return v_sigmoid_far(x, e);
}

#define QUICK_HIGH       -0x1.3a4cbep+1f /* -1.702 · log2(e) */
#define QUICK_LOW        0x1.c08ecap-26f
#define V_QUICK_GELU_END 47.0f
VEC int v_quick_gelu_near(v16 *near, const v16 *x, const int count)
{
    v_power e[V_TOGETHER];
    v_exp2(e, x, count, QUICK_HIGH, QUICK_LOW, v_set(V_BIASED));
    return v_sigmoid_near(near, e, x, count, V_QUICK_GELU_END);
}
VEC_LONG v16 v_quick_gelu_far(v16 x)
{
    v16 u = v_between(x, -65.16f, 51);
    v_power e;
    v_exp2(&e, &u, 1, QUICK_HIGH, QUICK_LOW, SIGMOID_ROUNDER(x));
    return v_sigmoid_far(x, e);
}

/* exp(-t) where x/2 · (1 + tanh(t/2)) is x / (1 + exp(-t)), which doesn't cancel where tanh is near -1. t = 2
 * √(2/π) (x + a x³) is 2 √(2/π) a · x (x² + 1/a), a = 0.044715, with twice the usual digits: exp makes them
 * the result's.
 */
VEC_LONG void v_gelu_tanh_exp(v_power *e, const v16 *x, const int count, v16 rounder)
{
    const float high = -0x1.a5a7dp-4f, low = 0x1.151aaep-29f; /* -2 √(2/π) a log2(e) */
    const v16 b = v_set(0x1.65d25p+4f),
              b_low = v_set(0x1.dbb3dcp-17f); /* 1/a, of which b has 16 bits after the point */
    v16 sum[V_TOGETHER], sum_low[V_TOGETHER], t[V_TOGETHER], t_low[V_TOGETHER];
    V_EACH(k, count) sum[k] = v_fma(x[k], x[k], b);
    V_EACH(k, count) sum_low[k] = v_sub(b, sum[k]); /* exact for every sum up to 256 */
    V_EACH(k, count) sum_low[k] = v_fma(x[k], x[k], sum_low[k]);
    V_EACH(k, count) sum_low[k] = v_add(sum_low[k], b_low);
    V_EACH(k, count) t[k] = v_mul(x[k], sum[k]);
    V_EACH(k, count) t_low[k] = v_fma(x[k], sum[k], v_sub(v_set(0), t[k]));
    V_EACH(k, count) t_low[k] = v_fma(x[k], sum_low[k], t_low[k]);
    v_exp2_of_two(e, t, t_low, count, high, low, rounder);
}

#define V_GELU_TANH_END 9.0f
VEC int v_gelu_tanh_near(v16 *near, const v16 *x, const int count)
{
    v_power e[V_TOGETHER];
    v_gelu_tanh_exp(e, x, count, v_set(V_BIASED));
    return v_sigmoid_near(near, e, x, count, V_GELU_TANH_END);
}
VEC_LONG v16 v_gelu_tanh_far(v16 x)
{
    v16 u = v_between(x, -10.93f, 9.9f);
    v_power e;
    v_gelu_tanh_exp(&e, &u, 1, SIGMOID_ROUNDER(x));
    return v_sigmoid_far(x, e);
}

/* x · Φ(x), Φ being the normal distribution, is |x| Φ(-|x|) less than x, or than -0 where x is negative. */
#define V_GELU_END V_PIECES_END
VEC int v_gelu_near(v16 *near, const v16 *x, const int count)
{
    static const v_pieces tail = {{0, 0x1.8p+0f, 0x1.5p+1f, 0x1p+2f},
                                  {{0, 0x1.9a76a4p-4f, 0x1.74a8eep-7f, 0x1.09ad7ap-13f},
                                   {0x1p-1f, -0x1.050e92p-3f, -0x1.dc423ep-6f, -0x1.080e9cp-11f},
                                   {-0x1.988454p-2f, 0x1.094102p-6f, 0x1.fdc80ep-6f, 0x1.eb2b38p-11f},
                                   {0x1.f310fep-22f, 0x1.d0317ap-5f, -0x1.07a51cp-6f, -0x1.189f68p-10f},
                                   {0x1.105172p-4f, -0x1.27a6b2p-5f, 0x1.c33204p-10f, 0x1.b0f206p-11f},
                                   {0x1.619462p-15f, 0x1.65ce88p-9f, 0x1.78428ap-9f, -0x1.c9f1f2p-12f},
                                   {-0x1.4b7f58p-7f, 0x1.3ecb4p-8f, -0x1.cb21f4p-10f, 0x1.356044p-13f},
                                   {0x1.015a18p-12f, -0x1.9e3edcp-10f, 0x1.44c36p-12f, -0x1.5fa5a8p-16f},
                                   {0x1.0e7b66p-10f, -0x1.d93f94p-12f, 0x1.26eefap-13f, -0x1.279924p-17f},
                                   {-0x1.4e6c76p-14f, 0x1.ce02bap-14f, -0x1.cb0ba2p-15f, 0x1.54489ep-17f}}};
    int all = v_all_near(x, count, V_GELU_END);
    V_EACH(k, count) near[k] = v_abs(x[k]);
    v_in_pieces(near, count, &tail);
    V_EACH(k, count) near[k] = v_sub(v_max(v_set(-0.0f), x[k]), near[k]);
    return all;
}

/* exp(-u²/2), n by `rounder` */
VEC v_power v_bell(v16 u, v16 rounder)
{
    v16 square = v_mul(u, u), square_low = v_fma(u, u, v_sub(v_set(0), square));
    v_power e;
    v_exp2_of_two(&e, &square, &square_low, 1, -LOG2_E_HIGH / 2, -LOG2_E_LOW / 2, rounder);
    return e;
}

/* a · (1 + p r) */
VEC v16 v_times_mantissa(v16 a, v_power e)
{
    return v_fma(v_mul(a, e.p), e.r, a);
}

/* All but the last step with 2^64 of |x| Φ(-|x|), which is 0 from 16.27 on, so that infinity's is a NaN. */
VEC_LONG v16 v_gelu_far(v16 x)
{
    v16 size = v_abs(v_min(v_set(15), x));
    v_power bell = v_bell(v_min(v_set(16.27f), size), v_set(V_BIASED + 64));
    v16 tail = v_times_mantissa(v_mul(v_normal_tail(size), v_two_to(bell.t)), bell);
    return v_fma(tail, v_set(-0x1p-64f), v_max(v_set(-0.0f), x));
}

/* Times the gate: results below the normal numbers become large again.
 * Where x is far below 0, 2^-64 is taken from the gate, for which exponents are FAR larger. A gate that loses
 * digits by it has a product that is 0. */
#define FAR 64.0f
VEC v16 v_times_gate(v_scaled a, v16 far, v16 gate)
{
    return v_mul(v_mul(a.value, v_mul(gate, v_negative(far, v_set(0x1p-64f), v_set(1)))), a.by);
}

VEC_LONG v16 v_silu_times_far(v16 x, v16 gate)
{
    v16 up, down, u = v_between(x, -220.4f, 87), far = v_add(x, v_set(80)),
                  rounder = v_negative(far, v_set(V_ROUNDER - FAR), v_set(V_ROUNDER));
    v_power e;
    v_exp2(&e, &u, 1, -LOG2_E_HIGH, -LOG2_E_LOW, rounder);
    v_growth(e.t, &up, &down);
    return v_times_gate(v_over_one_and(x, e, up, down), far, gate);
}

VEC_LONG v16 v_gelu_times_far(v16 x, v16 gate)
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

/* NAME_both: both ways together, of one; NAME: the far one only where it is needed. */
#define V_FUNCTION(name, END)                                                                                \
    VEC_LONG v16 name##_both(v16 x)                                                                          \
    {                                                                                                        \
        v16 near;                                                                                            \
        (void)name##_near(&near, &x, 1);                                                                     \
        return v_near_or_far(x, END, near, name##_far(x));                                                   \
    }                                                                                                        \
    VEC_RARE v16 name##_rare(v16 x)                                                                          \
    {                                                                                                        \
        return name##_both(x);                                                                               \
    }                                                                                                        \
    VEC_LONG v16 name(v16 x)                                                                                 \
    {                                                                                                        \
        v16 near;                                                                                            \
        return name##_near(&near, &x, 1) ? near : name##_rare(x);                                            \
    }
V_FUNCTION(v_silu, V_SILU_END)
V_FUNCTION(v_quick_gelu, V_QUICK_GELU_END)
V_FUNCTION(v_gelu_tanh, V_GELU_TANH_END)
V_FUNCTION(v_gelu, V_GELU_END)

/* Times the gate. */
#define V_FUNCTION_TIMES(name, END)                                                                          \
    VEC_LONG v16 name##_times(v16 x, v16 gate)                                                               \
    {                                                                                                        \
        v16 near;                                                                                            \
        (void)name##_near(&near, &x, 1);                                                                     \
        return v_near_or_far(x, END, v_mul(near, gate), name##_times_far(x, gate));                          \
    }
V_FUNCTION_TIMES(v_silu, V_SILU_END)
V_FUNCTION_TIMES(v_gelu, V_GELU_END)

/* NaN stays NaN. */
VEC v16 v_relu(v16 x)
{
    return v_max(v_set(0), x);
}
VEC int v_relu_near(v16 *near, const v16 *x, const int count)
{
    V_EACH(k, count) near[k] = v_relu(x[k]);
    return 1;
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
