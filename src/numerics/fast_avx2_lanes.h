/* Blocks of pairs that are numbers in double, with AVX2. One reading for the lanes 0 to 3 of the sums, one
 * for 4 to 7: so what is counted stays in registers. */
#ifndef NUMERICS_FAST_AVX2_LANES_H
#define NUMERICS_FAST_AVX2_LANES_H

#include "numerics/fast_avx2.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

/* Four pairs. */
typedef struct khub__four {
    __m256d a, b, distance, ulp;
    __m256i same, level; /* all ones: of the same bits; of the same order */
} khub__four;

/* What becomes of the pairs of four lanes. */
typedef struct khub__lanes {
    __m256d ulp, absolute, square, a, b; /* sums */
    __m256d most_ulp, worse; /* the largest distance; all ones where an error is worse than the worst */
    __m256d top_a, top_b;
    __m256i same, level; /* how many are of the same bits, of the same order */
} khub__lanes;

typedef struct khub__bounds {
    __m256d absolute, relative;
} khub__bounds;

KHUB__INLINE khub__lanes khub__no_lanes(void)
{
    const __m256d zero = _mm256_setzero_pd(), least = _mm256_set1_pd(-INFINITY);
    const __m256i none = _mm256_setzero_si256();
    return (khub__lanes){zero, zero, zero, zero, zero, zero, zero, least, least, none, none};
}

KHUB__INLINE khub__bounds khub__bounds_of(const khub_comparison *c)
{
    return (khub__bounds){_mm256_set1_pd(c->absolute.value), _mm256_set1_pd(khub__relative_bound(c))};
}

/* may_be_tiny: numbers of float64 may. */
KHUB__INLINE void khub__lanes_take_four(khub__lanes *l, const khub__bounds *worst, const khub__four *p,
                                        int may_be_tiny)
{
    l->ulp = _mm256_add_pd(l->ulp, p->ulp);
    l->most_ulp = _mm256_max_pd(l->most_ulp, p->ulp);
    l->same = _mm256_sub_epi64(l->same, p->same);
    l->level = _mm256_sub_epi64(l->level, p->level);
    l->absolute = _mm256_add_pd(l->absolute, p->distance);
    l->square = _mm256_add_pd(l->square, _mm256_mul_pd(p->distance, p->distance));
    l->a = _mm256_add_pd(l->a, _mm256_mul_pd(p->a, p->a));
    l->b = _mm256_add_pd(l->b, _mm256_mul_pd(p->b, p->b));
    l->top_a = _mm256_max_pd(l->top_a, p->a);
    l->top_b = _mm256_max_pd(l->top_b, p->b);
    __m256d limit = _mm256_mul_pd(worst->relative, khub__sizes_of(p->b));
    if (may_be_tiny) /* as khub__relative_limit */
        limit = _mm256_and_pd(limit, _mm256_cmp_pd(limit, _mm256_set1_pd(KHUB__LEAST_LIMIT), _CMP_GE_OQ));
    __m256d bound = _mm256_min_pd(worst->absolute, limit);
    l->worse = _mm256_or_pd(l->worse, _mm256_cmp_pd(p->distance, bound, _CMP_GT_OQ));
}

/* Unsigned integers as doubles less `offset`, rounded once: the upper half as a multiple of 2^32 above 2^84,
 * the lower above 2^52. */
KHUB__INLINE __m256d khub__doubles_less(__m256i u, double offset)
{
    const __m256d above = _mm256_set1_pd(0x1p84), all = _mm256_set1_pd(0x1p84 + 0x1p52 + offset);
    __m256i high = _mm256_or_si256(_mm256_srli_epi64(u, 32), _mm256_castpd_si256(above));
    __m256i low = _mm256_blend_epi32(_mm256_castpd_si256(_mm256_set1_pd(0x1p52)), u, 0x55);
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), all), _mm256_castsi256_pd(low));
}

KHUB__INLINE double khub__largest_lane(__m256d low, __m256d high)
{
    double lane[4];
    _mm256_storeu_pd(lane, _mm256_max_pd(low, high));
    double first = lane[0] > lane[1] ? lane[0] : lane[1], second = lane[2] > lane[3] ? lane[2] : lane[3];
    return first > second ? first : second;
}

KHUB__INLINE size_t khub__sum_of_lanes(__m256i low, __m256i high)
{
    uint64_t lane[4];
    _mm256_storeu_si256((__m256i *)(void *)lane, _mm256_add_epi64(low, high));
    return (size_t)(lane[0] + lane[1] + lane[2] + lane[3]);
}

/* The totals of the lanes. 0: a difference isn't finite, as one of other than finite numbers never is, and
 * sometimes one of huge ones. */
KHUB__INLINE int khub__lanes_total(double totals[KHUB__LANE_SUMS], const khub__lanes l[2])
{
    totals[KHUB__SUM_ULP] = khub__lanes_sum(l[0].ulp, l[1].ulp);
    totals[KHUB__SUM_ABSOLUTE] = khub__lanes_sum(l[0].absolute, l[1].absolute);
    totals[KHUB__SUM_SQUARE] = khub__lanes_sum(l[0].square, l[1].square);
    totals[KHUB__SUM_A] = khub__lanes_sum(l[0].a, l[1].a);
    totals[KHUB__SUM_B] = khub__lanes_sum(l[0].b, l[1].b);
    return totals[KHUB__SUM_ABSOLUTE] < INFINITY;
}

/* Adds the totals; returns what is missing. */
KHUB__INLINE int khub__lanes_settle(khub_comparison *c, const khub__lanes l[2],
                                    const double totals[KHUB__LANE_SUMS])
{
    int missing = khub__totals_add(c, totals) ? 0 : KHUB__PRODUCT;
    if (_mm256_movemask_pd(_mm256_or_pd(l[0].worse, l[1].worse)) ||
        khub__largest_lane(l[0].most_ulp, l[1].most_ulp) > c->ulp.value)
        missing |= KHUB__WORSE;
    return missing;
}

#endif
#endif
