/* Single elements of the float formats as doubles. */
#ifndef MEASURE_ELEMENT_H
#define MEASURE_ELEMENT_H

#include "numerics/format.h"

/* float32, float64, bfloat16, float16; of integers int32 and int64. Any alignment. */
static inline double khub__element_get(khub_dtype dtype, const void *from, int64_t i)
{
    int bytes = dtype.bits / 8;
    uint64_t bits = khub__bits_at(from, (size_t)i, bytes);
    float f;
    uint32_t u = (uint32_t)bits;
    if (dtype.code == KHUB_DTYPE_INT) return bytes == 8 ? (double)(int64_t)bits : (int32_t)bits;
    if (bytes == 8) return khub__double_of(bits);
    if (dtype.code == KHUB_DTYPE_BFLOAT) u <<= 16;
    if (dtype.code == KHUB_DTYPE_FLOAT && bytes == 2) {
        khub__format half = KHUB__FORMAT_float16;
        uint64_t magnitude = bits & ~khub__sign_bit(half);
        if (magnitude <= half.largest) return khub__number_of(half, bits);
        u = (uint32_t)(bits & 0x8000) << 16 | 0x7f800000u | (uint32_t)(magnitude - half.infinity) << 13;
    }
    memcpy(&f, &u, 4);
    return f;
}

/* The format of a dtype: as above. */
static inline khub__format khub__format_of(khub_dtype dtype)
{
    if (dtype.bits == 64) return KHUB__FORMAT_float64;
    if (dtype.code == KHUB_DTYPE_BFLOAT) return KHUB__FORMAT_bfloat16;
    return dtype.bits == 16 ? KHUB__FORMAT_float16 : KHUB__FORMAT_float32;
}

/* The bits of `x` rounded to the format, to nearest, ties to even; past the largest number: infinity. */
static inline uint64_t khub__element_bits(khub__format f, double x)
{
    uint64_t bits = khub__bits_of(x), size = bits & ~(UINT64_C(1) << 63);
    uint64_t sign = bits != size ? khub__sign_bit(f) : 0;
    int cut = 52 - f.mantissa, exponent = (int)(size >> 52) - 1023;
    double ulp;
    if (f.bytes == 8) return bits;
    if (size > UINT64_C(0x7ff0000000000000)) return sign | f.infinity | UINT64_C(1) << (f.mantissa - 1);
    if (exponent > f.bias) return sign | f.infinity;
    /* scaled so that a double's bits are the format's, but for the length of the mantissa */
    if (exponent <= -f.bias)
        return sign | khub__bits_of(khub__round_to(f, x, &ulp) * khub__power_of_two(f.bias - 1023)) >> cut;
    /* in integers, which is quicker, also emulated; a carry makes the next power of two, or infinity */
    size -= (uint64_t)(1023 - f.bias) << 52;
    return sign | (size + (UINT64_C(1) << (cut - 1)) - 1 + (size >> cut & 1)) >> cut;
}

static inline void khub__element_put(khub_dtype dtype, void *to, int64_t i, double x)
{
    khub__format f = khub__format_of(dtype);
    uint64_t bits = dtype.code == KHUB_DTYPE_INT ? (uint32_t)(int32_t)x : khub__element_bits(f, x);
    memcpy((char *)to + i * f.bytes, &bits, (size_t)f.bytes); /* little-endian */
}

/* As if it was stored in the dtype and loaded again. */
static inline double khub__element_round(khub_dtype dtype, double x)
{
    uint64_t bits = khub__element_bits(khub__format_of(dtype), x);
    return khub__element_get(dtype, &bits, 0);
}

#endif
