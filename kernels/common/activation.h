/* The activations of docs/layers.md on sixteen lanes, for khub/activation and for kernels that end in one. */
#ifndef KHUB_KERNELS_ACTIVATION_H
#define KHUB_KERNELS_ACTIVATION_H

#include "vmath.h"

/* x / (1 + exp(-t)), t having the sign of x; exp never overflows. */
VEC_LONG v16 v_times_sigmoid(v16 x, v16 t)
{
    v16 e = v_exp(v_sub(v_set(0), v_abs(t)));
    v16 top = v_less(t, v_set(0), v_mul(x, e), x);
    return v_div(top, v_add(v_set(1), e));
}

VEC v16 v_silu(v16 x)
{
    return v_times_sigmoid(x, x);
}

VEC v16 v_quick_gelu(v16 x)
{
    return v_times_sigmoid(x, v_mul(x, v_set(1.702f)));
}

/* x/2 · (1 + tanh(u)) is x · sigmoid(2u), which doesn't cancel where tanh(u) is near -1; 2u = x (a + b x²).
 */
VEC_LONG v16 v_gelu_tanh(v16 x)
{
    const float a = 0x1.988454p+0f, b = 0x1.2444f2p-4f; /* 2 √(2/π), and 0.044715 times that */
    return v_times_sigmoid(x, v_mul(x, v_fma(v_mul(x, x), v_set(b), v_set(a))));
}

VEC_LONG v16 v_gelu(v16 x)
{
    v16 half = v_mul(x, v_set(0.5f));
    return v_fma(half, v_erf(v_mul(x, v_set(0x1.6a09e6p-1f))), half); /* 1/√2 */
}

/* NaN stays NaN. */
VEC v16 v_relu(v16 x)
{
    return v_max(v_set(0), x);
}

#endif
