/* Each chain is a sum that waits for itself: on today's cores a multiply-add takes 4 to 5 cycles and two
 * start in each, so that 10 chains or more keep the units busy. 12 chains, factor and term fit 16 registers.
 */
#include "measure/fma.h"

enum { STEPS = 20000, CHAINS = 12 };

/* NAME(factor, term): VECTOR has LANES floats, FMA computes sum[i] · x + y, SUM(a, b) adds two. */
#define CHAINS_OF(NAME, ATTRIBUTES, VECTOR, SET, FMA, SUM, FIRST)                                            \
    ATTRIBUTES static float NAME(float factor, float term)                                                   \
    {                                                                                                        \
        VECTOR s0 = SET(0), s1 = SET(1), s2 = SET(2), s3 = SET(3), s4 = SET(4), s5 = SET(5), s6 = SET(6),    \
               s7 = SET(7), s8 = SET(8), s9 = SET(9), s10 = SET(10), s11 = SET(11), x = SET(factor),         \
               y = SET(term);                                                                                \
        for (int i = 0; i < STEPS; i++) {                                                                    \
            s0 = FMA(s0, x, y), s1 = FMA(s1, x, y), s2 = FMA(s2, x, y), s3 = FMA(s3, x, y);                  \
            s4 = FMA(s4, x, y), s5 = FMA(s5, x, y), s6 = FMA(s6, x, y), s7 = FMA(s7, x, y);                  \
            s8 = FMA(s8, x, y), s9 = FMA(s9, x, y), s10 = FMA(s10, x, y), s11 = FMA(s11, x, y);              \
        }                                                                                                    \
        VECTOR even = SUM(SUM(SUM(s0, s2), SUM(s4, s6)), SUM(s8, s10));                                      \
        VECTOR odd = SUM(SUM(SUM(s1, s3), SUM(s5, s7)), SUM(s9, s11));                                       \
        return FIRST(SUM(even, odd));                                                                        \
    }

#define SET1(a)           (a)
#define MULTIPLY(a, x, y) ((a) * (x) + (y))
#define ADD(a, b)         ((a) + (b))
#define ITSELF(a)         (a)

#if defined(__x86_64__)
#include <immintrin.h>
CHAINS_OF(chains_avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, _mm256_fmadd_ps,
          _mm256_add_ps, _mm256_cvtss_f32)
CHAINS_OF(chains_avx512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, _mm512_fmadd_ps,
          _mm512_add_ps, _mm512_cvtss_f32)
/* Four lanes, which every x86-64 has. */
CHAINS_OF(chains_portable, , __m128, _mm_set1_ps, MULTIPLY, ADD, _mm_cvtss_f32)
enum { PORTABLE_LANES = 4 };
#elif defined(__aarch64__)
#include <arm_neon.h>
#define FUSED(a, x, y) vfmaq_f32(y, a, x)
#define LANE0(v)       vgetq_lane_f32(v, 0)
CHAINS_OF(chains_neon, , float32x4_t, vdupq_n_f32, FUSED, vaddq_f32, LANE0)
CHAINS_OF(chains_portable, , float, SET1, MULTIPLY, ADD, ITSELF)
enum { PORTABLE_LANES = 1 };
#else
CHAINS_OF(chains_portable, , float, SET1, MULTIPLY, ADD, ITSELF)
enum { PORTABLE_LANES = 1 };
#endif

#define FLOPS(lanes) (2.0 * (lanes)*CHAINS * STEPS)

const khub__fma *khub__fma_best(void)
{
    static const khub__fma portable = {"portable", chains_portable, FLOPS(PORTABLE_LANES)};
#if defined(__x86_64__)
    static const khub__fma avx2 = {"avx2", chains_avx2, FLOPS(8)},
                           avx512 = {"avx512", chains_avx512, FLOPS(16)};
    if (__builtin_cpu_supports("avx512f")) return &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2;
#elif defined(__aarch64__)
    static const khub__fma neon = {"neon", chains_neon, FLOPS(4)};
    if (PORTABLE_LANES) return &neon; /* AArch64 always has it */
#endif
    return &portable;
}
