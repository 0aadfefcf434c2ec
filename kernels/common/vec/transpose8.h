/* Eight rows of eight floats become columns, for both widths of x86-64. */
#ifndef KHUB_KERNELS_VEC_TRANSPOSE8_H
#define KHUB_KERNELS_VEC_TRANSPOSE8_H

/* Row i at p: its lanes 0 … 3, and those of row i + 4 above them. */
VEC __m256 halves8(const char *p, int64_t four_rows)
{
    __m256 low = _mm256_castps128_ps256(_mm_loadu_ps((const float *)(const void *)p));
    return _mm256_insertf128_ps(low, _mm_loadu_ps((const float *)(const void *)(p + four_rows)), 1);
}

/* to[16 j + i] = element j of row i, the rows being `step` bytes apart. */
VEC void transpose8(float *to, const char *from, int64_t step)
{
    for (int j = 0; j < 8; j += 4, from += 16, to += 64) { /* four columns of all rows */
        __m256 r0 = halves8(from, 4 * step), r1 = halves8(from + step, 4 * step);
        __m256 r2 = halves8(from + 2 * step, 4 * step), r3 = halves8(from + 3 * step, 4 * step);
        __m256 a = _mm256_unpacklo_ps(r0, r1), b = _mm256_unpackhi_ps(r0, r1);
        __m256 c = _mm256_unpacklo_ps(r2, r3), d = _mm256_unpackhi_ps(r2, r3);
        _mm256_storeu_ps(to, _mm256_shuffle_ps(a, c, 0x44));
        _mm256_storeu_ps(to + 16, _mm256_shuffle_ps(a, c, 0xee));
        _mm256_storeu_ps(to + 32, _mm256_shuffle_ps(b, d, 0x44));
        _mm256_storeu_ps(to + 48, _mm256_shuffle_ps(b, d, 0xee));
    }
}

#endif
