/* exp, tanh, erf and the tail of the normal distribution on sixteen lanes: our own polynomials over
 * written-out multiply-adds, so that no C library and no processor has a say in the bits. coefficients.py
 * computes the coefficients. */
#ifndef KHUB_KERNELS_VMATH_H
#define KHUB_KERNELS_VMATH_H

#include "vec.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* What is written for `count` v16 at a time, V_TOGETHER at most, a step of all before the next of any: a step
 * waits for the one before, and processors look ahead as far as they have registers to name. */
enum { V_TOGETHER = 2 };
#define V_EACH(k, count) UNROLLED for (int k = 0; k < (count); k++)

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

/* p, with r and t given: 2^(n + r), r from -½ to ½; of `count` at a time. */
VEC_LONG void v_power_of(v_power *e, const int count)
{
    static const float tail[] = {0x1.62e43p-1f,  0x1.ebfbdcp-3f,  0x1.c6af7ap-5f,
                                 0x1.3b2dd4p-7f, 0x1.5f0952p-10f, 0x1.4178a4p-13f};
    V_EACH(k, count) e[k].p = v_set(tail[COUNT(tail) - 1]);
    UNROLLED for (int i = COUNT(tail) - 2; i >= 0; i--) V_EACH(k, count) e[k].p =
        v_fma(e[k].p, e[k].r, v_set(tail[i]));
}

VEC v16 v_mantissa(v_power power)
{
    return v_fma(power.p, power.r, v_set(1));
}

/* 2^(x · factor), the factor being high + low; exponents from -290 to 254. */
VEC_LONG void v_exp2(v_power *e, const v16 *x, const int count, float high, float low, v16 rounder)
{
    V_EACH(k, count) e[k].t = v_fma(x[k], v_set(high), rounder);
    V_EACH(k, count) e[k].r = v_sub(rounder, e[k].t);
    V_EACH(k, count) e[k].r = v_fma(x[k], v_set(high), e[k].r); /* what rounding took */
    V_EACH(k, count) e[k].r = v_fma(x[k], v_set(low), e[k].r);
    v_power_of(e, count);
}

/* The same of x + x_low. */
VEC void v_exp2_of_two(v_power *e, const v16 *x, const v16 *x_low, const int count, float high, float low,
                       v16 rounder)
{
    V_EACH(k, count) e[k].t = v_fma(x[k], v_set(high), rounder);
    V_EACH(k, count) e[k].r = v_sub(rounder, e[k].t);
    V_EACH(k, count) e[k].r = v_fma(x[k], v_set(high), e[k].r);
    V_EACH(k, count) e[k].p = v_mul(x[k], v_set(low));
    V_EACH(k, count) e[k].p = v_fma(x_low[k], v_set(high), e[k].p);
    V_EACH(k, count) e[k].r = v_add(e[k].p, e[k].r);
    v_power_of(e, count);
}

#define LOG2_E_HIGH 0x1.715476p+0f
#define LOG2_E_LOW  0x1.4ae0cp-26f

/* Overflows to infinity and underflows through the subnormal numbers to 0, as it should. */
VEC_LONG v16 v_exp(v16 x)
{
    v16 half, rest;
    x = v_min(v_set(89.0f), v_max(v_set(-104.0f), x)); /* exp(89) is infinite, exp(-104) is 0; keeps a NaN */
    v_power p;
    v_exp2(&p, &x, 1, LOG2_E_HIGH, LOG2_E_LOW, v_set(V_ROUNDER));
    v_powers(p.t, &half, &rest);
    return v_mul(v_mul(v_mantissa(p), half), rest);
}

/* 2^32 · exp(x) of x up to 0: never below the normal numbers, and below 2^-120 where exp(x) rounds to 0. */
VEC_LONG v16 v_exp_raised(v16 x)
{
    v_power p;
    x = v_max(v_set(-106.0f), x);
    v_exp2(&p, &x, 1, LOG2_E_HIGH, LOG2_E_LOW, v_set(V_BIASED + 32));
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

/* A function of u from 0 up to V_PIECES_END in four pieces, the first half as long as the others: polynomials
 * of u less a center. Sixteen lanes look their own up, which takes less than an exponential and a division
 * do. */
#define V_PIECES_END 4.0f
enum { V_PIECES_DEGREE = 9 };
typedef struct v_pieces {
    float center[4], c[V_PIECES_DEGREE + 1][4]; /* of y^0, y^1 … */
} v_pieces;

/* Takes the place of u, `count` of it. */
VEC_LONG void v_in_pieces(v16 *u, const int count, const v_pieces *p)
{
    v16 t[V_TOGETHER], sum[V_TOGETHER];
    V_EACH(k, count) t[k] = v_fma(u[k], v_set(0.875f), v_set(V_ROUNDER));
    V_EACH(k, count) u[k] = v_sub(u[k], v_pick(p->center, t[k]));
    V_EACH(k, count) sum[k] = v_pick(p->c[V_PIECES_DEGREE], t[k]);
    UNROLLED for (int i = V_PIECES_DEGREE - 1; i >= 0; i--) V_EACH(k, count) sum[k] =
        v_fma(sum[k], u[k], v_pick(p->c[i], t[k]));
    V_EACH(k, count) u[k] = sum[k];
}

/* Rounded to 1 from 3.9 on. */
VEC_LONG v16 v_erf(v16 x)
{
    static const v_pieces erf = {{0, 0x1.2p+0f, 0x1.2p+1f, 0x1.cp+1f},
                                 {{0, 0x1.c6dad2p-1f, 0x1.ff4048p-1f, 0x1.ffffe8p-1f},
                                  {0x1.06eba8p-3f, 0x1.45e99cp-2f, 0x1.d4143cp-8f, 0x1.6a59a6p-18f},
                                  {0x1.c34e0ep-23f, -0x1.6ea6bep-2f, -0x1.075332p-6f, -0x1.71c3dp-16f},
                                  {-0x1.812944p-2f, 0x1.4cb3cp-3f, 0x1.63f0b6p-6f, 0x1.5b110ep-15f},
                                  {0x1.bbb07p-14f, 0x1.ca7c14p-6f, -0x1.382dbep-6f, -0x1.7ea784p-17f},
                                  {0x1.cb2994p-4f, -0x1.f656f6p-5f, 0x1.5ce568p-7f, 0x1.e099ecp-14f},
                                  {0x1.77f3f6p-9f, 0x1.f7aa4p-7f, -0x1.90596cp-9f, -0x1.aa0dbap-12f},
                                  {-0x1.10b6p-5f, 0x1.3a5bb6p-7f, -0x1.38164p-11f, -0x1.c40aa4p-13f},
                                  {0x1.05944ep-7f, -0x1.591bc4p-8f, 0x1.43d528p-10f, 0x1.2d59dap-11f},
                                  {0x1.637d96p-11f, -0x1.99f5fcp-12f, -0x1.09bdc4p-11f, 0x1.58fa3ap-11f}}};
    v16 size = v_min(v_set(0x1.fffffep+1f), v_abs(x));               /* keeps a NaN */
    v16 first = v_less(size, v_set(0x1.24924ap-1f), size, v_set(0)); /* what the first piece leaves out */
    v_in_pieces(&size, 1, &erf);
    return v_sign(v_add(first, size), x);
}

/* u · exp(u²/2) · Φ(-u): what is left of its tail without what makes it small. u from V_PIECES_END on;
 * infinity's is a NaN. */
VEC_LONG v16 v_normal_tail(v16 u)
{
    static const float tail[] = {0x1.988454p-2f, -0x1.9887p-2f,   0x1.32bf4ap+0f, -0x1.821fd2p+2f,
                                 0x1.46033p+5f,  -0x1.062334p+8f, 0x1.d03bc2p+9f};
    return v_polynomial(v_div(u, v_mul(u, v_mul(u, u))), tail, COUNT(tail));
}

#endif
