/* Blocks of float64 with AVX2, which this source, too, is compiled for. */
#include "numerics/fast_avx2_lanes.h"
#include "numerics/fast_avx2_rows.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

/* Numbers in order, as khub__order_of. */
KHUB__INLINE __m256i orders_of(__m256i x)
{
    __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), x);
    __m256i size = _mm256_and_si256(x, _mm256_set1_epi64x(INT64_MAX));
    return _mm256_sub_epi64(_mm256_xor_si256(size, negative), negative);
}

KHUB__INLINE khub__four four_at(const char *at_a, const char *at_b)
{
    __m256i x = khub__load(at_a), y = khub__load(at_b);
    __m256i order_x = orders_of(x), order_y = orders_of(y), less = _mm256_cmpgt_epi64(order_y, order_x);
    __m256i steps = _mm256_sub_epi64(_mm256_xor_si256(_mm256_sub_epi64(order_x, order_y), less), less);
    __m256d a = _mm256_castsi256_pd(x), b = _mm256_castsi256_pd(y);
    return (khub__four){a,
                        b,
                        khub__sizes_of(_mm256_sub_pd(a, b)),
                        khub__doubles_less(steps, 0),
                        _mm256_cmpeq_epi64(x, y),
                        _mm256_cmpeq_epi64(order_x, order_y)};
}

enum { STEP = 8 * (int)sizeof(double) };

/* Every eighth pair, and the three after it. */
KHUB__INLINE khub__lanes add_side(const khub__bounds *worst, const char *a, const char *b, size_t bytes,
                                  int ask)
{
    khub__lanes l = khub__no_lanes();
    for (size_t i = 0; i + STEP <= bytes; i += STEP) {
        if (ask) khub__ask_for(a + i, bytes);
        if (ask) khub__ask_for(b + i, bytes);
        const khub__four pairs = four_at(a + i, b + i);
        khub__lanes_take_four(&l, worst, &pairs, 1);
    }
    return l;
}

/* The last pairs, fewer than 8, with zeros after them, which add nothing but to what is counted. */
KHUB__INLINE void add_rest(khub__lanes l[2], const khub__bounds *worst, const char *a, const char *b,
                           size_t bytes)
{
    char rest_a[STEP] = {0}, rest_b[STEP] = {0};
    khub__lanes before[2] = {l[0], l[1]};
    memcpy(rest_a, a, bytes);
    memcpy(rest_b, b, bytes);
    for (int side = 0; side < 2; side++) {
        const khub__four pairs = four_at(rest_a + side * STEP / 2, rest_b + side * STEP / 2);
        khub__lanes_take_four(&l[side], worst, &pairs, 1);
        l[side].top_a = before[side].top_a, l[side].top_b = before[side].top_b;
    }
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
    khub__bounds worst = khub__bounds_of(c);
    khub__lanes l[2] = {add_side(&worst, at_a, at_b, whole, 0),
                        add_side(&worst, at_a + STEP / 2, at_b + STEP / 2, whole, 1)};
    if (padding) add_rest(l, &worst, at_a + whole, at_b + whole, bytes - whole);
    double totals[KHUB__LANE_SUMS];
    if (!khub__lanes_total(totals, l)) return 0;
    int missing = khub__lanes_settle(c, l, totals);
    size_t same = khub__sum_of_lanes(l[0].same, l[1].same) - padding,
           level = khub__sum_of_lanes(l[0].level, l[1].level) - padding;
    khub__count_pairs(c, KHUB__FORMAT_float64, a, b, count, same, 0);
    c->zero_signs += level - same;
    if (missing) khub__ask_plain_way(c, missing, a, b, count, 8, 8, read, pairs);
    if (!tops) return 1;
    tops->a = top_order(khub__largest_lane(l[0].top_a, l[1].top_a), a, whole / 8, count);
    tops->b = top_order(khub__largest_lane(l[0].top_b, l[1].top_b), b, whole / 8, count);
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

const khub__fast khub__fast_avx2_float64 = {block_float64, find_float64, find_float64, rows_float64};
#endif
