/* w16 as one AVX-512 register. */
#ifndef KHUB_KERNELS_LANES_AVX512_H
#define KHUB_KERNELS_LANES_AVX512_H

#include "x86.h"

typedef struct w16 {
    __m512i a;
} w16;

VEC w16 w_load(const void *p)
{
    return (w16){_mm512_loadu_si512(p)};
}
VEC void w_store(void *p, w16 w)
{
    _mm512_storeu_si512(p, w.a);
}
VEC w16 w_set(int32_t a)
{
    return (w16){_mm512_set1_epi32(a)};
}
VEC w16 w_add(w16 x, w16 y)
{
    return (w16){_mm512_add_epi32(x.a, y.a)};
}
VEC v16 w_floats(w16 w)
{
    return (v16){_mm512_cvtepi32_ps(w.a)};
}
VEC w16 w_pairs(w16 w, int odd)
{
    return (w16){_mm512_srai_epi16(odd ? w.a : _mm512_slli_epi16(w.a, 8), 8)};
}
VEC w16 w_quarters(w16 w, int t)
{
    return (w16){_mm512_and_si512(_mm512_srli_epi32(w.a, (unsigned)(4 * t)), _mm512_set1_epi32(0x000f000f))};
}
VEC w16 w_nibbles(w16 w, int high)
{
    return (w16){
        _mm512_and_si512(_mm512_srli_epi32(w.a, (unsigned)(4 * high)), _mm512_set1_epi32(0x0f0f0f0f))};
}
VEC w16 dot_pairs(w16 sum, const void *x, w16 w)
{
    __m512i all = _mm512_set1_epi32(four_bytes(x));
    return (w16){_mm512_add_epi32(sum.a, _mm512_madd_epi16(all, w.a))};
}
VEC w16 dot_bytes(w16 sum, const void *x, w16 w)
{
    return (w16){VNNI_DOT(sum.a, _mm512_set1_epi32(four_bytes(x)), w.a)};
}
VEC w16 dot_nibbles(w16 sum, const void *x, w16 w, int how)
{
    __m512i all = _mm512_set1_epi32(four_bytes(x));
    if (how == DOT_VNNI) return (w16){VNNI_DOT(sum.a, w.a, all)};
    return (w16){_mm512_add_epi16(sum.a, _mm512_maddubs_epi16(w.a, all))};
}
VEC w16 dot_sums(w16 sum, int how)
{
    if (how == DOT_VNNI) return sum;
    return (w16){_mm512_madd_epi16(sum.a, _mm512_set1_epi32(0x00010001))};
}
VEC void w_store_bytes(void *p, v16 v)
{
    store_bytes(p, _mm512_castps512_ps256(v.a), _mm512_extractf32x8_ps(v.a, 1));
}
VEC void w_store_wide(void *p, v16 v)
{
    store_wide(p, _mm512_castps512_ps256(v.a), _mm512_extractf32x8_ps(v.a, 1));
}

#endif
