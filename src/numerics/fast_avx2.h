/* What the sources that are compiled with AVX2 share. */
#ifndef NUMERICS_FAST_AVX2_H
#define NUMERICS_FAST_AVX2_H

#include "numerics/fast.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "numerics/format.h"

#include <immintrin.h>
#include <math.h>

KHUB__INLINE __m256i khub__load(const void *at)
{
    return _mm256_loadu_si256(at);
}

KHUB__INLINE __m256d khub__sizes_of(__m256d x)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
}

/* Asks for what lies `bytes` further on, which the next block most likely starts with: this one's sums are
 * worked out while it comes. Nothing is read, so it may lie past the tensor's end. */
KHUB__INLINE void khub__ask_for(const char *at, size_t bytes)
{
    _mm_prefetch((const char *)((uintptr_t)at + bytes), _MM_HINT_T0);
}

/* Eight lanes added as pairs.c does: i and i + 4 first, then i + 2, then i + 1. */
KHUB__INLINE double khub__lanes_sum(__m256d low, __m256d high)
{
    __m256d four = _mm256_add_pd(low, high);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* Counts finite pairs, `same` of which have the same bits; has_zeros: zeros of both signs may be beside each
 * other. */
KHUB__INLINE void khub__count_pairs(khub_comparison *c, khub__format f, const char *a, const char *b,
                                    size_t count, size_t same, int has_zeros)
{
    size_t first = 0;
    c->finite += count;
    c->identical += same;
    for (size_t i = 0; has_zeros && i < count; i++) {
        uint64_t x = khub__bits_at(a, i, f.bytes), y = khub__bits_at(b, i, f.bytes);
        c->zero_signs += x != y && khub__order_of(f, x) == khub__order_of(f, y);
    }
    if (c->first_different != c->count) return;
    if (same == count)
        first = count;
    else
        while (khub__bits_at(a, first, f.bytes) == khub__bits_at(b, first, f.bytes))
            first++;
    c->first_different += first;
}

/* What only the plain way can tell of a block: which errors are worse than the worst so far, and the sum of
 * the products. */
enum { KHUB__WORSE = 1, KHUB__PRODUCT = 2 };

KHUB__INLINE void khub__ask_plain_way(khub_comparison *c, int missing, const char *a, const char *b,
                                      size_t count, size_t a_bytes, size_t b_bytes, khub__pairs_read *read,
                                      khub__pairs *pairs)
{
    const uint64_t from = c->count;
    khub__lane_sums sums = {{{0}}};
    for (size_t i = 0; i < count; i += KHUB__PART) {
        size_t part = count - i < KHUB__PART ? count - i : KHUB__PART;
        khub_comparison counted = *c; /* by now, so what `read` counts goes nowhere */
        read(pairs, &counted, a + i * a_bytes, b + i * b_bytes, part);
        if (missing & KHUB__WORSE) khub__pairs_worst(c, pairs);
        if (missing & KHUB__PRODUCT) khub__lanes_take(&sums, pairs);
        c->count += part;
    }
    c->count = from;
    if (missing & KHUB__PRODUCT) khub__lanes_add_product(c, &sums);
}

/* The sums of a block of finite float8, but for those of steps and products. `biggest` is the largest
 * magnitude, `equal`: a is b, but for the sign of zeros; otherwise no pair is more steps apart than a binade
 * has. 0: doubles, added in another order, might come to something else. */
int khub__float8_totals(double totals[KHUB__LANE_SUMS], khub__format f, const char *a, const char *b,
                        size_t count, uint32_t biggest, int equal);

extern const khub__fast khub__fast_avx2_float64;
const khub__fast *khub__fast_avx2_integers(khub_dtype dtype);
#endif
#endif
