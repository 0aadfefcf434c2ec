/* Blocks of float64 with AVX2, which this source, too, is compiled for. One reading for the lanes 0 to 3 of
 * the sums, one for 4 to 7: so what is counted stays in registers. */
#include "numerics/fast_avx2_rows.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

/* What becomes of the pairs of four lanes. */
typedef struct lanes {
    __m256d ulp, absolute, square, a, b; /* sums */
    __m256d most_ulp, worse; /* the largest distance; all ones where an error is worse than the worst */
    __m256d top_a, top_b;
    __m256i same, level; /* how many are of the same bits, of the same order */
} lanes;

typedef struct bounds {
    __m256d absolute, relative;
} bounds;

/* Numbers in order, as khub__order_of. */
KHUB__INLINE __m256i orders_of(__m256i x)
{
    __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), x);
    __m256i size = _mm256_and_si256(x, _mm256_set1_epi64x(INT64_MAX));
    return _mm256_sub_epi64(_mm256_xor_si256(size, negative), negative);
}

/* Unsigned integers as doubles, rounded once: the upper half as a multiple of 2^32 above 2^84, the lower
 * above 2^52. */
KHUB__INLINE __m256d doubles_of(__m256i u)
{
    const __m256d above = _mm256_set1_pd(0x1p84), both = _mm256_set1_pd(0x1p84 + 0x1p52);
    __m256i high = _mm256_or_si256(_mm256_srli_epi64(u, 32), _mm256_castpd_si256(above));
    __m256i low = _mm256_blend_epi32(_mm256_castpd_si256(_mm256_set1_pd(0x1p52)), u, 0x55);
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), both), _mm256_castsi256_pd(low));
}

KHUB__INLINE void add_four(lanes *l, const bounds *worst, const char *at_a, const char *at_b)
{
    __m256i x = khub__load(at_a), y = khub__load(at_b);
    __m256i order_x = orders_of(x), order_y = orders_of(y), less = _mm256_cmpgt_epi64(order_y, order_x);
    __m256i steps = _mm256_sub_epi64(_mm256_xor_si256(_mm256_sub_epi64(order_x, order_y), less), less);
    __m256d ulp = doubles_of(steps);
    l->ulp = _mm256_add_pd(l->ulp, ulp);
    l->most_ulp = _mm256_max_pd(l->most_ulp, ulp);
    l->same = _mm256_sub_epi64(l->same, _mm256_cmpeq_epi64(x, y));
    l->level = _mm256_sub_epi64(l->level, _mm256_cmpeq_epi64(order_x, order_y));

    __m256d a = _mm256_castsi256_pd(x), b = _mm256_castsi256_pd(y);
    __m256d distance = khub__sizes_of(_mm256_sub_pd(a, b));
    l->absolute = _mm256_add_pd(l->absolute, distance);
    l->square = _mm256_add_pd(l->square, _mm256_mul_pd(distance, distance));
    l->a = _mm256_add_pd(l->a, _mm256_mul_pd(a, a));
    l->b = _mm256_add_pd(l->b, _mm256_mul_pd(b, b));
    l->top_a = _mm256_max_pd(l->top_a, a);
    l->top_b = _mm256_max_pd(l->top_b, b);
    __m256d bound = _mm256_min_pd(worst->absolute, _mm256_mul_pd(worst->relative, khub__sizes_of(b)));
    l->worse = _mm256_or_pd(l->worse, _mm256_cmp_pd(distance, bound, _CMP_GT_OQ));
}

enum { STEP = 8 * (int)sizeof(double) };

/* Every eighth pair, and the three after it. */
KHUB__INLINE lanes add_side(const bounds *worst, const char *a, const char *b, size_t bytes, int ask)
{
    const __m256d zero = _mm256_setzero_pd(), least = _mm256_set1_pd(-INFINITY);
    const __m256i none = _mm256_setzero_si256();
    lanes l = {zero, zero, zero, zero, zero, zero, zero, least, least, none, none};
    for (size_t i = 0; i + STEP <= bytes; i += STEP) {
        if (ask) khub__ask_for(a + i, bytes);
        if (ask) khub__ask_for(b + i, bytes);
        add_four(&l, worst, a + i, b + i);
    }
    return l;
}

/* The last pairs, fewer than 8, with zeros after them, which add nothing but to what is counted. */
KHUB__INLINE void add_rest(lanes l[2], const bounds *worst, const char *a, const char *b, size_t bytes)
{
    char rest_a[STEP] = {0}, rest_b[STEP] = {0};
    lanes before[2] = {l[0], l[1]};
    memcpy(rest_a, a, bytes);
    memcpy(rest_b, b, bytes);
    for (int side = 0; side < 2; side++) {
        add_four(&l[side], worst, rest_a + side * STEP / 2, rest_b + side * STEP / 2);
        l[side].top_a = before[side].top_a, l[side].top_b = before[side].top_b;
    }
}

KHUB__INLINE double largest_lane(__m256d low, __m256d high)
{
    double lane[4];
    _mm256_storeu_pd(lane, _mm256_max_pd(low, high));
    double first = lane[0] > lane[1] ? lane[0] : lane[1], second = lane[2] > lane[3] ? lane[2] : lane[3];
    return first > second ? first : second;
}

KHUB__INLINE size_t sum_of_lanes(__m256i low, __m256i high)
{
    uint64_t lane[4];
    _mm256_storeu_si256((__m256i *)(void *)lane, _mm256_add_epi64(low, high));
    return (size_t)(lane[0] + lane[1] + lane[2] + lane[3]);
}

/* The order of the larger of `top`, -infinity being none, and the elements from `from` on. */
KHUB__INLINE int64_t top_order(double top, const char *at, size_t from, size_t count)
{
    const khub__format f = KHUB__FORMAT_float64;
    int64_t largest = top == -INFINITY ? INT64_MIN : khub__order_of(f, khub__bits_of(top));
    for (size_t i = from; i < count; i++) {
        int64_t order = khub__order_of(f, khub__bits_at(at, i, 8));
        if (order > largest) largest = order;
    }
    return largest;
}

static int block_float64(khub_comparison *c, const void *a, const void *b, size_t count,
                         khub__pairs_read *read, khub__pairs *pairs, khub__tops *tops)
{
    const size_t bytes = 8 * count, whole = bytes / STEP * STEP, padding = whole < bytes ? 8 - count % 8 : 0;
    const char *at_a = a, *at_b = b;
    bounds worst = {_mm256_set1_pd(c->absolute.value), _mm256_set1_pd(khub__relative_bound(c))};
    lanes l[2] = {add_side(&worst, at_a, at_b, whole, 0),
                  add_side(&worst, at_a + STEP / 2, at_b + STEP / 2, whole, 1)};
    if (padding) add_rest(l, &worst, at_a + whole, at_b + whole, bytes - whole);
    double totals[KHUB__LANE_SUMS];
    totals[KHUB__SUM_ABSOLUTE] = khub__lanes_sum(l[0].absolute, l[1].absolute);
    /* NaN or infinity, which a pair of other than finite numbers leaves; sometimes one of huge ones, too. */
    if (!(totals[KHUB__SUM_ABSOLUTE] < INFINITY)) return 0;
    totals[KHUB__SUM_ULP] = khub__lanes_sum(l[0].ulp, l[1].ulp);
    totals[KHUB__SUM_SQUARE] = khub__lanes_sum(l[0].square, l[1].square);
    totals[KHUB__SUM_A] = khub__lanes_sum(l[0].a, l[1].a);
    totals[KHUB__SUM_B] = khub__lanes_sum(l[0].b, l[1].b);
    int missing = khub__totals_add(c, totals) ? 0 : KHUB__PRODUCT;
    if (_mm256_movemask_pd(_mm256_or_pd(l[0].worse, l[1].worse)) ||
        largest_lane(l[0].most_ulp, l[1].most_ulp) > c->ulp.value)
        missing |= KHUB__WORSE;
    size_t same = sum_of_lanes(l[0].same, l[1].same) - padding,
           level = sum_of_lanes(l[0].level, l[1].level) - padding;
    khub__count_pairs(c, KHUB__FORMAT_float64, a, b, count, same, 0);
    c->zero_signs += level - same;
    if (missing) khub__ask_plain_way(c, missing, a, b, count, 8, read, pairs);
    tops->a = top_order(largest_lane(l[0].top_a, l[1].top_a), a, whole / 8, count);
    tops->b = top_order(largest_lane(l[0].top_b, l[1].top_b), b, whole / 8, count);
    return 1;
}

static size_t find_float64(const void *at, size_t count, int64_t order)
{
    return khub__find(KHUB__FORMAT_float64, at, count, order);
}

static size_t rows_float64(const void *a, const void *b, size_t rows, size_t width)
{
    return khub__same_places(KHUB__FORMAT_float64, a, b, rows, width);
}

const khub__fast khub__fast_avx2_float64 = {block_float64, find_float64, rows_float64};
#endif
