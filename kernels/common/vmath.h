/* exp, tanh and the tail of the normal distribution on sixteen lanes: our own polynomials over written-out
 * multiply-adds, so that no C library and no processor has a say in the bits. coefficients.py computes the
 * coefficients. */
#ifndef KHUB_KERNELS_VMATH_H
#define KHUB_KERNELS_VMATH_H

#include "vec.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* c[0] + c[1] x + … by Horner's rule. */
VEC_LONG v16 v_polynomial(v16 x, const float *c, size_t count)
{
    v16 sum = v_set(c[count - 1]);
    for (size_t i = count - 1; i-- > 0;)
        sum = v_fma(sum, x, v_set(c[i]));
    return sum;
}

/* The number (1 + p r) · 2^n: the factor from √½ to √2, n = t - rounder, which is V_ROUNDER and an integer.
 */
typedef struct v_power {
    v16 p, r, t;
} v_power;

/* 2^(n + r), n by t as above, r from -½ to ½. The polynomial in three parts, so that less of it waits. */
VEC_LONG v_power v_power_of(v16 t, v16 r)
{
    const v16 low = v_fma(r, v_set(0x1.ebfbdcp-3f), v_set(0x1.62e43p-1f)),
              middle = v_fma(r, v_set(0x1.3b2dd4p-7f), v_set(0x1.c6af7ap-5f)),
              high = v_fma(r, v_set(0x1.4178a4p-13f), v_set(0x1.5f0952p-10f)), square = v_mul(r, r);
    return (v_power){v_fma(v_fma(high, square, middle), square, low), r, t};
}

VEC v16 v_mantissa(v_power power)
{
    return v_fma(power.p, power.r, v_set(1));
}

/* 2^(x · factor), the factor being high + low; exponents from -290 to 254. */
VEC v_power v_exp2(v16 x, float high, float low, v16 rounder)
{
    v16 t = v_fma(x, v_set(high), rounder);
    v16 r = v_fma(x, v_set(high), v_sub(rounder, t)); /* what rounding took */
    return v_power_of(t, v_fma(x, v_set(low), r));
}

/* The same of x + x_low. */
VEC v_power v_exp2_of_two(v16 x, v16 x_low, float high, float low, v16 rounder)
{
    v16 t = v_fma(x, v_set(high), rounder);
    v16 r = v_fma(x, v_set(high), v_sub(rounder, t));
    return v_power_of(t, v_add(v_fma(x_low, v_set(high), v_mul(x, v_set(low))), r));
}

#define LOG2_E_HIGH 0x1.715476p+0f
#define LOG2_E_LOW  0x1.4ae0cp-26f

/* Overflows to infinity and underflows through the subnormal numbers to 0, as it should. */
VEC_LONG v16 v_exp(v16 x)
{
    v16 half, rest;
    x = v_min(v_set(89.0f), v_max(v_set(-104.0f), x)); /* exp(89) is infinite, exp(-104) is 0; keeps a NaN */
    v_power p = v_exp2(x, LOG2_E_HIGH, LOG2_E_LOW, v_set(V_ROUNDER));
    v_powers(p.t, &half, &rest);
    return v_mul(v_mul(v_mantissa(p), half), rest);
}

/* 2^32 · exp(x) of x up to 0: never below the normal numbers, and below 2^-120 where exp(x) rounds to 0. */
VEC_LONG v16 v_exp_raised(v16 x)
{
    v_power p = v_exp2(v_max(v_set(-106.0f), x), LOG2_E_HIGH, LOG2_E_LOW, v_set(V_BIASED + 32));
    return v_mul(v_mantissa(p), v_two_to(p.t));
}

VEC_LONG v16 v_tanh(v16 x)
{
    static const float tail[] = {-0x1.555554p-2f, 0x1.11107cp-3f,  -0x1.b9f22p-5f,
                                 0x1.63ad18p-6f,  -0x1.0c895ep-7f, 0x1.1ace3ep-9f};
    v16 size = v_abs(x), square = v_mul(x, x), one = v_set(1);
    v16 small = v_fma(v_mul(square, size), v_polynomial(square, tail, COUNT(tail)), size);
    v16 large = v_sub(one, v_div(v_set(2), v_add(v_exp(v_add(size, size)), one)));
    return v_sign(v_less(size, v_set(0.625f), small, large), x);
}

/* u · exp(u²/2) · Φ(-u), Φ being the normal distribution: what is left of its tail without what makes it
 * small. u from 0 to 20, and larger ones too where 0.4 will do; infinity's is a NaN. */
VEC_LONG v16 v_normal_tail(v16 u)
{
    static const float tail[] = {0x1.4p+0f,      -0x1.3e4ef6p+0f, 0x1.5b5dcep-3f, 0x1.2acbdcp-2f,
                                 0x1.cf0fbcp-5f, -0x1.36603p-3f,  0x1.228edp-3f,  -0x1.45d5a4p-2f,
                                 0x1.21c602p-2f, -0x1.4a9544p-4f};
    v16 s = v_div(u, v_add(u, v_set(2.5f)));
    return v_mul(s, v_polynomial(s, tail, COUNT(tail)));
}

#endif
