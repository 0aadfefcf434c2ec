/* exp, tanh and erf on sixteen lanes, within 2 ULP: our own polynomials over written-out multiply-adds, so
 * that no C library and no processor has a say in the bits. coefficients.py computes the coefficients. */
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

/* Overflows to infinity and underflows through the subnormal numbers to 0, as it should. */
VEC_LONG v16 v_exp(v16 x)
{
    static const float tail[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558aep-5f, 0x1.12398p-7f,
                                 0x1.6a4f72p-10f};
    const float ln2_high = 0x1.63p-1f,
                ln2_low = -0x1.bd0106p-13f; /* ln 2 in 9 bits, so that n · ln2_high is exact, and the rest */
    x = v_min(v_set(89.0f), v_max(v_set(-104.0f), x)); /* exp(89) is infinite, exp(-104) is 0; keeps a NaN */
    v16 shifted = v_fma(x, v_set(0x1.715476p+0f), v_set(V_ROUNDER)); /* log2(e) */
    v16 minus_n = v_sub(v_set(V_ROUNDER), shifted);
    v16 r = v_fma(minus_n, v_set(ln2_low), v_fma(minus_n, v_set(ln2_high), x));
    v16 e = v_fma(v_mul(r, r), v_polynomial(r, tail, COUNT(tail)), r);
    return v_exp2i(v_add(e, v_set(1)), shifted);
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

VEC_LONG v16 v_erf(v16 x)
{
    static const float near[] = {0x1.06eba8p-3f, -0x1.81274p-2f,  0x1.ce2d6ap-4f,  -0x1.b8028ep-6f,
                                 0x1.54676cp-8f, -0x1.a80cap-11f, 0x1.5f4fb2p-14f, -0x1.740618p-20f};
    static const float far[] = {0x1.8b3ee2p-13f, -0x1.212c2cp+0f, -0x1.4434f8p-1f, -0x1.bc1868p-4f,
                                0x1.9d0a5ep-6f,  -0x1.139616p-8f, 0x1.cedf1cp-12f, -0x1.6bf2fep-16f};
    v16 size = v_min(v_set(4), v_abs(x)), square = v_mul(size, size); /* from 3.92 on, erf is 1 in float32 */
    v16 small = v_fma(size, v_polynomial(square, near, COUNT(near)), size);
    v16 large = v_sub(v_set(1), v_exp(v_polynomial(size, far, COUNT(far))));
    return v_sign(v_less(size, v_set(1), small, large), x);
}

#endif
