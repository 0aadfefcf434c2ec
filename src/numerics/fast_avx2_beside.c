/* Blocks of floats beside a wider float32 or float64 with AVX2, FMA and F16C, which this source, too, is
 * compiled for. */
#include "numerics/fast_avx2_lanes.h"
#include "numerics/fast_avx2_rows.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

/* Four elements as doubles, exactly; a NaN of float8_e4m3fn as a number past its largest. */
KHUB__INLINE __m256d doubles_at(khub__format f, const char *at)
{
    if (f.mantissa == 52) return _mm256_loadu_pd((const double *)(const void *)at);
    if (f.mantissa == 23) return _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)at));
    int32_t four = 0;
    if (f.bytes == 1) memcpy(&four, at, 4);
    __m128i x = f.bytes == 1 ? _mm_unpacklo_epi8(_mm_setzero_si128(), _mm_cvtsi32_si128(four))
                             : _mm_loadl_epi64((const __m128i *)(const void *)at);
    if (f.mantissa == 7) return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), x)));
    if (f.mantissa != 3) return _mm256_cvtps_pd(_mm_cvtph_ps(x)); /* e5m2 is float16's upper half */
    x = _mm_and_si128(_mm_srai_epi16(x, 1), _mm_set1_epi16((short)0xbfff));
    return _mm256_mul_pd(_mm256_cvtps_pd(_mm_cvtph_ps(x)), _mm256_set1_pd(256));
}

/* Lanes, and the largest |a| and rounded |b| among them. */
typedef struct beside {
    khub__lanes lanes;
    __m256d most;
} beside;

/* As read_beside and khub__round_to of one pair. What the former divides by is a power of two. */
KHUB__INLINE void take_four(beside *to, const khub__bounds *worst, khub__format f, khub__format w,
                            const char *at_a, const char *at_b)
{
    const __m256d exponent_bits = _mm256_castsi256_pd(_mm256_set1_epi64x(INT64_C(0x7ff) << 52)),
                  two52 = _mm256_set1_pd(4503599627370496.0), sign = _mm256_set1_pd(-0.0),
                  binade = _mm256_set1_pd(khub__power_of_two(f.mantissa + 1));
    const __m256i inverse = _mm256_set1_epi64x((int64_t)((UINT64_C(2046) + (uint64_t)f.mantissa) << 52));
    __m256d a = doubles_at(f, at_a), b = doubles_at(w, at_b), size = khub__sizes_of(b);
    /* what is less than the least normal number is as far apart as that */
    __m256d power =
        _mm256_max_pd(_mm256_and_pd(size, exponent_bits), _mm256_set1_pd(khub__power_of_two(1 - f.bias)));
    __m256d to_steps = _mm256_castsi256_pd(_mm256_sub_epi64(inverse, _mm256_castpd_si256(power)));
    __m256d steps = _mm256_sub_pd(_mm256_add_pd(_mm256_mul_pd(size, to_steps), two52), two52);
    __m256d step = _mm256_mul_pd(power, _mm256_set1_pd(khub__power_of_two(-f.mantissa)));
    __m256d rounded = _mm256_mul_pd(steps, step), distance = khub__sizes_of(_mm256_sub_pd(a, b));
    __m256d is_next = _mm256_cmp_pd(steps, binade, _CMP_GE_OQ); /* its step is twice as wide */
    __m256d half = _mm256_blendv_pd(_mm256_set1_pd(1), _mm256_set1_pd(0.5), is_next);
    __m256d with_sign = _mm256_or_pd(rounded, _mm256_and_pd(b, sign));
    const khub__four four = {a,
                             b,
                             distance,
                             _mm256_mul_pd(_mm256_mul_pd(distance, to_steps), half),
                             _mm256_cmpeq_epi64(_mm256_castpd_si256(a), _mm256_castpd_si256(with_sign)),
                             _mm256_castpd_si256(_mm256_cmp_pd(a, with_sign, _CMP_EQ_OQ))};
    to->most = _mm256_max_pd(to->most, _mm256_max_pd(rounded, khub__sizes_of(a)));
    khub__lanes_take_four(&to->lanes, worst, &four, w.bytes == 8);
}

KHUB__INLINE beside add_side(const khub__bounds *worst, khub__format f, khub__format w, const char *a,
                             const char *b, size_t whole, int ask)
{
    beside to = {khub__no_lanes(), _mm256_setzero_pd()};
    const size_t step_a = 8 * (size_t)f.bytes, step_b = 8 * (size_t)w.bytes;
    for (size_t i = 0; i < whole; i += 8) {
        if (ask) khub__ask_for(a, whole * (size_t)f.bytes);
        if (ask) khub__ask_for(b, whole * (size_t)w.bytes);
        take_four(&to, worst, f, w, a, b);
        a += step_a, b += step_b;
    }
    return to;
}

/* The last pairs, fewer than 8, with zeros after them, which add nothing but to what is counted. */
KHUB__INLINE void add_rest(beside to[2], const khub__bounds *worst, khub__format f, khub__format w,
                           const char *a, const char *b, size_t count)
{
    char rest_a[64] = {0}, rest_b[64] = {0};
    memcpy(rest_a, a, count * (size_t)f.bytes);
    memcpy(rest_b, b, count * (size_t)w.bytes);
    for (int side = 0; side < 2; side++) {
        const khub__lanes before = to[side].lanes;
        take_four(&to[side], worst, f, w, rest_a + side * 4 * f.bytes, rest_b + side * 4 * w.bytes);
        to[side].lanes.top_a = before.top_a, to[side].lanes.top_b = before.top_b;
    }
}

/* The order of the larger of `top`, -infinity being none, and the elements from `from` on. */
KHUB__INLINE int64_t top_order(khub__format f, double top, const char *at, size_t from, size_t count)
{
    double size = khub__size_of(top) * khub__power_of_two(f.bias - 1023); /* as khub__number_of, back */
    int64_t order = (int64_t)(khub__bits_of(size) >> (52 - f.mantissa));
    int64_t largest = top == -INFINITY ? INT64_MIN : top < 0 ? -order : order;
    for (size_t i = from; i < count; i++) {
        order = khub__order_of(f, khub__bits_at(at, i, f.bytes));
        if (order > largest) largest = order;
    }
    return largest;
}

/* The first pair of which b isn't rounded to a. */
static size_t first_different_avx2(const khub_comparison *c, khub__format f, khub__format w, const char *a,
                                   const char *b, size_t count, khub__pairs_read *read, khub__pairs *pairs)
{
    for (size_t i = 0; i < count; i += KHUB__PART) {
        size_t part = count - i < KHUB__PART ? count - i : KHUB__PART;
        khub_comparison counted = *c;
        read(pairs, &counted, a + i * (size_t)f.bytes, b + i * (size_t)w.bytes, part);
        for (size_t k = 0; k < part; k++)
            if (pairs->differs[k]) return i + k;
    }
    return count;
}

KHUB__INLINE int block(khub__format f, khub__format w, khub_comparison *c, const char *a, const char *b,
                       size_t count, khub__pairs_read *read, khub__pairs *pairs, khub__tops *tops)
{
    const size_t whole = count / 8 * 8, padding = whole < count ? 8 - count % 8 : 0;
    const size_t a_bytes = (size_t)f.bytes, b_bytes = (size_t)w.bytes;
    const khub__bounds worst = khub__bounds_of(c);
    beside both[2] = {add_side(&worst, f, w, a, b, whole, 0),
                      add_side(&worst, f, w, a + 4 * a_bytes, b + 4 * b_bytes, whole, 1)};
    if (padding) add_rest(both, &worst, f, w, a + whole * a_bytes, b + whole * b_bytes, count - whole);
    const khub__lanes l[2] = {both[0].lanes, both[1].lanes};
    double totals[KHUB__LANE_SUMS];
    if (!khub__lanes_total(totals, l) ||
        khub__largest_lane(both[0].most, both[1].most) > khub__number_of(f, f.largest))
        return 0;
    size_t same = khub__sum_of_lanes(l[0].same, l[1].same) - padding,
           level = khub__sum_of_lanes(l[0].level, l[1].level) - padding;
    if (c->first_different == c->count)
        c->first_different += same == count ? count : first_different_avx2(c, f, w, a, b, count, read, pairs);
    int missing = khub__lanes_settle(c, l, totals);
    c->finite += count;
    c->identical += same;
    c->zero_signs += level - same;
    if (missing) khub__ask_plain_way(c, missing, a, b, count, a_bytes, b_bytes, read, pairs);
    if (!tops) return 1;
    tops->a = top_order(f, khub__largest_lane(l[0].top_a, l[1].top_a), a, whole, count);
    tops->b = top_order(w, khub__largest_lane(l[0].top_b, l[1].top_b), b, whole, count);
    return 1;
}

KHUB__INLINE size_t same_places(khub__format f, khub__format w, const char *a, const char *b, size_t rows,
                                size_t width)
{
    size_t same = 0, row = khub__same_firsts(&same, f, w, KHUB__POSITIVE_FLOATS, a, b, rows, width);
    for (; row < rows; row++)
        same += khub__place_in_row(f, a + row * width * (size_t)f.bytes, width) ==
                khub__place_in_row(w, b + row * width * (size_t)w.bytes, width);
    return same;
}

#define DEFINE(name, wide)                                                                                   \
    static int block_##name##_##wide(khub_comparison *c, const void *a, const void *b, size_t count,         \
                                     khub__pairs_read *read, khub__pairs *pairs, khub__tops *tops)           \
    {                                                                                                        \
        return block(KHUB__FORMAT_##name, KHUB__FORMAT_##wide, c, a, b, count, read, pairs, tops);           \
    }                                                                                                        \
    static size_t find_##name##_##wide(const void *at, size_t count, int64_t order)                          \
    {                                                                                                        \
        return khub__find(KHUB__FORMAT_##name, at, count, order);                                            \
    }                                                                                                        \
    static size_t find_beside_##name##_##wide(const void *at, size_t count, int64_t order)                   \
    {                                                                                                        \
        return khub__find(KHUB__FORMAT_##wide, at, count, order);                                            \
    }                                                                                                        \
    static size_t rows_##name##_##wide(const void *a, const void *b, size_t rows, size_t width)              \
    {                                                                                                        \
        return same_places(KHUB__FORMAT_##name, KHUB__FORMAT_##wide, a, b, rows, width);                     \
    }
DEFINE(float32, float64)
#define DEFINE_BOTH(name, code, bytes) DEFINE(name, float32) DEFINE(name, float64)
KHUB__FLOATS_SMALL(DEFINE_BOTH)

#define ROW(name, code, bytes, bits)                                                                         \
    {                                                                                                        \
        {code, 8 * (bytes), 1}, bits,                                                                        \
        {                                                                                                    \
            block_##name##_float##bits, find_##name##_float##bits, find_beside_##name##_float##bits,         \
                rows_##name##_float##bits                                                                    \
        }                                                                                                    \
    }
#define ROWS(name, code, bytes) ROW(name, code, bytes, 32), ROW(name, code, bytes, 64),
static const struct {
    khub_dtype dtype;
    int bits;
    khub__fast fast;
} table[] = {KHUB__FLOATS_SMALL(ROWS) ROW(float32, KHUB_DTYPE_FLOAT, 4, 64)};

const khub__fast *khub__fast_avx2_beside(khub_dtype dtype, khub_dtype wide)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!memcmp(&table[i].dtype, &dtype, sizeof(dtype)) && wide.code == KHUB_DTYPE_FLOAT &&
            wide.bits == table[i].bits)
            return &table[i].fast;
    return NULL;
}
#else
const khub__fast *khub__fast_avx2_beside(khub_dtype dtype, khub_dtype wide)
{
    (void)dtype;
    (void)wide;
    return NULL;
}
#endif
