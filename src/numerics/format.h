/* The dtypes that are compared, and how their bits make numbers. */
#ifndef NUMERICS_FORMAT_H
#define NUMERICS_FORMAT_H

#include <khub/tensor.h>

/* Inlined wherever a format is a constant, so that its fields cost nothing. */
#define KHUB__INLINE static inline __attribute__((always_inline))

/* A float format: a sign, an exponent, `mantissa` bits. "Magnitude": the bits without the sign. */
typedef struct khub__format {
    int bytes, mantissa, bias;
    uint64_t largest;  /* magnitude of the largest finite number */
    uint64_t infinity; /* magnitude; 0: the format has none */
} khub__format;

/* IEEE 754; bfloat16 is float32's upper half; float8 as in OCP's 8-bit specification 1.0: e4m3fn has no
 * infinity and one NaN. */
#define KHUB__FORMAT_float64                                                                                 \
    ((khub__format){8, 52, 1023, UINT64_C(0x7fefffffffffffff), UINT64_C(0x7ff0000000000000)})
#define KHUB__FORMAT_float32       ((khub__format){4, 23, 127, 0x7f7fffff, 0x7f800000})
#define KHUB__FORMAT_bfloat16      ((khub__format){2, 7, 127, 0x7f7f, 0x7f80})
#define KHUB__FORMAT_float16       ((khub__format){2, 10, 15, 0x7bff, 0x7c00})
#define KHUB__FORMAT_float8_e4m3fn ((khub__format){1, 3, 7, 0x7e, 0})
#define KHUB__FORMAT_float8_e5m2   ((khub__format){1, 2, 15, 0x7b, 0x7c})

/* X(name, code, bytes), for those that may stand beside float32, and for all. */
#define KHUB__FLOATS_SMALL(X)                                                                                \
    X(bfloat16, KHUB_DTYPE_BFLOAT, 2)                                                                        \
    X(float16, KHUB_DTYPE_FLOAT, 2)                                                                          \
    X(float8_e4m3fn, KHUB_DTYPE_FLOAT8_E4M3FN, 1)                                                            \
    X(float8_e5m2, KHUB_DTYPE_FLOAT8_E5M2, 1)
#define KHUB__FLOATS(X) X(float64, KHUB_DTYPE_FLOAT, 8) X(float32, KHUB_DTYPE_FLOAT, 4) KHUB__FLOATS_SMALL(X)

/* X(name, code, bytes, is_signed). */
#define KHUB__INTEGERS(X)                                                                                    \
    X(int8, KHUB_DTYPE_INT, 1, 1)                                                                            \
    X(int16, KHUB_DTYPE_INT, 2, 1)                                                                           \
    X(int32, KHUB_DTYPE_INT, 4, 1)                                                                           \
    X(int64, KHUB_DTYPE_INT, 8, 1)                                                                           \
    X(uint8, KHUB_DTYPE_UINT, 1, 0)                                                                          \
    X(uint16, KHUB_DTYPE_UINT, 2, 0)                                                                         \
    X(uint32, KHUB_DTYPE_UINT, 4, 0)                                                                         \
    X(uint64, KHUB_DTYPE_UINT, 8, 0)

/* The bits of element i; any alignment. */
KHUB__INLINE uint64_t khub__bits_at(const void *at, size_t i, int bytes)
{
    uint64_t u = 0;
    uint32_t u32;
    uint16_t u16;
    const unsigned char *p = (const unsigned char *)at + i * (size_t)bytes;
    switch (bytes) {
    case 1:
        return *p;
    case 2:
        memcpy(&u16, p, 2);
        return u16;
    case 4:
        memcpy(&u32, p, 4);
        return u32;
    default:
        memcpy(&u, p, 8);
        return u;
    }
}

KHUB__INLINE double khub__double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

KHUB__INLINE uint64_t khub__bits_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

KHUB__INLINE double khub__size_of(double x)
{
    return khub__double_of(khub__bits_of(x) & ~(UINT64_C(1) << 63));
}

/* 2^n, n from -1022 to 1023. */
KHUB__INLINE double khub__power_of_two(int n)
{
    return khub__double_of((uint64_t)(n + 1023) << 52);
}

KHUB__INLINE uint64_t khub__sign_bit(khub__format f)
{
    return UINT64_C(1) << (8 * f.bytes - 1);
}

/* The number of finite bits, exactly: the magnitude stands where a double's would, but for the bias. */
KHUB__INLINE double khub__number_of(khub__format f, uint64_t bits)
{
    uint64_t sign = bits & khub__sign_bit(f), magnitude = bits ^ sign;
    double x = khub__double_of(magnitude << (52 - f.mantissa)) * khub__power_of_two(1023 - f.bias);
    return khub__double_of(khub__bits_of(x) | sign << (64 - 8 * f.bytes));
}

/* Numbers in order: neighbours differ by 1, both zeros are 0. */
KHUB__INLINE int64_t khub__order_of(khub__format f, uint64_t bits)
{
    uint64_t sign = bits & khub__sign_bit(f);
    uint64_t negative = 0 - (sign >> (8 * f.bytes - 1)); /* all ones, or zero: no branch, signs are random */
    return (int64_t)(((bits ^ sign) ^ negative) - negative);
}

/* |b| rounded to the format, to nearest, ties to even; *ulp is the step from there away from zero. What is
 * past the largest number comes out larger than it. b is finite. */
KHUB__INLINE double khub__round_to(khub__format f, double b, double *ulp)
{
    const double two52 = 4503599627370496.0; /* added and taken away, it leaves an integer */
    double size = khub__size_of(b);
    int exponent = (int)(khub__bits_of(size) >> 52) - 1023, least = 1 - f.bias;
    if (exponent < least) exponent = least; /* subnormal numbers are as far apart as the least normal ones */
    double step = khub__power_of_two(exponent - f.mantissa);
    double steps = size * khub__power_of_two(f.mantissa - exponent) + two52 - two52;
    *ulp = steps < khub__power_of_two(f.mantissa + 1) ? step : 2 * step;
    return steps * step;
}

#endif
