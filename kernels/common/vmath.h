/* exp, tanh, erf and the tail of the normal distribution on sixteen lanes: our own polynomials over
 * written-out multiply-adds, so that no C library and no processor has a say in the bits. coefficients.py
 * computes the coefficients. */
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

/* A function of u from 0 to V_PIECES_END in four pieces, the first half as long as the others: polynomials of
 * u less a center. Sixteen lanes look their own up, which takes less than half of what an exponential and a
 * division do. */
#define V_PIECES_END 4.0f
enum { V_PIECES_DEGREE = 9 };
typedef struct v_pieces {
    float center[4], c[V_PIECES_DEGREE + 1][4]; /* of y^0, y^1 … */
} v_pieces;

VEC_LONG v16 v_in_pieces(v16 u, const v_pieces *p)
{
    v16 t = v_fma(u, v_set(0.875f), v_set(V_ROUNDER));
    v16 y = v_sub(u, v_pick(p->center, t)), square = v_mul(y, y);
    v16 odd = v_pick(p->c[V_PIECES_DEGREE], t), even = v_pick(p->c[V_PIECES_DEGREE - 1], t);
    for (int i = V_PIECES_DEGREE - 2; i > 1; i -= 2) {
        odd = v_fma(odd, square, v_pick(p->c[i], t));
        even = v_fma(even, square, v_pick(p->c[i - 1], t));
    }
    /* What decides the last digits comes one by one. */
    return v_fma(v_fma(v_fma(odd, y, even), y, v_pick(p->c[1], t)), y, v_pick(p->c[0], t));
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
    return v_sign(v_add(first, v_in_pieces(size, &erf)), x);
}

/* u · Φ(-u), Φ being the normal distribution, u from 0 up to V_PIECES_END. */
VEC v16 v_gelu_tail(v16 u)
{
    static const v_pieces tail = {{0, 0x1.8p+0f, 0x1.58p+1f, 0x1p+2f},
                                  {{0, 0x1.9a76a4p-4f, 0x1.3cfb8p-7f, 0x1.09ad7ap-13f},
                                   {0x1p-1f, -0x1.050e92p-3f, -0x1.9f983ep-6f, -0x1.080e9cp-11f},
                                   {-0x1.988454p-2f, 0x1.094102p-6f, 0x1.cd1decp-6f, 0x1.eb2b38p-11f},
                                   {0x1.f310fep-22f, 0x1.d0317ap-5f, -0x1.fdca64p-7f, -0x1.189f68p-10f},
                                   {0x1.105172p-4f, -0x1.27a6b2p-5f, 0x1.4a346cp-9f, 0x1.b0f206p-11f},
                                   {0x1.619462p-15f, 0x1.65ce88p-9f, 0x1.25f598p-9f, -0x1.c9f1f2p-12f},
                                   {-0x1.4b7f58p-7f, 0x1.3ecb4p-8f, -0x1.a4f944p-10f, 0x1.356044p-13f},
                                   {0x1.015a18p-12f, -0x1.9e3edcp-10f, 0x1.75d3cap-12f, -0x1.5fa5a8p-16f},
                                   {0x1.0e7b66p-10f, -0x1.d93f94p-12f, 0x1.86c186p-14f, -0x1.279924p-17f},
                                   {-0x1.4e6c76p-14f, 0x1.ce02bap-14f, -0x1.fc7dfcp-15f, 0x1.54489ep-17f}}};
    return v_in_pieces(u, &tail);
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
