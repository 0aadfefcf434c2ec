/* v16 as one AVX-512 register (F, BW, DQ, VL). */
#ifndef KHUB_KERNELS_VEC_AVX512_H
#define KHUB_KERNELS_VEC_AVX512_H

#include <immintrin.h>

#include "transpose8.h"

typedef struct v16 {
    __m512 a;
} v16;

VEC v16 v_set(float a)
{
    return (v16){_mm512_set1_ps(a)};
}
VEC v16 v_load(const void *p)
{
    return (v16){_mm512_loadu_ps(p)};
}
VEC void v_store(void *p, v16 v)
{
    _mm512_storeu_ps(p, v.a);
}
VEC void v_stream(void *p, v16 v)
{
    float *f = p;
    _mm512_stream_ps(f, v.a);
}
VEC void v_stream_end(void)
{
    _mm_sfence();
}
VEC v16 v_load_bf16(const void *p)
{
    return (v16){_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16))};
}
VEC void v_store_bf16(void *p, v16 v)
{
    __m512i u = _mm512_castps_si512(v.a), high = _mm512_srli_epi32(u, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i near =
        _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    __mmask16 nan = _mm512_cmp_ps_mask(v.a, v.a, _CMP_UNORD_Q);
    near = _mm512_mask_or_epi32(near, nan, high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(near));
}
VEC v16 v_add(v16 x, v16 y)
{
    return (v16){_mm512_add_ps(x.a, y.a)};
}
VEC v16 v_sub(v16 x, v16 y)
{
    return (v16){_mm512_sub_ps(x.a, y.a)};
}
VEC v16 v_mul(v16 x, v16 y)
{
    return (v16){_mm512_mul_ps(x.a, y.a)};
}
VEC v16 v_div(v16 x, v16 y)
{
    return (v16){_mm512_div_ps(x.a, y.a)};
}
VEC v16 v_fma(v16 x, v16 y, v16 z)
{
    return (v16){_mm512_fmadd_ps(x.a, y.a, z.a)};
}
VEC v16 v_max(v16 x, v16 y)
{
    return (v16){_mm512_max_ps(x.a, y.a)};
}
VEC v16 v_min(v16 x, v16 y)
{
    return (v16){_mm512_min_ps(x.a, y.a)};
}
VEC v16 v_abs(v16 x)
{
    return (v16){_mm512_andnot_ps(_mm512_set1_ps(-0.0f), x.a)};
}
VEC v16 v_sign(v16 x, v16 s)
{
    __m512 sign = _mm512_set1_ps(-0.0f);
    return (v16){_mm512_or_ps(_mm512_andnot_ps(sign, x.a), _mm512_and_ps(sign, s.a))};
}
VEC v16 v_less(v16 p, v16 q, v16 x, v16 y)
{
    return (v16){_mm512_mask_blend_ps(_mm512_cmp_ps_mask(p.a, q.a, _CMP_LT_OQ), y.a, x.a)};
}
VEC int v_all_less(v16 p, v16 q)
{
    return _mm512_cmp_ps_mask(p.a, q.a, _CMP_LT_OQ) == 0xffff;
}
VEC v16 v_pick(const float four[4], v16 t)
{
    return (v16){_mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(four)), _mm512_castps_si512(t.a))};
}
VEC v16 v_negative(v16 s, v16 x, v16 y)
{
    __mmask16 negative = _mm512_cmplt_epi32_mask(_mm512_castps_si512(s.a), _mm512_setzero_si512());
    return (v16){_mm512_mask_blend_ps(negative, y.a, x.a)};
}
VEC __m512 power16(__m512i n)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
}
VEC void v_powers(v16 t, v16 *half, v16 *rest)
{
    __m512i n = _mm512_sub_epi32(_mm512_castps_si512(t.a), _mm512_set1_epi32((int)V_ROUNDER_BITS));
    __m512i low = _mm512_srai_epi32(n, 1);
    half->a = power16(low);
    rest->a = power16(_mm512_sub_epi32(n, low));
}
VEC void v_growth(v16 t, v16 *up, v16 *down)
{
    __m512i n = _mm512_sub_epi32(_mm512_castps_si512(t.a), _mm512_set1_epi32((int)V_ROUNDER_BITS));
    __m512i less = _mm512_min_epi32(_mm512_srai_epi32(_mm512_sub_epi32(_mm512_setzero_si512(), n), 1),
                                    _mm512_setzero_si512());
    up->a = power16(_mm512_add_epi32(n, less));
    down->a = power16(less);
}
VEC v16 v_first(v16 v, int64_t count, float rest)
{
    __mmask16 keep = count < 16 ? (__mmask16)((1u << count) - 1) : (__mmask16)0xffff;
    return (v16){_mm512_mask_blend_ps(keep, _mm512_set1_ps(rest), v.a)};
}
VEC float v_sum(v16 v)
{
    __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(v.a), _mm512_extractf32x8_ps(v.a, 1));
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
VEC float v_largest(v16 v)
{
    __m256 s8 = _mm256_max_ps(_mm512_castps512_ps256(v.a), _mm512_extractf32x8_ps(v.a, 1));
    __m128 s4 = _mm_max_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_max_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_max_ss(s2, _mm_movehdup_ps(s2)));
}
VEC v16 v_two_to(v16 t)
{
    return (v16){_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(t.a), 23))};
}
VEC void v_transpose(float *to, const char *from, int64_t step)
{
    for (int i = 0; i < 16; i += 8)
        for (int j = 0; j < 16; j += 8)
            transpose8(to + 16 * j + i, from + i * step + 4 * j, step);
}

#endif
