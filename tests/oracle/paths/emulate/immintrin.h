/* The instructions of AVX-512 and VNNI that the kernels use, lane by lane as their manual describes them, so
 * that these paths can be run by a processor that has AVX2 only. */
#ifndef EMULATE_IMMINTRIN_H
#define EMULATE_IMMINTRIN_H

#include_next <immintrin.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct emulated_ps {
    float f[16];
} emulated_ps;
typedef struct emulated_epi32 {
    uint32_t u[16];
} emulated_epi32;

#define __m512  emulated_ps
#define __m512i emulated_epi32

#define EMULATE(type, member, name, parameters, expression)                                                  \
    static inline type emulated_##name parameters                                                            \
    {                                                                                                        \
        type r;                                                                                              \
        for (int i = 0; i < 16; i++)                                                                         \
            r.member[i] = (expression);                                                                      \
        return r;                                                                                            \
    }
#define EMULATE_PS(name, parameters, expression)    EMULATE(emulated_ps, f, name, parameters, expression)
#define EMULATE_EPI32(name, parameters, expression) EMULATE(emulated_epi32, u, name, parameters, expression)

static inline uint32_t emulated_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline float emulated_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

EMULATE_PS(set1_ps, (float a), a)
EMULATE_PS(loadu_ps, (const void *p), ((const float *)p)[i])
EMULATE_PS(add_ps, (emulated_ps a, emulated_ps b), a.f[i] + b.f[i])
EMULATE_PS(sub_ps, (emulated_ps a, emulated_ps b), a.f[i] - b.f[i])
EMULATE_PS(mul_ps, (emulated_ps a, emulated_ps b), a.f[i] * b.f[i])
EMULATE_PS(div_ps, (emulated_ps a, emulated_ps b), a.f[i] / b.f[i])
EMULATE_PS(max_ps, (emulated_ps a, emulated_ps b), a.f[i] > b.f[i] ? a.f[i] : b.f[i])
EMULATE_PS(min_ps, (emulated_ps a, emulated_ps b), a.f[i] < b.f[i] ? a.f[i] : b.f[i])
EMULATE_PS(fmadd_ps, (emulated_ps a, emulated_ps b, emulated_ps c), fmaf(a.f[i], b.f[i], c.f[i]))
EMULATE_PS(and_ps, (emulated_ps a, emulated_ps b),
           emulated_float(emulated_bits(a.f[i]) & emulated_bits(b.f[i])))
EMULATE_PS(or_ps, (emulated_ps a, emulated_ps b),
           emulated_float(emulated_bits(a.f[i]) | emulated_bits(b.f[i])))
EMULATE_PS(andnot_ps, (emulated_ps a, emulated_ps b),
           emulated_float(~emulated_bits(a.f[i]) & emulated_bits(b.f[i])))
EMULATE_PS(mask_blend_ps, (__mmask16 k, emulated_ps a, emulated_ps b), k >> i & 1 ? b.f[i] : a.f[i])
EMULATE_PS(broadcast_f32x4, (__m128 a), a[i % 4])
EMULATE_PS(permutevar_ps, (emulated_ps a, emulated_epi32 t), a.f[i / 4 * 4 + (int)(t.u[i] & 3)])
EMULATE_PS(castsi512_ps, (emulated_epi32 a), emulated_float(a.u[i]))
EMULATE_EPI32(castps_si512, (emulated_ps a), emulated_bits(a.f[i]))
EMULATE_EPI32(set1_epi32, (int a), (uint32_t)a)
EMULATE_EPI32(add_epi32, (emulated_epi32 a, emulated_epi32 b), a.u[i] + b.u[i])
EMULATE_EPI32(sub_epi32, (emulated_epi32 a, emulated_epi32 b), a.u[i] - b.u[i])
EMULATE_EPI32(setzero_si512, (void), 0)
EMULATE_EPI32(min_epi32, (emulated_epi32 a, emulated_epi32 b),
              (int32_t)a.u[i] < (int32_t)b.u[i] ? a.u[i] : b.u[i])
EMULATE_EPI32(and_si512, (emulated_epi32 a, emulated_epi32 b), a.u[i] & b.u[i])
EMULATE_EPI32(slli_epi32, (emulated_epi32 a, unsigned n), a.u[i] << n)
EMULATE_EPI32(srli_epi32, (emulated_epi32 a, unsigned n), a.u[i] >> n)
EMULATE_EPI32(srai_epi32, (emulated_epi32 a, unsigned n), (uint32_t)((int32_t)a.u[i] >> n))
EMULATE_EPI32(mask_or_epi32, (emulated_epi32 s, __mmask16 k, emulated_epi32 a, emulated_epi32 b),
              k >> i & 1 ? a.u[i] | b.u[i] : s.u[i])

EMULATE_EPI32(loadu_si512, (const void *p), ((const uint32_t *)p)[i])
EMULATE_PS(cvtepi32_ps, (emulated_epi32 a), (float)(int32_t)a.u[i])

/* Half t, byte t of a lane, with a sign. */
static inline int32_t emulated_half(uint32_t u, int t)
{
    return (int16_t)(u >> 16 * t);
}
static inline int32_t emulated_byte(uint32_t u, int t)
{
    return (int8_t)(u >> 8 * t);
}
static inline uint32_t emulated_halves(int32_t low, int32_t high)
{
    return (uint16_t)low | (uint32_t)high << 16;
}
static inline int32_t emulated_saturated(int32_t x)
{
    return x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x;
}
/* Bytes 2 h and 2 h + 1 of a, without a sign, times b's. */
static inline int32_t emulated_bytes(uint32_t a, uint32_t b, int h)
{
    return (uint8_t)emulated_byte(a, 2 * h) * emulated_byte(b, 2 * h) +
           (uint8_t)emulated_byte(a, 2 * h + 1) * emulated_byte(b, 2 * h + 1);
}
EMULATE_EPI32(slli_epi16, (emulated_epi32 a, unsigned n),
              emulated_halves(emulated_half(a.u[i], 0) << n, emulated_half(a.u[i], 1) << n))
EMULATE_EPI32(srai_epi16, (emulated_epi32 a, unsigned n),
              emulated_halves(emulated_half(a.u[i], 0) >> n, emulated_half(a.u[i], 1) >> n))
EMULATE_EPI32(add_epi16, (emulated_epi32 a, emulated_epi32 b),
              emulated_halves(emulated_half(a.u[i], 0) + emulated_half(b.u[i], 0),
                              emulated_half(a.u[i], 1) + emulated_half(b.u[i], 1)))
EMULATE_EPI32(madd_epi16, (emulated_epi32 a, emulated_epi32 b),
              (uint32_t)(emulated_half(a.u[i], 0) * emulated_half(b.u[i], 0)) +
                  (uint32_t)(emulated_half(a.u[i], 1) * emulated_half(b.u[i], 1)))
EMULATE_EPI32(maddubs_epi16, (emulated_epi32 a, emulated_epi32 b),
              emulated_halves(emulated_saturated(emulated_bytes(a.u[i], b.u[i], 0)),
                              emulated_saturated(emulated_bytes(a.u[i], b.u[i], 1))))
EMULATE_EPI32(dpbusd, (emulated_epi32 sum, emulated_epi32 a, emulated_epi32 b),
              sum.u[i] + (uint32_t)(emulated_bytes(a.u[i], b.u[i], 0) + emulated_bytes(a.u[i], b.u[i], 1)))

/* vpdpbusd of AVX-VNNI, on eight lanes. */
static inline __m256i emulated_dpbusd8(__m256i sum, __m256i a, __m256i b)
{
    emulated_epi32 wide[3] = {0};
    memcpy(wide[0].u, &sum, 32), memcpy(wide[1].u, &a, 32), memcpy(wide[2].u, &b, 32);
    wide[0] = emulated_dpbusd(wide[0], wide[1], wide[2]);
    memcpy(&sum, wide[0].u, 32);
    return sum;
}
#if defined(KHUB_ISA_AVX512)
#define VNNI_DOT emulated_dpbusd
#else
#define VNNI_DOT emulated_dpbusd8
#endif

static inline void emulated_storeu_si512(void *p, emulated_epi32 a)
{
    memcpy(p, a.u, 64);
}
static inline void emulated_storeu_ps(void *p, emulated_ps a)
{
    memcpy(p, a.f, 64);
}
static inline emulated_epi32 emulated_cvtepu16_epi32(__m256i a)
{
    uint16_t h[16];
    emulated_epi32 r;
    memcpy(h, &a, 32);
    for (int i = 0; i < 16; i++)
        r.u[i] = h[i];
    return r;
}
static inline __m256i emulated_cvtepi32_epi16(emulated_epi32 a)
{
    uint16_t h[16];
    for (int i = 0; i < 16; i++)
        h[i] = (uint16_t)a.u[i];
    return _mm256_loadu_si256((const __m256i *)(const void *)h);
}
static inline __m256 emulated_extractf32x8_ps(emulated_ps a, int half)
{
    return _mm256_loadu_ps(a.f + 8 * half);
}
static inline __m256 emulated_castps512_ps256(emulated_ps a)
{
    return _mm256_loadu_ps(a.f);
}
static inline __mmask16 emulated_cmplt_epi32_mask(emulated_epi32 a, emulated_epi32 b)
{
    unsigned mask = 0;
    for (int i = 0; i < 16; i++)
        mask |= (unsigned)((int32_t)a.u[i] < (int32_t)b.u[i]) << i;
    return (__mmask16)mask;
}
static inline __mmask16 emulated_cmp_ps_mask(emulated_ps a, emulated_ps b, int how)
{
    unsigned mask = 0;
    for (int i = 0; i < 16; i++) {
        int unordered = a.f[i] != a.f[i] || b.f[i] != b.f[i];
        mask |= (unsigned)(how == _CMP_UNORD_Q ? unordered : !unordered && a.f[i] < b.f[i]) << i;
    }
    return (__mmask16)mask;
}

/* Multiply-adds as AVX512-BF16 and AMX make them, whatever MXCSR says: rounded to nearest even, a subnormal
 * number is 0 where it goes in and where it comes out. */
static inline float emulated_normal(float f)
{
    return fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}
static inline float emulated_fma_daz(uint32_t a, uint32_t b, float c)
{
    float x = emulated_normal(emulated_float(a)), y = emulated_normal(emulated_float(b));
    return emulated_normal(fmaf(x, y, emulated_normal(c)));
}
static inline uint32_t emulated_upper(uint32_t u)
{
    return u & UINT32_C(0xffff0000);
}

#if defined(KHUB_ISA_AVX512)
#define EMULATED_PAIRS
#define EMULATED_AMX
/* vdpbf16ps: the upper halves first. */
static inline emulated_ps bf16_pairs(emulated_ps sum, emulated_epi32 x, emulated_epi32 w)
{
    for (int i = 0; i < 16; i++) {
        float first = emulated_fma_daz(emulated_upper(x.u[i]), emulated_upper(w.u[i]), sum.f[i]);
        sum.f[i] = emulated_fma_daz(x.u[i] << 16, w.u[i] << 16, first);
    }
    return sum;
}

/* The tiles, rows of 16 lanes. Whoever uses one that isn't configured, as whole, ends the program, as the
 * processor would. */
static uint32_t emulated_tiles[8][16][16];
static int emulated_configured;
static inline void emulated_need(int condition)
{
    if (!condition) __builtin_trap();
}
static inline void amx_configure(const void *config)
{
    uint8_t bytes[64];
    memcpy(bytes, config, 64);
    emulated_need(!emulated_configured && bytes[0] == 1 && bytes[1] == 0);
    for (int i = 2; i < 64; i++) { /* reserved bytes, those of a row, rows */
        int tile = i < 16 ? 8 : i < 48 ? (i - 16) / 2 : i - 48;
        emulated_need(bytes[i] == (tile >= 8 || (i < 48 && i % 2) ? 0 : i < 48 ? 64 : 16));
    }
    memset(emulated_tiles, 0, sizeof(emulated_tiles));
    emulated_configured = 1;
}
static inline void amx_release(void)
{
    emulated_need(emulated_configured);
    emulated_configured = 0;
}
static inline void amx_zero(int t)
{
    emulated_need(emulated_configured);
    memset(emulated_tiles[t], 0, sizeof(emulated_tiles[t]));
}
static inline void amx_load(int t, const void *from)
{
    emulated_need(emulated_configured);
    memcpy(emulated_tiles[t], from, sizeof(emulated_tiles[t]));
}
static inline void amx_store(int t, void *to)
{
    emulated_need(emulated_configured);
    memcpy(to, emulated_tiles[t], sizeof(emulated_tiles[t]));
}
/* tdpbf16ps: the even elements and the odd ones are summed up apart, from 0 on; both sums are added, and then
 * to what was there. */
static inline void amx_dot(int sum, int x, int w)
{
    emulated_need(emulated_configured);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float even = 0, odd = 0;
            for (int k = 0; k < 16; k++) {
                uint32_t a = emulated_tiles[x][m][k], b = emulated_tiles[w][k][n];
                even = emulated_fma_daz(a << 16, b << 16, even);
                odd = emulated_fma_daz(emulated_upper(a), emulated_upper(b), odd);
            }
            float both = emulated_normal(even + odd), before = emulated_float(emulated_tiles[sum][m][n]);
            emulated_tiles[sum][m][n] = emulated_bits(emulated_normal(emulated_normal(before) + both));
        }
}
/* tdpbssd */
static inline void amx_dot_bytes(int sum, int x, int w)
{
    emulated_need(emulated_configured);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++)
            for (int k = 0; k < 16; k++)
                for (int t = 0; t < 4; t++)
                    emulated_tiles[sum][m][n] += (uint32_t)(emulated_byte(emulated_tiles[x][m][k], t) *
                                                            emulated_byte(emulated_tiles[w][k][n], t));
}
#endif

/* what isn't optimised has these as macros */
#undef _mm512_slli_epi32
#undef _mm512_srli_epi32
#undef _mm512_srai_epi32
#undef _mm512_extractf32x8_ps
#undef _mm512_cmp_ps_mask
#undef _mm512_slli_epi16
#undef _mm512_srai_epi16
#define _mm512_set1_ps         emulated_set1_ps
#define _mm512_loadu_ps        emulated_loadu_ps
#define _mm512_storeu_ps       emulated_storeu_ps
#define _mm512_loadu_si512     emulated_loadu_si512
#define _mm512_storeu_si512    emulated_storeu_si512
#define _mm512_cvtepi32_ps     emulated_cvtepi32_ps
#define _mm512_slli_epi16      emulated_slli_epi16
#define _mm512_srai_epi16      emulated_srai_epi16
#define _mm512_add_epi16       emulated_add_epi16
#define _mm512_madd_epi16      emulated_madd_epi16
#define _mm512_maddubs_epi16   emulated_maddubs_epi16
#define _mm512_add_ps          emulated_add_ps
#define _mm512_sub_ps          emulated_sub_ps
#define _mm512_mul_ps          emulated_mul_ps
#define _mm512_div_ps          emulated_div_ps
#define _mm512_max_ps          emulated_max_ps
#define _mm512_min_ps          emulated_min_ps
#define _mm512_fmadd_ps        emulated_fmadd_ps
#define _mm512_and_ps          emulated_and_ps
#define _mm512_or_ps           emulated_or_ps
#define _mm512_andnot_ps       emulated_andnot_ps
#define _mm512_mask_blend_ps   emulated_mask_blend_ps
#define _mm512_broadcast_f32x4 emulated_broadcast_f32x4
#define _mm512_permutevar_ps   emulated_permutevar_ps
#define _mm512_castsi512_ps    emulated_castsi512_ps
#define _mm512_castps_si512    emulated_castps_si512
#define _mm512_set1_epi32      emulated_set1_epi32
#define _mm512_add_epi32       emulated_add_epi32
#define _mm512_sub_epi32       emulated_sub_epi32
#define _mm512_and_si512       emulated_and_si512
#define _mm512_slli_epi32      emulated_slli_epi32
#define _mm512_srli_epi32      emulated_srli_epi32
#define _mm512_srai_epi32      emulated_srai_epi32
#define _mm512_mask_or_epi32   emulated_mask_or_epi32
#define _mm512_cvtepu16_epi32  emulated_cvtepu16_epi32
#define _mm512_cvtepi32_epi16  emulated_cvtepi32_epi16
#define _mm512_extractf32x8_ps emulated_extractf32x8_ps
#define _mm512_castps512_ps256 emulated_castps512_ps256
#define _mm512_cmp_ps_mask     emulated_cmp_ps_mask
#undef _mm512_cmplt_epi32_mask
#define _mm512_stream_ps        emulated_storeu_ps
#define _mm512_setzero_si512    emulated_setzero_si512
#define _mm512_min_epi32        emulated_min_epi32
#define _mm512_cmplt_epi32_mask emulated_cmplt_epi32_mask

#endif
