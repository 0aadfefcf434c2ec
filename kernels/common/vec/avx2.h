/* v16 as two AVX2 registers (AVX2 and FMA; bfloat16 needs integers only). */
#ifndef KHUB_KERNELS_VEC_AVX2_H
#define KHUB_KERNELS_VEC_AVX2_H

#include <immintrin.h>

#include "transpose8.h"

typedef struct v16 {
    __m256 a, b; /* lanes 0 … 7, 8 … 15 */
} v16;

VEC v16 v_set(float a)
{
    return (v16){_mm256_set1_ps(a), _mm256_set1_ps(a)};
}
VEC v16 v_load(const void *p)
{
    const float *f = p;
    return (v16){_mm256_loadu_ps(f), _mm256_loadu_ps(f + 8)};
}
VEC void v_store(void *p, v16 v)
{
    float *f = p;
    _mm256_storeu_ps(f, v.a);
    _mm256_storeu_ps(f + 8, v.b);
}
VEC __m256 widen8(__m128i h)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
VEC void v_stream(void *p, v16 v)
{
    float *f = p;
    _mm256_stream_ps(f, v.a);
    _mm256_stream_ps(f + 8, v.b);
}
VEC void v_stream_end(void)
{
    _mm_sfence();
}
VEC v16 v_load_bf16(const void *p)
{
    const __m128i *h = p;
    return (v16){widen8(_mm_loadu_si128(h)), widen8(_mm_loadu_si128(h + 1))};
}
VEC __m256i narrow8(__m256 v)
{
    __m256i u = _mm256_castps_si256(v), high = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i near =
        _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(near, nan, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
}
VEC void v_store_bf16(void *p, v16 v)
{
    __m256i mixed = _mm256_packus_epi32(narrow8(v.a), narrow8(v.b)); /* quarters in the order 0 2 1 3 */
    _mm256_storeu_si256(p, _mm256_permute4x64_epi64(mixed, 0xd8));
}
VEC v16 v_add(v16 x, v16 y)
{
    return (v16){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
VEC v16 v_sub(v16 x, v16 y)
{
    return (v16){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
VEC v16 v_mul(v16 x, v16 y)
{
    return (v16){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
VEC v16 v_div(v16 x, v16 y)
{
    return (v16){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
VEC v16 v_fma(v16 x, v16 y, v16 z)
{
    return (v16){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
VEC v16 v_max(v16 x, v16 y)
{
    return (v16){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
VEC v16 v_min(v16 x, v16 y)
{
    return (v16){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
VEC v16 v_abs(v16 x)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
VEC v16 v_sign(v16 x, v16 s)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    x = v_abs(x);
    return (v16){_mm256_or_ps(x.a, _mm256_and_ps(sign, s.a)), _mm256_or_ps(x.b, _mm256_and_ps(sign, s.b))};
}
VEC v16 v_less(v16 p, v16 q, v16 x, v16 y)
{
    return (v16){_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(p.a, q.a, _CMP_LT_OQ)),
                 _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(p.b, q.b, _CMP_LT_OQ))};
}
VEC int v_all_less(v16 p, v16 q)
{
    __m256 less = _mm256_and_ps(_mm256_cmp_ps(p.a, q.a, _CMP_LT_OQ), _mm256_cmp_ps(p.b, q.b, _CMP_LT_OQ));
    return _mm256_movemask_ps(less) == 0xff;
}
VEC v16 v_pick(const float four[4], v16 t)
{
    __m256 twice = _mm256_set_m128(_mm_loadu_ps(four), _mm_loadu_ps(four));
    return (v16){_mm256_permutevar_ps(twice, _mm256_castps_si256(t.a)),
                 _mm256_permutevar_ps(twice, _mm256_castps_si256(t.b))};
}
VEC v16 v_negative(v16 s, v16 x, v16 y)
{
    return (v16){_mm256_blendv_ps(y.a, x.a, s.a), _mm256_blendv_ps(y.b, x.b, s.b)};
}
VEC __m256 power8(__m256i n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
VEC void powers8(__m256 t, __m256 *half, __m256 *rest)
{
    __m256i n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_set1_epi32((int)V_ROUNDER_BITS));
    __m256i low = _mm256_srai_epi32(n, 1);
    *half = power8(low);
    *rest = power8(_mm256_sub_epi32(n, low));
}
VEC void v_powers(v16 t, v16 *half, v16 *rest)
{
    powers8(t.a, &half->a, &rest->a);
    powers8(t.b, &half->b, &rest->b);
}
VEC void growth8(__m256 t, __m256 *up, __m256 *down)
{
    __m256i n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_set1_epi32((int)V_ROUNDER_BITS));
    __m256i less = _mm256_min_epi32(_mm256_srai_epi32(_mm256_sub_epi32(_mm256_setzero_si256(), n), 1),
                                    _mm256_setzero_si256());
    *up = power8(_mm256_add_epi32(n, less));
    *down = power8(less);
}
VEC void v_growth(v16 t, v16 *up, v16 *down)
{
    growth8(t.a, &up->a, &down->a);
    growth8(t.b, &up->b, &down->b);
}
VEC v16 v_first(v16 v, int64_t count, float rest)
{
    __m256i left = _mm256_set1_epi32(count < 16 ? (int)count : 16);
    __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
            high = _mm256_add_epi32(low, _mm256_set1_epi32(8));
    __m256 fill = _mm256_set1_ps(rest);
    return (v16){_mm256_blendv_ps(fill, v.a, _mm256_castsi256_ps(_mm256_cmpgt_epi32(left, low))),
                 _mm256_blendv_ps(fill, v.b, _mm256_castsi256_ps(_mm256_cmpgt_epi32(left, high)))};
}
VEC float v_sum(v16 v)
{
    __m256 s8 = _mm256_add_ps(v.a, v.b);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
VEC float v_largest(v16 v)
{
    __m256 s8 = _mm256_max_ps(v.a, v.b);
    __m128 s4 = _mm_max_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_max_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_max_ss(s2, _mm_movehdup_ps(s2)));
}
VEC v16 v_two_to(v16 t)
{
    return (v16){_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t.a), 23)),
                 _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t.b), 23))};
}
VEC void v_transpose(float *to, const char *from, int64_t step)
{
    for (int i = 0; i < 16; i += 8)
        for (int j = 0; j < 16; j += 8)
            transpose8(to + 16 * j + i, from + i * step + 4 * j, step);
}

#endif
