/* What both x86-64 paths use. */
#ifndef KHUB_KERNELS_LANES_X86_H
#define KHUB_KERNELS_LANES_X86_H

#include <immintrin.h>

/* VNNI's one instruction: to each 32-bit lane of a sum, four products of an unsigned and a signed byte. As
 * text, so that a function for any processor can have it behind a condition; a test puts its meaning here. */
#define HAS_VNNI
#if defined(KHUB_ISA_AVX512) && !defined(VNNI_DOT)
VEC __m512i VNNI_DOT(__m512i sum, __m512i bytes, __m512i signed_bytes)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(signed_bytes));
    return sum;
}
#elif !defined(VNNI_DOT)
VEC __m256i VNNI_DOT(__m256i sum, __m256i bytes, __m256i signed_bytes)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(bytes), "x"(signed_bytes));
    return sum;
}
#endif

/* Compilers that add integers up in another order run out of registers: a sum is looked at after each step.
 */
VEC __m256i in_order(__m256i sum)
{
    __asm__("" : "+x"(sum));
    return sum;
}

VEC int32_t four_bytes(const void *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return four;
}

/* The lowest byte of each lane. */
VEC void store_bytes(void *p, __m256 low, __m256 high)
{
    const __m256i pick = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4,
                                          8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i a = _mm256_shuffle_epi8(_mm256_castps_si256(low), pick),
            b = _mm256_shuffle_epi8(_mm256_castps_si256(high), pick);
    __m128i quarters =
        _mm_unpacklo_epi64(_mm_unpacklo_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)),
                           _mm_unpacklo_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1)));
    _mm_storeu_si128(p, quarters);
}

/* The lowest 16 bits of each lane; of each four lanes 0, 2, 1, 3. */
VEC void store_wide(void *p, __m256 low, __m256 high)
{
    const __m256i pick = _mm256_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 8,
                                          9, 4, 5, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i a = _mm256_shuffle_epi8(_mm256_castps_si256(low), pick),
            b = _mm256_shuffle_epi8(_mm256_castps_si256(high), pick);
    /* halves of each in the order low, high: 64 bits each */
    __m256i both = _mm256_unpacklo_epi64(a, b); /* quarters 0, 2, 1, 3 */
    _mm256_storeu_si256(p, _mm256_permute4x64_epi64(both, 0xd8));
}

#endif
