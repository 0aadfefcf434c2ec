/* w16 as two AVX2 registers. */
#ifndef KHUB_KERNELS_LANES_AVX2_H
#define KHUB_KERNELS_LANES_AVX2_H

#include "x86.h"

typedef struct w16 {
    __m256i a, b; /* lanes 0 … 7, 8 … 15 */
} w16;

VEC w16 w_load(const void *p)
{
    const __m256i *at = p;
    return (w16){_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
}
VEC void w_store(void *p, w16 w)
{
    __m256i *at = p;
    _mm256_storeu_si256(at, w.a);
    _mm256_storeu_si256(at + 1, w.b);
}
VEC w16 w_set(int32_t a)
{
    return (w16){_mm256_set1_epi32(a), _mm256_set1_epi32(a)};
}
VEC w16 w_add(w16 x, w16 y)
{
    return (w16){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
VEC v16 w_floats(w16 w)
{
    return (v16){_mm256_cvtepi32_ps(w.a), _mm256_cvtepi32_ps(w.b)};
}
VEC __m256i pairs8(__m256i w, int odd)
{
    return _mm256_srai_epi16(odd ? w : _mm256_slli_epi16(w, 8), 8);
}
VEC w16 w_pairs(w16 w, int odd)
{
    return (w16){pairs8(w.a, odd), pairs8(w.b, odd)};
}
VEC w16 w_quarters(w16 w, int t)
{
    const __m256i low = _mm256_set1_epi16(15);
    return (w16){_mm256_and_si256(_mm256_srli_epi16(w.a, 4 * t), low),
                 _mm256_and_si256(_mm256_srli_epi16(w.b, 4 * t), low)};
}
VEC w16 w_nibbles(w16 w, int high)
{
    const __m256i low = _mm256_set1_epi8(15);
    return (w16){_mm256_and_si256(_mm256_srli_epi32(w.a, 4 * high), low),
                 _mm256_and_si256(_mm256_srli_epi32(w.b, 4 * high), low)};
}
VEC __m256i dot_pairs8(__m256i sum, __m256i x, __m256i w)
{
    return in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(x, w)));
}
VEC w16 dot_pairs(w16 sum, const void *x, w16 w)
{
    __m256i all = _mm256_set1_epi32(four_bytes(x));
    return (w16){dot_pairs8(sum.a, all, w.a), dot_pairs8(sum.b, all, w.b)};
}
VEC w16 dot_bytes(w16 sum, const void *x, w16 w)
{
    __m256i all = _mm256_set1_epi32(four_bytes(x));
    return (w16){VNNI_DOT(sum.a, all, w.a), VNNI_DOT(sum.b, all, w.b)};
}
VEC __m256i dot_nibbles8(__m256i sum, __m256i x, __m256i w, int how)
{
    if (how == DOT_VNNI) return VNNI_DOT(sum, w, x);
    return in_order(_mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x)));
}
VEC w16 dot_nibbles(w16 sum, const void *x, w16 w, int how)
{
    __m256i all = _mm256_set1_epi32(four_bytes(x));
    return (w16){dot_nibbles8(sum.a, all, w.a, how), dot_nibbles8(sum.b, all, w.b, how)};
}
VEC w16 dot_sums(w16 sum, int how)
{
    const __m256i ones = _mm256_set1_epi16(1);
    if (how == DOT_VNNI) return sum;
    return (w16){_mm256_madd_epi16(sum.a, ones), _mm256_madd_epi16(sum.b, ones)};
}
VEC void w_store_bytes(void *p, v16 v)
{
    store_bytes(p, v.a, v.b);
}
VEC void w_store_wide(void *p, v16 v)
{
    store_wide(p, v.a, v.b);
}

#endif
