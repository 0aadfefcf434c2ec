/* Where the largest elements of rows are, with AVX2. */
#ifndef NUMERICS_FAST_AVX2_ROWS_H
#define NUMERICS_FAST_AVX2_ROWS_H

#include "numerics/fast_avx2.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

/* Which elements of a vector, all bits of `asked`, are `wanted`: all ones in those. */
KHUB__INLINE __m256i khub__equal_to(khub__format f, const char *at, __m256i asked, __m256i wanted)
{
    __m256i x = _mm256_and_si256(khub__load(at), asked);
    return f.bytes == 8   ? _mm256_cmpeq_epi64(x, wanted)
           : f.bytes == 4 ? _mm256_cmpeq_epi32(x, wanted)
           : f.bytes == 2 ? _mm256_cmpeq_epi16(x, wanted)
                          : _mm256_cmpeq_epi8(x, wanted);
}

/* Of the 32 elements at `at`, a bit for each that is `wanted`. */
KHUB__INLINE uint32_t khub__equal_32(khub__format f, const char *at, __m256i asked, __m256i wanted)
{
    __m256i e[8];
    int vectors = f.bytes;
    for (int i = 0; i < vectors; i++)
        e[i] = khub__equal_to(f, at + 32 * i, asked, wanted);
    if (f.bytes == 1) return (uint32_t)_mm256_movemask_epi8(e[0]);
    if (f.bytes == 8) { /* four of 64 bits to four of 32 */
        for (int i = 0; i < 4; i++)
            e[i] = _mm256_permute4x64_epi64(_mm256_packs_epi32(e[2 * i], e[2 * i + 1]), 0xd8);
    }
    if (f.bytes >= 4) {
        e[0] = _mm256_packs_epi32(e[0], e[1]);
        e[1] = _mm256_packs_epi32(e[2], e[3]);
    }
    __m256i bytes = _mm256_packs_epi16(e[0], e[1]);
    bytes = f.bytes >= 4 ? _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
                         : _mm256_permute4x64_epi64(bytes, 0xd8);
    return (uint32_t)_mm256_movemask_epi8(bytes);
}

KHUB__INLINE __m256i khub__everywhere(khub__format f, uint64_t bits)
{
    return f.bytes == 8   ? _mm256_set1_epi64x((int64_t)bits)
           : f.bytes == 4 ? _mm256_set1_epi32((int32_t)bits)
           : f.bytes == 2 ? _mm256_set1_epi16((int16_t)bits)
                          : _mm256_set1_epi8((int8_t)bits);
}

/* The place of the first element that has these bits where `mask` has ones, which is there. */
KHUB__INLINE size_t khub__find_bits(khub__format f, const char *at, size_t count, uint64_t bits,
                                    uint64_t mask)
{
    size_t i = 0, bytes = (size_t)f.bytes;
    __m256i wanted = khub__everywhere(f, bits), asked = khub__everywhere(f, mask);
    for (; i + 64 <= count; i += 64) { /* no branch says where in the 64 it is */
        uint64_t found = khub__equal_32(f, at + i * bytes, asked, wanted);
        found |= (uint64_t)khub__equal_32(f, at + (i + 32) * bytes, asked, wanted) << 32;
        if (found) return i + (size_t)__builtin_ctzll(found);
    }
    while ((khub__bits_at(at, i, f.bytes) & mask) != bits)
        i++;
    return i;
}

/* The place of the first element of this order, which is there; two zeros are of one. */
KHUB__INLINE size_t khub__find(khub__format f, const char *at, size_t count, int64_t order)
{
    const uint64_t sign = khub__sign_bit(f);
    uint64_t bits = order < 0 ? sign | (uint64_t)-order : (uint64_t)order;
    return khub__find_bits(f, at, count, bits, order == 0 ? sign - 1 : ~UINT64_C(0));
}

/* A vector of elements as what is compared to find the largest: orders, or for float64 the numbers. */
KHUB__INLINE __m256i khub__keys(khub__format f, const char *at)
{
    __m256i x = khub__load(at);
    if (f.bytes == 8) return x;
    if (f.bytes == 4) return _mm256_sign_epi32(_mm256_and_si256(x, _mm256_set1_epi32(INT32_MAX)), x);
    if (f.bytes == 1) return _mm256_sign_epi8(_mm256_and_si256(x, _mm256_set1_epi8(INT8_MAX)), x);
    return _mm256_sign_epi16(_mm256_and_si256(x, _mm256_set1_epi16(INT16_MAX)), x);
}

KHUB__INLINE __m256i khub__larger(khub__format f, __m256i x, __m256i y)
{
    if (f.bytes == 8)
        return _mm256_castpd_si256(_mm256_max_pd(_mm256_castsi256_pd(x), _mm256_castsi256_pd(y)));
    return f.bytes == 4   ? _mm256_max_epi32(x, y)
           : f.bytes == 2 ? _mm256_max_epi16(x, y)
                          : _mm256_max_epi8(x, y);
}

/* Both zeros of float64 are equal here, too. */
KHUB__INLINE __m256i khub__equal(khub__format f, __m256i x, __m256i y)
{
    if (f.bytes == 8)
        return _mm256_castpd_si256(_mm256_cmp_pd(_mm256_castsi256_pd(x), _mm256_castsi256_pd(y), _CMP_EQ_OQ));
    return f.bytes == 4   ? _mm256_cmpeq_epi32(x, y)
           : f.bytes == 2 ? _mm256_cmpeq_epi16(x, y)
                          : _mm256_cmpeq_epi8(x, y);
}

/* The largest lane in all lanes. */
KHUB__INLINE __m256i khub__largest_everywhere(khub__format f, __m256i v)
{
    v = khub__larger(f, v, _mm256_permute4x64_epi64(v, 0x4e));
    v = khub__larger(f, v, _mm256_shuffle_epi32(v, 0x4e));
    if (f.bytes <= 4) v = khub__larger(f, v, _mm256_shuffle_epi32(v, 0xb1));
    if (f.bytes <= 2)
        v = khub__larger(f, v, _mm256_or_si256(_mm256_slli_epi32(v, 16), _mm256_srli_epi32(v, 16)));
    if (f.bytes == 1)
        v = khub__larger(f, v, _mm256_or_si256(_mm256_slli_epi16(v, 8), _mm256_srli_epi16(v, 8)));
    return v;
}

/* The order of what is in all lanes. */
KHUB__INLINE int64_t khub__order_in(khub__format f, __m256i keys)
{
    int64_t key = _mm_cvtsi128_si64(_mm256_castsi256_si128(keys));
    if (f.bytes == 8) return khub__order_of(f, (uint64_t)key);
    return f.bytes == 4 ? (int32_t)key : f.bytes == 2 ? (int16_t)key : (int8_t)key;
}

KHUB__INLINE size_t khub__place_in_short_row(khub__format f, const char *at, size_t width)
{
    int64_t most = INT64_MIN;
    size_t place = 0;
    for (size_t i = 0; i < width; i++) {
        int64_t order = khub__order_of(f, khub__bits_at(at, i, f.bytes));
        if (order > most) most = order, place = i;
    }
    return place;
}

KHUB__INLINE size_t khub__place_in_row(khub__format f, const char *at, size_t width)
{
    const size_t bytes = width * (size_t)f.bytes, vector = 32;
    if (bytes < vector) return khub__place_in_short_row(f, at, width);
    __m256i top = khub__keys(f, at + bytes - vector); /* what is looked at twice does no harm */
    for (size_t i = 0; i + vector < bytes; i += vector)
        top = khub__larger(f, top, khub__keys(f, at + i));
    return khub__find(f, at, width, khub__order_in(f, khub__largest_everywhere(f, top)));
}

/* Whether the first of the largest is at the same place of both rows, of finite numbers. Of wide ones it is
 * found out earlier than at the row's end. */
KHUB__INLINE int khub__same_place(khub__format f, const char *a, const char *b, size_t width)
{
    const size_t bytes = width * (size_t)f.bytes, vector = 32, wide = 512;
    if (bytes < vector || bytes >= wide)
        return khub__place_in_row(f, a, width) == khub__place_in_row(f, b, width);
    const size_t last = bytes - vector; /* what is looked at twice does no harm */
    __m256i top_a = khub__keys(f, a + last), top_b = khub__keys(f, b + last);
    for (size_t i = 0; i < last; i += vector) {
        top_a = khub__larger(f, top_a, khub__keys(f, a + i));
        top_b = khub__larger(f, top_b, khub__keys(f, b + i));
    }
    top_a = khub__largest_everywhere(f, top_a);
    top_b = khub__largest_everywhere(f, top_b);
    __m256i differ = _mm256_xor_si256(khub__equal(f, khub__keys(f, a + last), top_a),
                                      khub__equal(f, khub__keys(f, b + last), top_b));
    for (size_t i = 0; i < last; i += vector)
        differ = _mm256_or_si256(differ, _mm256_xor_si256(khub__equal(f, khub__keys(f, a + i), top_a),
                                                          khub__equal(f, khub__keys(f, b + i), top_b)));
    if (_mm256_testz_si256(differ, differ)) return 1; /* at the same places all of the largest are */
    return khub__find(f, a, width, khub__order_in(f, top_a)) ==
           khub__find(f, b, width, khub__order_in(f, top_b));
}

/* What orders elements that aren't all the same: floats of which one is positive are in the order of signed
 * integers as far as the largest is concerned. */
typedef enum khub__elements { KHUB__SIGNED, KHUB__UNSIGNED, KHUB__POSITIVE_FLOATS } khub__elements;

KHUB__INLINE __m256i khub__larger_64(khub__elements e, __m256i x, __m256i y)
{
    const __m256i turned = _mm256_set1_epi64x(e == KHUB__UNSIGNED ? INT64_MIN : 0);
    if (e == KHUB__POSITIVE_FLOATS) return khub__larger((khub__format){.bytes = 8}, x, y);
    return _mm256_blendv_epi8(x, y,
                              _mm256_cmpgt_epi64(_mm256_xor_si256(y, turned), _mm256_xor_si256(x, turned)));
}

KHUB__INLINE __m256i khub__larger_of(khub__format f, khub__elements e, __m256i x, __m256i y)
{
    if (f.bytes == 8) return khub__larger_64(e, x, y);
    if (e != KHUB__UNSIGNED) return khub__larger(f, x, y);
    return f.bytes == 4   ? _mm256_max_epu32(x, y)
           : f.bytes == 2 ? _mm256_max_epu16(x, y)
                          : _mm256_max_epu8(x, y);
}

/* The larger ones of two neighbours, `bytes` each, of x and y in turn. */
KHUB__INLINE __m256i khub__fold(khub__format f, khub__elements e, int bytes, __m256i x, __m256i y)
{
    switch (bytes) {
    case 1:
        return khub__larger_of(f, e, _mm256_unpacklo_epi8(x, y), _mm256_unpackhi_epi8(x, y));
    case 2:
        return khub__larger_of(f, e, _mm256_unpacklo_epi16(x, y), _mm256_unpackhi_epi16(x, y));
    case 4:
        return khub__larger_of(f, e, _mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y));
    default:
        return khub__larger_of(f, e, _mm256_unpacklo_epi64(x, y), _mm256_unpackhi_epi64(x, y));
    }
}

/* The larger ones of vectors that stand for rows, of `bytes` each, in rows' order: as many as fill 16 bytes,
 * and once more above. */
KHUB__INLINE __m256i khub__fold_rows(khub__format f, khub__elements e, __m256i v[16])
{
#pragma GCC unroll 4
    for (int left = 8 / f.bytes, bytes = f.bytes; left; left /= 2, bytes *= 2)
#pragma GCC unroll 8
        for (int i = 0; i < left; i++)
            v[i] = khub__fold(f, e, bytes, v[2 * i], v[2 * i + 1]);
    return khub__larger_of(f, e, v[0], _mm256_permute2x128_si256(v[0], v[0], 1));
}

/* The largest of each of so many rows as fill 16 bytes, there in their order and once more above. A row is
 * whole vectors. */
KHUB__INLINE __m256i khub__tops_of(khub__format f, khub__elements e, const char *at, size_t row_bytes)
{
    __m256i v[16];
#pragma GCC unroll 16
    for (int r = 0; r < 16 / f.bytes; r++) {
        const char *row = at + (size_t)r * row_bytes;
        v[r] = khub__load(row);
#pragma GCC unroll 16
        for (size_t i = 32; i < row_bytes; i += 32)
            v[r] = khub__larger_of(f, e, v[r], khub__load(row + i));
    }
    return khub__fold_rows(f, e, v);
}

/* Whether all are positive; wider ones, whose upper half is an element: whether all of those are. */
KHUB__INLINE int khub__all_positive(khub__format f, __m256i v, int64_t lower)
{
    const __m256i least = khub__everywhere(f, (uint64_t)lower);
    __m256i more = f.bytes == 8   ? _mm256_cmpgt_epi64(v, least)
                   : f.bytes == 4 ? _mm256_cmpgt_epi32(v, least)
                   : f.bytes == 2 ? _mm256_cmpgt_epi16(v, least)
                                  : _mm256_cmpgt_epi8(v, least);
    return _mm256_movemask_epi8(more) == -1;
}

enum { KHUB__ROWS = 16 };

/* Of KHUB__ROWS rows, 32 or 64 elements wide, a bit where the first of each one's largest is. No branch asks
 * where, which nobody foresees. 0: a row of floats has none that is positive. */
KHUB__INLINE int khub__firsts_of(uint64_t first[KHUB__ROWS], khub__format f, khub__elements e, const char *at,
                                 size_t width)
{
    const __m256i all = _mm256_set1_epi8(-1);
    const size_t row_bytes = width * (size_t)f.bytes;
    char tops[8 * KHUB__ROWS + 16];
    for (size_t r = 0; r < KHUB__ROWS; r += 16 / (size_t)f.bytes) {
        __m256i v = khub__tops_of(f, e, at + r * row_bytes, row_bytes);
        if (e == KHUB__POSITIVE_FLOATS && !khub__all_positive(f, v, 0)) return 0;
        _mm_storeu_si128((__m128i *)(void *)(tops + r * (size_t)f.bytes), _mm256_castsi256_si128(v));
    }
    for (size_t r = 0; r < KHUB__ROWS; r++, at += row_bytes) {
        __m256i wanted = khub__everywhere(f, khub__bits_at(tops, r, f.bytes));
        uint64_t found = khub__equal_32(f, at, all, wanted);
        if (width == 64) found |= (uint64_t)khub__equal_32(f, at + 32 * (size_t)f.bytes, all, wanted) << 32;
        first[r] = found & (0 - found);
    }
    return 1;
}

/* How many of KHUB__ROWS rows have their first largest at the same place; -1: as khub__firsts_of's 0. */
KHUB__INLINE int khub__same_firsts_of(khub__format f, khub__format w, khub__elements e, const char *a,
                                      const char *b, size_t width)
{
    uint64_t of_a[KHUB__ROWS], of_b[KHUB__ROWS];
    int same = 0;
    if (!khub__firsts_of(of_a, f, e, a, width) || !khub__firsts_of(of_b, w, e, b, width)) return -1;
    for (int r = 0; r < KHUB__ROWS; r++)
        same += of_a[r] == of_b[r];
    return same;
}

/* How far the elements of a vector, as unpacking to twice the bits leaves them, are from a row's end: in the
 * lower halves, so the larger of two equal elements is the first. */
KHUB__INLINE __m256i khub__from_end(khub__format f, size_t width, size_t i)
{
    __m256i of_32 = f.bytes == 1
                        ? _mm256_setr_epi8(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15,
                                           14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
                        : _mm256_setr_epi16(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    int behind = (int)width - (int)(i + 32) / f.bytes; /* elements */
    return f.bytes == 1 ? _mm256_add_epi8(of_32, _mm256_set1_epi8((char)behind))
                        : _mm256_add_epi16(of_32, _mm256_set1_epi16((short)behind));
}

/* Of so many rows as fill 8 bytes, elements of 8 or 16 bits: each one's largest, and under it the place. */
KHUB__INLINE __m256i khub__places_of(khub__format f, khub__elements e, const char *at, size_t width)
{
    const khub__format both = {.bytes = 2 * f.bytes};
    __m256i v[16];
#pragma GCC unroll 8
    for (int r = 0; r < 8 / f.bytes; r++)
#pragma GCC unroll 4
        for (size_t i = 0; i < width * (size_t)f.bytes; i += 32) {
            __m256i x = khub__load(at + (size_t)r * width * (size_t)f.bytes + i);
            __m256i place = khub__from_end(f, width, i);
            __m256i low = f.bytes == 1 ? _mm256_unpacklo_epi8(place, x) : _mm256_unpacklo_epi16(place, x);
            __m256i high = f.bytes == 1 ? _mm256_unpackhi_epi8(place, x) : _mm256_unpackhi_epi16(place, x);
            __m256i larger = khub__larger_of(both, e, low, high);
            v[r] = i ? khub__larger_of(both, e, v[r], larger) : larger;
        }
    return khub__fold_rows(both, e, v);
}

/* As khub__same_firsts_of, of elements of 8 or 16 bits. */
KHUB__INLINE int khub__same_places_of(khub__format f, khub__elements e, const char *a, const char *b,
                                      size_t width)
{
    const size_t at_once = 8 / (size_t)f.bytes, bytes = at_once * width * (size_t)f.bytes;
    const khub__format both = {.bytes = 2 * f.bytes};
    const int lower = f.bytes == 1 ? UINT8_MAX : UINT16_MAX;
    const __m256i element =
        f.bytes == 1 ? _mm256_set1_epi16((short)0xff00) : _mm256_set1_epi32((int)0xffff0000);
    int bits = 0;
    for (size_t r = 0; r < KHUB__ROWS; r += at_once, a += bytes, b += bytes) {
        __m256i x = khub__places_of(f, e, a, width), y = khub__places_of(f, e, b, width);
        if (e == KHUB__POSITIVE_FLOATS &&
            (!khub__all_positive(both, x, lower) || !khub__all_positive(both, y, lower)))
            return -1;
        __m256i same = khub__equal(both, _mm256_or_si256(x, element), _mm256_or_si256(y, element));
        bits += __builtin_popcount((unsigned)_mm256_movemask_epi8(same));
    }
    return bits / (4 * f.bytes); /* each row is there twice */
}

/* Of rows of a, of format f, and of b, of format w, `width` wide, looks at KHUB__ROWS at a time, until
 * khub__firsts_of doesn't know: how many it has looked at. Counts in *same. */
KHUB__INLINE size_t khub__same_firsts_wide(size_t *same, khub__format f, khub__format w, khub__elements e,
                                           const char *a, const char *b, size_t rows, size_t width)
{
    size_t row = 0;
    for (; row + KHUB__ROWS <= rows; row += KHUB__ROWS) {
        const char *at_a = a + row * width * (size_t)f.bytes, *at_b = b + row * width * (size_t)w.bytes;
        int now = f.bytes <= 2 && f.bytes == w.bytes ? khub__same_places_of(f, e, at_a, at_b, width)
                                                     : khub__same_firsts_of(f, w, e, at_a, at_b, width);
        if (now < 0) break;
        *same += (size_t)now;
    }
    return row;
}

/* Rows that are 32 or 64 elements wide; of others, none. */
KHUB__INLINE size_t khub__same_firsts(size_t *same, khub__format f, khub__format w, khub__elements e,
                                      const char *a, const char *b, size_t rows, size_t width)
{
    if (width == 32) return khub__same_firsts_wide(same, f, w, e, a, b, rows, 32);
    return width == 64 ? khub__same_firsts_wide(same, f, w, e, a, b, rows, 64) : 0;
}

KHUB__INLINE size_t khub__same_places(khub__format f, const char *a, const char *b, size_t rows, size_t width)
{
    size_t same = 0, row = khub__same_firsts(&same, f, f, KHUB__POSITIVE_FLOATS, a, b, rows, width);
    for (; row < rows; row++)
        same += (size_t)khub__same_place(f, a + row * width * (size_t)f.bytes,
                                         b + row * width * (size_t)f.bytes, width);
    return same;
}

#endif
#endif
