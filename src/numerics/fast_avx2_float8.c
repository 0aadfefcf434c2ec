/* The sums of a block of float8 in integers, with AVX2, which this source, too, is compiled for.
 *
 * A number is m * base^f units: m from the low half of its byte, f, and its sign, from the high one. base^f
 * is 256^band times a weight of 7 bits, so in one band numbers are integers of 16 bits, and a block's sums of
 * their squares of 32 (30 * 64 at most: 128 times four squares of it are less than 2^31). What they add up to
 * is what adding doubles gives in any order, as long as no sum needs more than a double's 53 bits. */
#include "numerics/fast_avx2.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

enum { BANDS = 3, STEP = 32 };

/* Of a format and, as of float8_e5m2's 8 f only 4 or 6 are in the bands, of a block. */
typedef struct scale {
    int bands, bits; /* the weight of f is 2^bits that of f - 1 */
    int first;       /* of those f */
} scale;

/* Constants of a block, each in both halves of a vector. */
typedef struct tables {
    __m256i m;           /* by the low four bits */
    __m256i band[BANDS]; /* weights by the high four */
    __m256i least_normal;
} tables;

/* m by the low half of a byte, the mantissa and the exponent's last bits. */
static const int8_t m_of_e4m3fn[16] = {8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30},
                    m_of_e5m2[16] = {4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56};

/* The weights of a band, of its first f on, among those before and behind it; and the same of negative
 * numbers. */
static const int8_t weights_of_2[2][20] = {{0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 16, 64},
                                           {0, 0, 0, 0, 0, 0, 0, 0, -1, -4, -16, -64}},
                    weights_of_4[2][20] = {{0, 0, 0, 0, 0, 0, 0, 0, 1, 16},
                                           {0, 0, 0, 0, 0, 0, 0, 0, -1, -16}};

/* By f and the sign: `from`, the first of the band, is 8 where the band has none. */
KHUB__INLINE __m256i band_from(const int8_t weights[2][20], int from)
{
    __m128i plus = _mm_loadl_epi64((const __m128i *)(const void *)(weights[0] + 8 - from)),
            minus = _mm_loadl_epi64((const __m128i *)(const void *)(weights[1] + 8 - from));
    return _mm256_broadcastsi128_si256(_mm_unpacklo_epi64(plus, minus));
}

KHUB__INLINE tables tables_of(khub__format f, scale s)
{
    const int8_t *m = f.mantissa == 3 ? m_of_e4m3fn : m_of_e5m2;
    tables t = {.m = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)m)),
                .least_normal = _mm256_set1_epi8((char)(1 << f.mantissa))};
    for (int i = 0; i < s.bands; i++)
        t.band[i] = band_from(s.bits == 2 ? weights_of_2 : weights_of_4, s.first + 8 / s.bits * i);
    return t;
}

/* 32 elements, those at even places and those at odd ones, as integers of 16 bits: each in its band, 0 in the
 * others. */
typedef struct integers {
    __m256i even[BANDS], odd[BANDS];
} integers;

KHUB__INLINE integers integers_of(const tables *t, scale s, __m256i x)
{
    const __m256i low = _mm256_set1_epi8(15), even = _mm256_set1_epi16(0xff),
                  size = _mm256_and_si256(x, _mm256_set1_epi8(INT8_MAX));
    /* less what numbers below the least normal one don't have: they are 2 m in units of half a step */
    __m256i m = _mm256_sub_epi8(_mm256_shuffle_epi8(t->m, _mm256_and_si256(x, low)),
                                _mm256_subs_epu8(t->least_normal, size));
    __m256i f = _mm256_and_si256(_mm256_srli_epi16(x, 4), low);
    __m256i m_even = _mm256_and_si256(m, even), m_odd = _mm256_andnot_si256(even, m);
    integers n;
#pragma GCC unroll 3
    for (int i = 0; i < s.bands; i++) {
        __m256i weight = _mm256_shuffle_epi8(t->band[i], f);
        n.even[i] = _mm256_maddubs_epi16(m_even, weight);
        n.odd[i] = _mm256_maddubs_epi16(m_odd, weight);
    }
    return n;
}

/* Adds the products of x's band i and y's band k. */
KHUB__INLINE __m256i add_products(__m256i sum, const integers *x, int i, const integers *y, int k)
{
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x->even[i], y->even[k]));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x->odd[i], y->odd[k]));
}

/* By band, in lanes of 32 bits. */
typedef struct sums {
    __m256i a[BANDS], b[BANDS], square[BANDS], distance[BANDS]; /* a², b², (a - b)², |a - b| */
    __m256i beside[BANDS];                                      /* of a - b, by that in the next band */
} sums;

KHUB__INLINE void add_equal(sums *to, const tables *t, scale s, __m256i x)
{
    const integers a = integers_of(t, s, x);
#pragma GCC unroll 3
    for (int i = 0; i < s.bands; i++)
        to->a[i] = add_products(to->a[i], &a, i, &a, i);
}

KHUB__INLINE void add_pairs(sums *to, const tables *t, scale s, __m256i x, __m256i y)
{
    const __m256i magnitude = _mm256_set1_epi8(INT8_MAX);
    __m256i order_x = _mm256_sign_epi8(_mm256_and_si256(x, magnitude), x),
            order_y = _mm256_sign_epi8(_mm256_and_si256(y, magnitude), y);
    /* both with the other sign where a < b, so a - b is |a - b| */
    __m256i turned = _mm256_andnot_si256(magnitude, _mm256_cmpgt_epi8(order_y, order_x));
    const integers a = integers_of(t, s, _mm256_xor_si256(x, turned)),
                   b = integers_of(t, s, _mm256_xor_si256(y, turned));
    integers d;
#pragma GCC unroll 3
    for (int i = 0; i < s.bands; i++) {
        d.even[i] = _mm256_sub_epi16(a.even[i], b.even[i]);
        d.odd[i] = _mm256_sub_epi16(a.odd[i], b.odd[i]);
        __m256i both = _mm256_add_epi16(d.even[i], d.odd[i]);
        to->distance[i] = _mm256_add_epi32(to->distance[i], _mm256_madd_epi16(both, _mm256_set1_epi16(1)));
        to->a[i] = add_products(to->a[i], &a, i, &a, i);
        to->b[i] = add_products(to->b[i], &b, i, &b, i);
        to->square[i] = add_products(to->square[i], &d, i, &d, i);
        if (i) to->beside[i - 1] = add_products(to->beside[i - 1], &d, i, &d, i - 1);
    }
}

KHUB__INLINE void add_step(sums *to, const tables *t, scale s, const char *a, const char *b, int equal)
{
    if (equal)
        add_equal(to, t, s, khub__load(a));
    else
        add_pairs(to, t, s, khub__load(a), khub__load(b));
}

KHUB__INLINE sums sums_of(khub__format f, scale s, const char *a, const char *b, size_t count, int equal)
{
    const tables t = tables_of(f, s);
    sums to = {0};
    size_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        khub__ask_for(a + i, count);
        khub__ask_for(b + i, count);
        add_step(&to, &t, s, a + i, b + i, equal);
    }
    for (; i < count; i += STEP) { /* zeros after the last ones add nothing */
        char rest_a[STEP] = {0}, rest_b[STEP] = {0};
        size_t rest = count - i < STEP ? count - i : STEP;
        memcpy(rest_a, a + i, rest);
        memcpy(rest_b, b + i, rest);
        add_step(&to, &t, s, rest_a, rest_b, equal);
    }
    return to;
}

KHUB__INLINE int64_t sum_of(__m256i v)
{
    __m256i four = _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(v)),
                                    _mm256_cvtepi32_epi64(_mm256_extracti128_si256(v, 1)));
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return _mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two)));
}

/* Sums of squares in units of the lowest band's, `beside` (NULL: none) of products that count twice. */
KHUB__INLINE uint64_t squares_of(const __m256i band[BANDS], const __m256i *beside, scale s)
{
    uint64_t sum = 0;
    for (int i = 0; i < s.bands; i++) {
        sum += (uint64_t)sum_of(band[i]) << (16 * i);
        if (beside && i + 1 < s.bands) sum += (uint64_t)(2 * sum_of(beside[i])) << (16 * i + 8);
    }
    return sum;
}

/* Of 32 elements, magnitudes less 1: 0 becomes the largest. */
KHUB__INLINE __m256i less_one(const char *at)
{
    return _mm256_add_epi8(_mm256_and_si256(khub__load(at), _mm256_set1_epi8(INT8_MAX)),
                           _mm256_set1_epi8(-1));
}

/* The least magnitude but 0; 256: there is none. */
static uint32_t least_magnitude(const char *a, const char *b, size_t count)
{
    __m256i least = _mm256_set1_epi8(-1);
    size_t i = 0;
    for (; i + STEP <= count; i += STEP)
        least = _mm256_min_epu8(least, _mm256_min_epu8(less_one(a + i), less_one(b + i)));
    if (i < count) {
        char rest_a[STEP] = {0}, rest_b[STEP] = {0};
        memcpy(rest_a, a + i, count - i);
        memcpy(rest_b, b + i, count - i);
        least = _mm256_min_epu8(least, _mm256_min_epu8(less_one(rest_a), less_one(rest_b)));
    }
    /* minpos looks for the least of eight times 16 bits */
    __m128i v = _mm_min_epu8(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
    v = _mm_minpos_epu16(_mm_min_epu8(v, _mm_srli_epi16(v, 8)));
    return (uint32_t)_mm_cvtsi128_si32(v) % 256 + 1;
}

/* All numbers are multiples of 2^spare units. */
KHUB__INLINE int totals_of(double totals[KHUB__LANE_SUMS], khub__format f, scale s, int spare, const char *a,
                           const char *b, size_t count, int equal)
{
    const sums got = sums_of(f, s, a, b, count, equal);
    const uint64_t of_a = squares_of(got.a, NULL, s), of_b = equal ? of_a : squares_of(got.b, NULL, s),
                   square = squares_of(got.square, got.beside, s);
    if ((of_a | of_b | square) >> 53 >> (2 * spare)) return 0;
    const double unit = khub__power_of_two(s.first * s.bits - f.bias - f.mantissa);
    int64_t distance = 0;
    for (int i = s.bands; i-- > 0;)
        distance = distance * 256 + sum_of(got.distance[i]);
    totals[KHUB__SUM_ABSOLUTE] = (double)distance * unit;
    totals[KHUB__SUM_SQUARE] = (double)square * unit * unit;
    totals[KHUB__SUM_A] = (double)of_a * unit * unit;
    totals[KHUB__SUM_B] = (double)of_b * unit * unit;
    return 1;
}

static int totals_of_e4m3fn(double totals[KHUB__LANE_SUMS], const char *a, const char *b, size_t count,
                            int equal)
{
    const khub__format f = KHUB__FORMAT_float8_e4m3fn;
    const scale s = {2, 2, 0};
    return equal ? totals_of(totals, f, s, 0, a, b, count, 1) : totals_of(totals, f, s, 0, a, b, count, 0);
}

/* In two bands where they do: that takes three quarters of the time. */
static int totals_of_e5m2(double totals[KHUB__LANE_SUMS], const char *a, const char *b, size_t count,
                          uint32_t biggest, int equal)
{
    const khub__format f = KHUB__FORMAT_float8_e5m2;
    const uint32_t least = least_magnitude(a, b, count);
    const int top = (int)(biggest >> 4), bottom = biggest ? (int)(least >> 4) : 0, few = top - bottom < 4;
    const int first = few ? (bottom < 4 ? bottom : 4) : top < 6 ? 0 : top - 5;
    const int exponent = (int)(least >> f.mantissa), spare = biggest ? exponent - 4 * first : 0;
    const scale two = {2, 4, first}, three = {3, 4, first};
    if (bottom < first) return 0; /* it is in no band */
    if (equal) return totals_of(totals, f, three, spare, a, b, count, 1);
    return few ? totals_of(totals, f, two, spare, a, b, count, 0)
               : totals_of(totals, f, three, spare, a, b, count, 0);
}

int khub__float8_totals(double totals[KHUB__LANE_SUMS], khub__format f, const char *a, const char *b,
                        size_t count, uint32_t biggest, int equal)
{
    return f.mantissa == 3 ? totals_of_e4m3fn(totals, a, b, count, equal)
                           : totals_of_e5m2(totals, a, b, count, biggest, equal);
}
#endif
