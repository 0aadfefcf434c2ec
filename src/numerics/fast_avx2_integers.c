/* Blocks of integers with AVX2, which this source, too, is compiled for. Of 8 and 16 bits every sum is an
 * integer that a double holds, so it is taken as one, in any order; wider ones are added in lanes. */
#include "numerics/fast_avx2_lanes.h"
#include "numerics/fast_avx2_rows.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

typedef struct kind {
    int bytes, is_signed;
} kind;

KHUB__INLINE khub__format format_of(kind k)
{
    return (khub__format){.bytes = k.bytes};
}

/* Signed integers in the order of the elements. */
KHUB__INLINE __m256i keys_at(kind k, const char *at)
{
    __m256i x = khub__load(at);
    return k.is_signed ? x
                       : _mm256_xor_si256(x, khub__everywhere(format_of(k), khub__sign_bit(format_of(k))));
}

KHUB__INLINE int64_t key_at(kind k, const char *at, size_t i)
{
    uint64_t bits = khub__bits_at(at, i, k.bytes), sign = khub__sign_bit(format_of(k));
    if (k.is_signed) return (int64_t)((bits ^ sign) - sign);
    return (int64_t)(bits - sign); /* as a key of as many bits */
}

/* khub__largest's order from that of keys, which have as many bits as the elements. */
KHUB__INLINE int64_t order_of(kind k, int64_t key)
{
    uint64_t sign = khub__sign_bit(format_of(k));
    return k.is_signed ? key : (int64_t)(((uint64_t)key + sign) ^ UINT64_C(1) << 63);
}

KHUB__INLINE __m256i larger(kind k, __m256i x, __m256i y)
{
    if (k.bytes == 8) return _mm256_blendv_epi8(x, y, _mm256_cmpgt_epi64(y, x));
    return khub__larger(format_of(k), x, y);
}

KHUB__INLINE __m256i smaller(kind k, __m256i x, __m256i y)
{
    return k.bytes == 4   ? _mm256_min_epi32(x, y)
           : k.bytes == 2 ? _mm256_min_epi16(x, y)
                          : _mm256_min_epi8(x, y);
}

KHUB__INLINE int64_t largest_lane(kind k, __m256i keys)
{
    int64_t lane[4];
    _mm256_storeu_si256((__m256i *)(void *)lane, keys);
    if (k.bytes < 8) return khub__order_in(format_of(k), khub__largest_everywhere(format_of(k), keys));
    int64_t first = lane[0] > lane[1] ? lane[0] : lane[1], second = lane[2] > lane[3] ? lane[2] : lane[3];
    return first > second ? first : second;
}

/* The place of the first element of this order. */
KHUB__INLINE size_t find(kind k, const char *at, size_t count, int64_t order)
{
    uint64_t bits = k.is_signed ? (uint64_t)order : (uint64_t)order ^ UINT64_C(1) << 63;
    uint64_t all = khub__sign_bit(format_of(k)) | (khub__sign_bit(format_of(k)) - 1);
    return khub__find_bits(format_of(k), at, count, bits & all, all);
}

KHUB__INLINE size_t place_in_row(kind k, const char *at, size_t width)
{
    const size_t bytes = width * (size_t)k.bytes, vector = 32;
    size_t place = 0;
    if (bytes < vector) {
        for (size_t i = 1; i < width; i++)
            if (key_at(k, at, i) > key_at(k, at, place)) place = i;
        return place;
    }
    __m256i top = keys_at(k, at + bytes - vector); /* what is looked at twice does no harm */
    for (size_t i = 0; i + vector < bytes; i += vector)
        top = larger(k, top, keys_at(k, at + i));
    return find(k, at, width, order_of(k, largest_lane(k, top)));
}

KHUB__INLINE size_t same_places(kind k, const char *a, const char *b, size_t rows, size_t width)
{
    const size_t bytes = width * (size_t)k.bytes;
    size_t same = 0, row = khub__same_firsts(&same, format_of(k), format_of(k),
                                             k.is_signed ? KHUB__SIGNED : KHUB__UNSIGNED, a, b, rows, width);
    for (; row < rows; row++)
        same += place_in_row(k, a + row * bytes, width) == place_in_row(k, b + row * bytes, width);
    return same;
}

/* Of 8 and 16 bits: what a block adds up to. */
typedef struct totals {
    uint64_t distance, square, a, b; /* |a - b|, its square, a², b² */
    uint64_t same, missed;           /* pairs that are the same; others whose b is 0 */
    uint32_t most, least_of_b;       /* the largest distance; the least |b| but 0 of what differs */
    int64_t top_a, top_b;            /* keys */
} totals;

/* 64 bits in each lane from 16, unsigned, or 32. */
KHUB__INLINE __m256i wider_16(__m256i sum, __m256i v)
{
    const __m256i low = _mm256_set1_epi32(0xffff);
    return _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_and_si256(v, low), _mm256_srli_epi32(v, 16)));
}
KHUB__INLINE uint64_t sum_of_32(__m256i v)
{
    uint32_t lane[8];
    uint64_t sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)lane, v);
    for (int i = 0; i < 8; i++)
        sum += lane[i];
    return sum;
}

/* Sums of unsigned squares of 16 bits, by halves: no lane of 32 bits holds more than 2^7 of 2^17. */
typedef struct squares {
    __m256i low, high;
} squares;

KHUB__INLINE void add_squares(squares *s, __m256i v)
{
    s->low = wider_16(s->low, _mm256_mullo_epi16(v, v));
    s->high = wider_16(s->high, _mm256_mulhi_epu16(v, v));
}

KHUB__INLINE uint64_t sum_of_squares(const squares *s)
{
    return sum_of_32(s->low) + (sum_of_32(s->high) << 16);
}

/* Magnitudes: of a, b, and of their difference, all unsigned. */
KHUB__INLINE __m256i size_of(kind k, __m256i x)
{
    if (!k.is_signed) return x;
    return k.bytes == 2 ? _mm256_abs_epi16(x) : _mm256_abs_epi8(x);
}

/* Of 32 unsigned numbers of 8 bits. */
KHUB__INLINE __m256i add_bytes(__m256i sum, __m256i v)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i low = _mm256_unpacklo_epi8(v, zero), high = _mm256_unpackhi_epi8(v, zero);
    return _mm256_add_epi32(sum,
                            _mm256_add_epi32(_mm256_madd_epi16(low, low), _mm256_madd_epi16(high, high)));
}

KHUB__INLINE uint32_t most_of(kind k, __m256i v) /* unsigned */
{
    __m256i keys = _mm256_xor_si256(v, khub__everywhere(format_of(k), khub__sign_bit(format_of(k))));
    return (uint32_t)(largest_lane(k, keys) + (int64_t)khub__sign_bit(format_of(k)));
}

/* Whole vectors, at most a block: 128 of them, so lanes of 8 bits count them. */
KHUB__INLINE totals totals_of(kind k, const char *a, const char *b, size_t bytes)
{
    const __m256i zero = _mm256_setzero_si256(), full = _mm256_set1_epi8(-1);
    __m256i distances = zero, most = zero, same = zero, missed = zero, furthest = zero;
    __m256i square = zero, of_a = zero, of_b = zero; /* of 8 bits */
    squares wide[3] = {{zero, zero}, {zero, zero}, {zero, zero}};
    __m256i top_a = keys_at(k, a), top_b = keys_at(k, b);
#pragma GCC unroll 2
    for (size_t i = 0; i < bytes; i += 32) {
        __m256i x = khub__load(a + i), y = khub__load(b + i), key_x = keys_at(k, a + i),
                key_y = keys_at(k, b + i);
        __m256i high = larger(k, key_x, key_y), low = smaller(k, key_x, key_y);
        __m256i distance = k.bytes == 2 ? _mm256_sub_epi16(high, low) : _mm256_sub_epi8(high, low);
        __m256i equal = khub__equal(format_of(k), x, y), is_zero = khub__equal(format_of(k), y, zero);
        __m256i size_x = size_of(k, x), size_y = size_of(k, y);
        top_a = larger(k, top_a, key_x), top_b = larger(k, top_b, key_y);
        most = k.bytes == 2 ? _mm256_max_epu16(most, distance) : _mm256_max_epu8(most, distance);
        /* how far |b| is from the most there is, 0 where it doesn't count */
        __m256i far = _mm256_andnot_si256(_mm256_or_si256(equal, is_zero), _mm256_xor_si256(size_y, full));
        furthest = k.bytes == 2 ? _mm256_max_epu16(furthest, far) : _mm256_max_epu8(furthest, far);
        is_zero = _mm256_andnot_si256(equal, is_zero);
        same = k.bytes == 2 ? _mm256_sub_epi16(same, equal) : _mm256_sub_epi8(same, equal);
        missed = k.bytes == 2 ? _mm256_sub_epi16(missed, is_zero) : _mm256_sub_epi8(missed, is_zero);
        if (k.bytes == 2) {
            distances = wider_16(distances, distance);
            add_squares(&wide[0], distance);
            add_squares(&wide[1], size_x);
            add_squares(&wide[2], size_y);
        } else {
            distances = _mm256_add_epi64(distances, _mm256_sad_epu8(distance, zero));
            square = add_bytes(square, distance);
            of_a = add_bytes(of_a, size_x);
            of_b = add_bytes(of_b, size_y);
        }
    }
    uint32_t all = k.bytes == 2 ? UINT16_MAX : UINT8_MAX;
    if (k.bytes == 1)
        return (totals){sum_of_32(distances),
                        sum_of_32(square),
                        sum_of_32(of_a),
                        sum_of_32(of_b),
                        sum_of_32(_mm256_sad_epu8(same, zero)),
                        sum_of_32(_mm256_sad_epu8(missed, zero)),
                        most_of(k, most),
                        all - most_of(k, furthest),
                        largest_lane(k, top_a),
                        largest_lane(k, top_b)};
    return (totals){
        sum_of_32(distances),     sum_of_squares(&wide[0]),        sum_of_squares(&wide[1]),
        sum_of_squares(&wide[2]), sum_of_32(wider_16(zero, same)), sum_of_32(wider_16(zero, missed)),
        most_of(k, most),         all - most_of(k, furthest),      largest_lane(k, top_a),
        largest_lane(k, top_b)};
}

KHUB__INLINE uint64_t magnitude_of(kind k, int64_t key)
{
    int64_t value = k.is_signed ? key : key + (int64_t)khub__sign_bit(format_of(k));
    return (uint64_t)(value < 0 ? -value : value);
}

KHUB__INLINE void add_rest(totals *t, kind k, const char *a, const char *b, size_t i, size_t count)
{
    for (; i < count; i++) {
        int64_t key_a = key_at(k, a, i), key_b = key_at(k, b, i);
        uint64_t distance = (uint64_t)(key_a > key_b ? key_a - key_b : key_b - key_a);
        uint64_t size_a = magnitude_of(k, key_a), size_b = magnitude_of(k, key_b);
        t->distance += distance, t->square += distance * distance;
        t->a += size_a * size_a, t->b += size_b * size_b;
        t->same += distance == 0, t->missed += distance && !size_b;
        if (distance > t->most) t->most = (uint32_t)distance;
        if (distance && size_b && size_b < t->least_of_b) t->least_of_b = (uint32_t)size_b;
        if (key_a > t->top_a) t->top_a = key_a;
        if (key_b > t->top_b) t->top_b = key_b;
    }
}

/* Four of 8 or 16 bits. */
KHUB__INLINE __m256d few_doubles_at(kind k, const char *at)
{
    int64_t bits = 0;
    memcpy(&bits, at, 4 * (size_t)k.bytes);
    __m128i x = _mm_cvtsi64_si128(bits);
    if (k.bytes == 2) return _mm256_cvtepi32_pd(k.is_signed ? _mm_cvtepi16_epi32(x) : _mm_cvtepu16_epi32(x));
    return _mm256_cvtepi32_pd(k.is_signed ? _mm_cvtepi8_epi32(x) : _mm_cvtepu8_epi32(x));
}

/* Whether a pair, of those whose b isn't 0, has a relative error that is worse than the worst so far. */
KHUB__INLINE int has_worse_relative(kind k, const khub_comparison *c, const char *a, const char *b,
                                    size_t count)
{
    const double bound = khub__relative_bound(c);
    const __m256d bounds = _mm256_set1_pd(bound), zero = _mm256_setzero_pd();
    __m256d worse = zero;
    size_t i = 0, bytes = (size_t)k.bytes;
    for (; i + 4 <= count; i += 4) {
        __m256d x = few_doubles_at(k, a + i * bytes), y = few_doubles_at(k, b + i * bytes);
        __m256d far = _mm256_cmp_pd(khub__sizes_of(_mm256_sub_pd(x, y)),
                                    _mm256_mul_pd(bounds, khub__sizes_of(y)), _CMP_GT_OQ);
        worse = _mm256_or_pd(worse, _mm256_and_pd(far, _mm256_cmp_pd(y, zero, _CMP_NEQ_OQ)));
    }
    int any = _mm256_movemask_pd(worse) != 0;
    for (; i < count; i++) {
        int64_t key_a = key_at(k, a, i), key_b = key_at(k, b, i);
        double size = (double)magnitude_of(k, key_b);
        any |= size != 0 && khub__size_of((double)(key_a - key_b)) > bound * size;
    }
    return any;
}

KHUB__INLINE int block_small(kind k, khub_comparison *c, const char *a, const char *b, size_t count,
                             khub__pairs_read *read, khub__pairs *pairs, khub__tops *tops)
{
    const size_t bytes = (size_t)k.bytes, whole = count / (32 / bytes) * (32 / bytes);
    totals t = {.least_of_b = UINT32_MAX, .top_a = INT64_MIN, .top_b = INT64_MIN};
    if (whole) t = totals_of(k, a, b, whole * bytes);
    add_rest(&t, k, a, b, whole, count);
    double sums[KHUB__LANE_SUMS] = {(double)t.distance, (double)t.distance, (double)t.square, (double)t.a,
                                    (double)t.b};
    int missing = khub__totals_add(c, sums) ? 0 : KHUB__PRODUCT;
    int is_worse = t.most > c->ulp.value || t.most > c->absolute.value;
    /* mostly it suffices that no relative error is larger than of the largest distance and the least b */
    if (!is_worse && t.most && !(t.most <= c->relative.value * t.least_of_b))
        is_worse = has_worse_relative(k, c, a, b, count);
    if (is_worse)
        missing |= KHUB__WORSE; /* which counts the missed ones, too */
    else
        c->zero_missed += t.missed;
    khub__count_pairs(c, format_of(k), a, b, count, (size_t)t.same, 0);
    if (missing) khub__ask_plain_way(c, missing, a, b, count, bytes, bytes, read, pairs);
    if (tops) *tops = (khub__tops){order_of(k, t.top_a), order_of(k, t.top_b)};
    return 1;
}

/* Of 32 and 64 bits: four pairs. */
KHUB__INLINE __m256d doubles_at(kind k, const char *at)
{
    if (k.bytes == 8)
        return khub__doubles_less(keys_at((kind){8, !k.is_signed}, at), k.is_signed ? 0x1p63 : 0);
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)at);
    if (k.is_signed) return _mm256_cvtepi32_pd(x);
    return _mm256_add_pd(_mm256_cvtepi32_pd(_mm_xor_si128(x, _mm_set1_epi32(INT32_MIN))),
                         _mm256_set1_pd(0x1p31));
}

KHUB__INLINE khub__four four_at(kind k, const char *a, const char *b)
{
    khub__four p = {doubles_at(k, a), doubles_at(k, b)};
    if (k.bytes == 4) {
        __m256d difference = _mm256_sub_pd(p.a, p.b); /* exact */
        p.distance = khub__sizes_of(difference);
        p.same = _mm256_castpd_si256(_mm256_cmp_pd(p.a, p.b, _CMP_EQ_OQ));
    } else {
        __m256i x = keys_at(k, a), y = keys_at(k, b), less = _mm256_cmpgt_epi64(y, x);
        p.distance =
            khub__doubles_less(_mm256_sub_epi64(_mm256_xor_si256(_mm256_sub_epi64(x, y), less), less), 0);
        p.same = _mm256_cmpeq_epi64(x, y);
    }
    p.ulp = p.distance;
    p.level = p.same;
    return p;
}

KHUB__INLINE khub__lanes add_side(kind k, const khub__bounds *worst, const char *a, const char *b,
                                  size_t whole, int ask)
{
    khub__lanes l = khub__no_lanes();
    const size_t step = 8 * (size_t)k.bytes, bytes = whole * (size_t)k.bytes;
    for (size_t i = 0; i < bytes; i += step) {
        if (ask) khub__ask_for(a + i, bytes);
        if (ask) khub__ask_for(b + i, bytes);
        const khub__four pairs = four_at(k, a + i, b + i);
        khub__lanes_take_four(&l, worst, &pairs, 0);
    }
    return l;
}

KHUB__INLINE int64_t top_of(kind k, const char *at, size_t count)
{
    const size_t vector = 32 / (size_t)k.bytes;
    size_t i = 0;
    int64_t top = INT64_MIN;
    if (count >= vector) {
        __m256i keys = keys_at(k, at);
        for (i = vector; i + vector <= count; i += vector)
            keys = larger(k, keys, keys_at(k, at + i * (size_t)k.bytes));
        top = largest_lane(k, keys);
    }
    for (; i < count; i++)
        if (key_at(k, at, i) > top) top = key_at(k, at, i);
    return order_of(k, top);
}

KHUB__INLINE int block_wide(kind k, khub_comparison *c, const char *a, const char *b, size_t count,
                            khub__pairs_read *read, khub__pairs *pairs, khub__tops *tops)
{
    const size_t bytes = (size_t)k.bytes, whole = count / 8 * 8, half = 4 * bytes;
    const khub__bounds worst = khub__bounds_of(c);
    khub__lanes l[2] = {add_side(k, &worst, a, b, whole, 0),
                        add_side(k, &worst, a + half, b + half, whole, 1)};
    size_t padding = 0;
    if (whole < count) { /* zeros after the last ones add nothing but to what is counted */
        char rest_a[64] = {0}, rest_b[64] = {0};
        memcpy(rest_a, a + whole * bytes, (count - whole) * bytes);
        memcpy(rest_b, b + whole * bytes, (count - whole) * bytes);
        for (size_t side = 0; side < 2; side++) {
            const khub__four pairs_of_side = four_at(k, rest_a + side * half, rest_b + side * half);
            khub__lanes_take_four(&l[side], &worst, &pairs_of_side, 0);
        }
        padding = 8 - count % 8;
    }
    double sums[KHUB__LANE_SUMS];
    khub__lanes_total(sums, l);
    int missing = khub__lanes_settle(c, l, sums);
    khub__count_pairs(c, format_of(k), a, b, count, khub__sum_of_lanes(l[0].same, l[1].same) - padding, 0);
    if (missing) khub__ask_plain_way(c, missing, a, b, count, bytes, bytes, read, pairs);
    if (tops) *tops = (khub__tops){top_of(k, a, count), top_of(k, b, count)};
    return 1;
}

#define DEFINE(name, code, size, is_signed)                                                                  \
    static int block_##name(khub_comparison *c, const void *a, const void *b, size_t count,                  \
                            khub__pairs_read *read, khub__pairs *pairs, khub__tops *tops)                    \
    {                                                                                                        \
        const kind k = {size, is_signed};                                                                    \
        return size < 4 ? block_small(k, c, a, b, count, read, pairs, tops)                                  \
                        : block_wide(k, c, a, b, count, read, pairs, tops);                                  \
    }                                                                                                        \
    static size_t find_##name(const void *at, size_t count, int64_t order)                                   \
    {                                                                                                        \
        return find((kind){size, is_signed}, at, count, order);                                              \
    }                                                                                                        \
    static size_t rows_##name(const void *a, const void *b, size_t rows, size_t width)                       \
    {                                                                                                        \
        return same_places((kind){size, is_signed}, a, b, rows, width);                                      \
    }
KHUB__INTEGERS(DEFINE)

#define ROW(name, code, size, is_signed)                                                                     \
    {{code, 8 * (size), 1}, {block_##name, find_##name, find_##name, rows_##name}},
static const struct {
    khub_dtype dtype;
    khub__fast fast;
} table[] = {KHUB__INTEGERS(ROW)};

const khub__fast *khub__fast_avx2_integers(khub_dtype dtype)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!memcmp(&table[i].dtype, &dtype, sizeof(dtype))) return &table[i].fast;
    return NULL;
}
#endif
