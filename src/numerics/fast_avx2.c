/* Blocks of float32, bfloat16, float16 and float8 with AVX2, FMA and F16C, which only this source is compiled
 * for.
 *
 * A block is read twice, the second time out of the nearest cache: as integers, for all that is about bits
 * and steps, then as doubles, for the sums (float8 mostly as integers: fast_avx2_float8.c). A product that is
 * exact in double may be fused into its sum: that rounds as the two operations do. */
#include "numerics/fast_avx2_rows.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
/* What the integers of a block say. */
typedef struct steps {
    uint64_t total;      /* of the distances */
    uint32_t most;       /* the largest of them */
    uint32_t biggest;    /* magnitude */
    uint32_t least_of_b; /* magnitude, where the bits differ; no number's: nowhere */
    size_t same;         /* pairs of the same bits */
    khub__tops tops;
} steps;

static const steps no_steps = {0, 0, 0, UINT32_MAX, 0, {INT64_MIN, INT64_MIN}};

/* Eight lanes to one by an operation on two. */
#define DEFINE_REDUCE(name, of_two)                                                                          \
    KHUB__INLINE uint32_t name(__m256i v)                                                                    \
    {                                                                                                        \
        __m128i r = of_two(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));                       \
        r = of_two(r, _mm_shuffle_epi32(r, 0x4e));                                                           \
        r = of_two(r, _mm_shuffle_epi32(r, 0xb1));                                                           \
        return (uint32_t)_mm_cvtsi128_si32(r);                                                               \
    }
DEFINE_REDUCE(sum_of, _mm_add_epi32)
DEFINE_REDUCE(max_of_signed, _mm_max_epi32)
DEFINE_REDUCE(max_of_unsigned, _mm_max_epu32)
DEFINE_REDUCE(min_of_unsigned, _mm_min_epu32)

/* The sum of |order_x - order_y|, when it is too large for the lanes it is usually taken in. */
KHUB__INLINE uint64_t total_of(khub__format f, const char *a, const char *b, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t x = khub__order_of(f, khub__bits_at(a, i, f.bytes));
        int64_t y = khub__order_of(f, khub__bits_at(b, i, f.bytes));
        total += (uint64_t)(x > y ? x - y : y - x);
    }
    return total;
}

/* `count` pairs of 32 bits, a multiple of 8 and at most KHUB__BLOCK. */
KHUB__INLINE steps steps_of_32(const char *a, const char *b, size_t count)
{
    const __m256i magnitude = _mm256_set1_epi32(INT32_MAX);
    __m256i total = _mm256_setzero_si256(), most = total, same = total, low = total,
            least = _mm256_set1_epi32(-1), top_a = _mm256_set1_epi32(INT32_MIN), top_b = top_a;
#pragma GCC unroll 2
    for (size_t i = 0; i < count; i += 8) {
        __m256i x = khub__load(a + 4 * i), y = khub__load(b + 4 * i);
        __m256i size_y = _mm256_and_si256(y, magnitude), equal = _mm256_cmpeq_epi32(x, y);
        __m256i order_x = _mm256_sign_epi32(_mm256_and_si256(x, magnitude), x);
        __m256i order_y = _mm256_sign_epi32(size_y, y), lower = _mm256_min_epi32(order_x, order_y);
        __m256i distance = _mm256_sub_epi32(_mm256_max_epi32(order_x, order_y), lower);
        total = _mm256_add_epi32(total, distance);
        most = _mm256_max_epu32(most, distance);
        low = _mm256_min_epi32(low, lower);
        same = _mm256_sub_epi32(same, equal);
        least = _mm256_min_epu32(least, _mm256_or_si256(size_y, equal));
        top_a = _mm256_max_epi32(top_a, order_x);
        top_b = _mm256_max_epi32(top_b, order_y);
    }
    __m256i biggest = _mm256_max_epi32(_mm256_max_epi32(top_a, top_b), _mm256_abs_epi32(low));
    uint32_t widest = max_of_unsigned(most);
    int fits = widest < UINT32_MAX / KHUB__BLOCK; /* all of them together, into one lane */
    return (steps){fits ? sum_of(total) : total_of(KHUB__FORMAT_float32, a, b, count),
                   widest,
                   max_of_signed(biggest),
                   min_of_unsigned(least),
                   sum_of(same),
                   {(int32_t)max_of_signed(top_a), (int32_t)max_of_signed(top_b)}};
}

/* What becomes of 16 lanes of 16 bits when each two of them are made one of 32. */
KHUB__INLINE __m256i even(__m256i v)
{
    return _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
}
KHUB__INLINE __m256i odd(__m256i v)
{
    return _mm256_srli_epi32(v, 16);
}
KHUB__INLINE __m256i max_of_two(__m256i v) /* signed */
{
    return _mm256_max_epi32(_mm256_srai_epi32(_mm256_slli_epi32(v, 16), 16), _mm256_srai_epi32(v, 16));
}
/* `count` pairs of 16 bits, a multiple of 16 and at most a block: no lane of 16 bits counts further. */
KHUB__INLINE steps steps_of_16(khub__format f, const char *a, const char *b, size_t count)
{
    const __m256i magnitude = _mm256_set1_epi16(INT16_MAX), full = _mm256_set1_epi16(-1);
    __m256i total = _mm256_setzero_si256(), most = total, same = total, low = total, least = full,
            top_a = _mm256_set1_epi16(INT16_MIN), top_b = top_a;
#pragma GCC unroll 2
    for (size_t i = 0; i < count; i += 16) {
        __m256i x = khub__load(a + 2 * i), y = khub__load(b + 2 * i);
        __m256i size_y = _mm256_and_si256(y, magnitude), equal = _mm256_cmpeq_epi16(x, y);
        __m256i order_x = _mm256_sign_epi16(_mm256_and_si256(x, magnitude), x);
        __m256i order_y = _mm256_sign_epi16(size_y, y), lower = _mm256_min_epi16(order_x, order_y);
        __m256i distance = _mm256_sub_epi16(_mm256_max_epi16(order_x, order_y), lower);
        total = _mm256_adds_epu16(total, distance); /* stays at the largest number there is */
        most = _mm256_max_epu16(most, distance);
        low = _mm256_min_epi16(low, lower);
        same = _mm256_sub_epi16(same, equal);
        least = _mm256_min_epu16(least, _mm256_or_si256(size_y, equal));
        top_a = _mm256_max_epi16(top_a, order_x);
        top_b = _mm256_max_epi16(top_b, order_y);
    }
    __m256i biggest = _mm256_max_epi16(_mm256_max_epi16(top_a, top_b), _mm256_abs_epi16(low));
    int fits = _mm256_testz_si256(_mm256_cmpeq_epi16(total, full), full);
    return (steps){fits ? sum_of(_mm256_add_epi32(even(total), odd(total))) : total_of(f, a, b, count),
                   max_of_unsigned(_mm256_max_epu32(even(most), odd(most))),
                   max_of_signed(max_of_two(biggest)),
                   min_of_unsigned(_mm256_min_epu32(even(least), odd(least))),
                   sum_of(_mm256_add_epi32(even(same), odd(same))),
                   {(int32_t)max_of_signed(max_of_two(top_a)), (int32_t)max_of_signed(max_of_two(top_b))}};
}

/* 32 lanes of 8 bits, each two of them made one of 16, and those of 32. */
KHUB__INLINE uint32_t max_of_bytes(__m256i v) /* unsigned */
{
    const __m256i low = _mm256_set1_epi16(0xff);
    v = _mm256_max_epi16(_mm256_and_si256(v, low), _mm256_srli_epi16(v, 8));
    return max_of_unsigned(_mm256_max_epu32(even(v), odd(v)));
}
KHUB__INLINE int32_t max_of_signed_bytes(__m256i v)
{
    v = _mm256_max_epi16(_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8));
    return (int32_t)max_of_signed(max_of_two(v));
}
KHUB__INLINE uint64_t sum_of_64(__m256i v)
{
    uint64_t lane[4];
    _mm256_storeu_si256((__m256i *)(void *)lane, v);
    return lane[0] + lane[1] + lane[2] + lane[3];
}

/* `count` pairs of 8 bits, a multiple of 32 and at most a block: no lane of 8 bits counts further. */
KHUB__INLINE steps steps_of_8(const char *a, const char *b, size_t count)
{
    const __m256i magnitude = _mm256_set1_epi8(INT8_MAX), zero = _mm256_setzero_si256();
    __m256i total = zero, most = zero, same = zero, low = zero, least = _mm256_set1_epi8(-1),
            top_a = _mm256_set1_epi8(INT8_MIN), top_b = top_a;
#pragma GCC unroll 2
    for (size_t i = 0; i < count; i += 32) {
        __m256i x = khub__load(a + i), y = khub__load(b + i);
        __m256i size_y = _mm256_and_si256(y, magnitude), equal = _mm256_cmpeq_epi8(x, y);
        __m256i order_x = _mm256_sign_epi8(_mm256_and_si256(x, magnitude), x);
        __m256i order_y = _mm256_sign_epi8(size_y, y), lower = _mm256_min_epi8(order_x, order_y);
        __m256i distance = _mm256_sub_epi8(_mm256_max_epi8(order_x, order_y), lower);
        total = _mm256_add_epi64(total, _mm256_sad_epu8(distance, zero));
        most = _mm256_max_epu8(most, distance);
        low = _mm256_min_epi8(low, lower);
        same = _mm256_sub_epi8(same, equal);
        least = _mm256_min_epu8(least, _mm256_or_si256(size_y, equal));
        top_a = _mm256_max_epi8(top_a, order_x);
        top_b = _mm256_max_epi8(top_b, order_y);
    }
    __m256i biggest = _mm256_max_epi8(_mm256_max_epi8(top_a, top_b), _mm256_abs_epi8(low));
    __m256i greatest = _mm256_xor_si256(least, _mm256_set1_epi8(-1)); /* of what is missing to 255 */
    return (steps){sum_of_64(total),
                   max_of_bytes(most),
                   max_of_bytes(biggest),
                   UINT8_MAX - max_of_bytes(greatest),
                   (size_t)sum_of_64(_mm256_sad_epu8(same, zero)),
                   {max_of_signed_bytes(top_a), max_of_signed_bytes(top_b)}};
}

/* The pairs from `i` on, one by one. */
KHUB__INLINE void more_steps(steps *s, khub__format f, const char *a, const char *b, size_t i, size_t count)
{
    for (; i < count; i++) {
        uint64_t x = khub__bits_at(a, i, f.bytes), y = khub__bits_at(b, i, f.bytes);
        uint32_t size_x = (uint32_t)(x & (khub__sign_bit(f) - 1)),
                 size_y = (uint32_t)(y & (khub__sign_bit(f) - 1));
        int64_t order_x = khub__order_of(f, x), order_y = khub__order_of(f, y);
        uint32_t distance = (uint32_t)(order_x > order_y ? order_x - order_y : order_y - order_x);
        s->total += distance;
        if (distance > s->most) s->most = distance;
        if (size_x > s->biggest) s->biggest = size_x;
        if (size_y > s->biggest) s->biggest = size_y;
        if (x == y)
            s->same++;
        else if (size_y < s->least_of_b)
            s->least_of_b = size_y;
        if (order_x > s->tops.a) s->tops.a = order_x;
        if (order_y > s->tops.b) s->tops.b = order_y;
    }
}

KHUB__INLINE steps steps_of(khub__format f, const char *a, const char *b, size_t count)
{
    size_t whole = count / (32 / (size_t)f.bytes) * (32 / (size_t)f.bytes);
    steps s = no_steps;
    if (whole && f.bytes == 1)
        s = steps_of_8(a, b, whole);
    else if (whole)
        s = f.bytes == 4 ? steps_of_32(a, b, whole) : steps_of_16(f, a, b, whole);
    more_steps(&s, f, a, b, whole, count);
    return s;
}

/* How much must be looked at for the sums of a block. */
typedef enum block_kind {
    EQUAL, /* a is b, but for the sign of zeros */
    NEAR,  /* the differences have few bits, and no error is larger than the worst so far */
    CLOSE, /* the same, but an absolute error may be */
    ANY
} block_kind;

/* Four lanes of each sum. */
typedef struct sums {
    __m256d absolute, square, a, b;
} sums;

typedef struct bounds {
    __m256d absolute, relative; /* what is worse must be looked at */
    __m256d most; /* the largest distance so far, or all ones in a lane that has something worse */
} bounds;

KHUB__INLINE void add_pairs(sums *s, bounds *worst, __m256d a, __m256d b, block_kind kind)
{
    s->a = _mm256_fmadd_pd(a, a, s->a); /* exact: twice 24 bits of 53 */
    if (kind == EQUAL) return;
    __m256d distance = khub__sizes_of(_mm256_sub_pd(a, b));
    s->b = _mm256_fmadd_pd(b, b, s->b);
    s->absolute = _mm256_add_pd(s->absolute, distance);
    if (kind != ANY) {
        s->square = _mm256_fmadd_pd(distance, distance, s->square);
        if (kind == CLOSE) worst->most = _mm256_max_pd(worst->most, distance);
        return;
    }
    s->square = _mm256_add_pd(s->square, _mm256_mul_pd(distance, distance));
    __m256d bound = _mm256_min_pd(worst->absolute, _mm256_mul_pd(worst->relative, khub__sizes_of(b)));
    worst->most = _mm256_or_pd(worst->most, _mm256_cmp_pd(distance, bound, _CMP_GT_OQ));
}

/* 16 float8 as float16 of the same number, or of 2^-8 of it: float8_e5m2 is float16's upper half, and
 * float8_e4m3fn has one bit of exponent less. Those of one side. */
KHUB__INLINE __m128i halves_of_bytes(khub__format f, const char *at, int side)
{
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)at), zero = _mm_setzero_si128();
    __m128i first = _mm_unpacklo_epi8(zero, x), second = _mm_unpackhi_epi8(zero, x);
    __m128i one = side ? _mm_unpackhi_epi64(first, second) : _mm_unpacklo_epi64(first, second);
    return f.mantissa == 2 ? one : _mm_and_si128(_mm_srai_epi16(one, 1), _mm_set1_epi16((short)0xbfff));
}

/* Of 16 bfloat16 or float8, those that belong to lanes 0 to 3 (side 0: elements 0 to 3 and 8 to 11) or to
 * lanes 4 to 7 as float32; bfloat16 are its upper half. Other formats are loaded when they are needed. */
KHUB__INLINE __m256 load_side(khub__format f, const char *at, int side)
{
    const __m256i zero = _mm256_setzero_si256();
    if (f.mantissa == 2) return _mm256_cvtph_ps(halves_of_bytes(f, at, side));
    if (f.mantissa == 3)
        return _mm256_mul_ps(_mm256_cvtph_ps(halves_of_bytes(f, at, side)), _mm256_set1_ps(256));
    if (f.mantissa != 7) return _mm256_setzero_ps();
    return _mm256_castsi256_ps(side ? _mm256_unpackhi_epi16(zero, khub__load(at))
                                    : _mm256_unpacklo_epi16(zero, khub__load(at)));
}

/* Elements 0 to 3 (second: 8 to 11) of side 0, 4 to 7 (12 to 15) of side 1. */
KHUB__INLINE __m256d four_of(khub__format f, __m256 loaded, const char *at, int side, int second)
{
    at += (4 * side + 8 * second) * f.bytes;
    if (f.mantissa == 23) return _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)at));
    if (f.mantissa == 10)
        return _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)at)));
    return _mm256_cvtps_pd(second ? _mm256_extractf128_ps(loaded, 1) : _mm256_castps256_ps128(loaded));
}

/* One side after the other: with both at once, there are more sums on the way than registers. */
KHUB__INLINE void add_16(sums s[2], bounds *worst, khub__format f, const char *a, const char *b,
                         block_kind kind)
{
    for (int side = 0; side < 2; side++) {
        __m256 x = load_side(f, a, side), y = load_side(f, b, side);
        add_pairs(&s[side], worst, four_of(f, x, a, side, 0), four_of(f, y, b, side, 0), kind);
        add_pairs(&s[side], worst, four_of(f, x, a, side, 1), four_of(f, y, b, side, 1), kind);
    }
}

/* The last pairs, fewer than 16, and zeros. */
KHUB__INLINE void copy_rest(char *to, const char *from, size_t bytes)
{
    memset(to, 0, 64);
    memcpy(to, from, bytes);
}

KHUB__INLINE void add_all(sums s[2], bounds *worst, khub__format f, const char *a, const char *b,
                          size_t count, block_kind kind)
{
    const size_t bytes = (size_t)f.bytes, line = 64, size = count * bytes, step = 16 * bytes;
    sums lanes[2] = {s[0], s[1]}; /* in registers */
    bounds at = *worst;
    size_t i = 0;
    for (; i + line <= size; i += line) { /* the lines that processors load */
        khub__ask_for(a + i, size);
        khub__ask_for(b + i, size);
        for (size_t part = 0; part < line; part += step)
            add_16(lanes, &at, f, a + i + part, b + i + part, kind);
    }
    for (; i + step <= size; i += step)
        add_16(lanes, &at, f, a + i, b + i, kind);
    if (i < size) {
        char rest_a[64], rest_b[64];
        copy_rest(rest_a, a + i, size - i);
        copy_rest(rest_b, b + i, size - i);
        add_16(lanes, &at, f, rest_a, rest_b, kind);
    }
    s[0] = lanes[0], s[1] = lanes[1], *worst = at;
}

/* The largest |a - b| there can be of magnitudes up to `biggest` no more than `most` steps apart: numbers lie
 * the wider apart, the larger they are. */
KHUB__INLINE double widest(khub__format f, uint32_t biggest, uint32_t most)
{
    if (most > 2 * biggest) most = 2 * biggest;
    uint64_t other = most > biggest ? khub__sign_bit(f) | (most - biggest) : biggest - most;
    return khub__number_of(f, biggest) - khub__number_of(f, other);
}

/* A pair d > 0 steps apart, d no more than a binade has: |a - b| is a small multiple of the smaller one's
 * step, so its square is exact. It is d steps of b's binade at most where b is normal, and d of the steps
 * that b is a multiple of where it is subnormal, so |a - b| / |b| is no more than d by the smaller of these.
 */
KHUB__INLINE block_kind kind_of_block(khub__format f, const khub_comparison *c, const steps *s)
{
    uint32_t binade = UINT32_C(1) << f.mantissa;
    if (s->most == 0) return EQUAL;
    if (f.bytes == 4) return ANY; /* 2^23 numbers in a binade: the bound is never reached */
    double steps_of_b = s->least_of_b < binade ? s->least_of_b : binade;
    if (s->most > binade || !(s->most <= c->relative.value * steps_of_b)) return ANY; /* so, too, beside 0 */
    return widest(f, s->biggest, s->most) <= c->absolute.value ? NEAR : CLOSE;
}

/* What is missing when these have been added. */
KHUB__INLINE int add_totals(khub_comparison *c, const double totals[KHUB__LANE_SUMS])
{
    return khub__totals_add(c, totals) ? 0 : KHUB__PRODUCT;
}

/* Adds to the sums. Returns what is missing. */
KHUB__INLINE int add_sums(khub_comparison *c, khub__format f, const char *a, const char *b, size_t count,
                          const steps *counted, block_kind kind)
{
    const __m256d zero = _mm256_setzero_pd(), absolute = _mm256_set1_pd(c->absolute.value);
    sums s[2] = {{zero, zero, zero, zero}, {zero, zero, zero, zero}};
    bounds worst = {absolute, _mm256_set1_pd(khub__relative_bound(c)), zero};
    add_all(s, &worst, f, a, b, count, kind);
    double totals[KHUB__LANE_SUMS] = {(double)counted->total}; /* exact, in whatever lanes */
    totals[KHUB__SUM_ABSOLUTE] = khub__lanes_sum(s[0].absolute, s[1].absolute);
    totals[KHUB__SUM_SQUARE] = khub__lanes_sum(s[0].square, s[1].square);
    totals[KHUB__SUM_A] = khub__lanes_sum(s[0].a, s[1].a);
    totals[KHUB__SUM_B] = kind == EQUAL ? totals[KHUB__SUM_A] : khub__lanes_sum(s[0].b, s[1].b);
    int missing = add_totals(c, totals);
    if (kind == CLOSE) worst.most = _mm256_cmp_pd(worst.most, absolute, _CMP_GT_OQ);
    return missing | (_mm256_movemask_pd(worst.most) ? KHUB__WORSE : 0);
}

/* The same of float8 in integers; -1: they don't do. */
KHUB__INLINE int add_integers(khub_comparison *c, khub__format f, const char *a, const char *b, size_t count,
                              const steps *counted, block_kind kind)
{
    double totals[KHUB__LANE_SUMS] = {(double)counted->total};
    if (f.bytes != 1 || kind == CLOSE || kind == ANY ||
        !khub__float8_totals(totals, f, a, b, count, counted->biggest, kind == EQUAL))
        return -1;
    return add_totals(c, totals);
}

KHUB__INLINE int add_by_kind(khub_comparison *c, khub__format f, const char *a, const char *b, size_t count,
                             const steps *counted)
{
    const block_kind kind = kind_of_block(f, c, counted);
    int missing = add_integers(c, f, a, b, count, counted, kind);
    if (missing >= 0) return missing;
    switch (kind) {
    case EQUAL:
        return add_sums(c, f, a, b, count, counted, EQUAL);
    case NEAR:
        return add_sums(c, f, a, b, count, counted, NEAR);
    case CLOSE:
        return add_sums(c, f, a, b, count, counted, CLOSE);
    default:
        return add_sums(c, f, a, b, count, counted, ANY);
    }
}

KHUB__INLINE int block(khub__format f, khub_comparison *c, const char *a, const char *b, size_t count,
                       khub__pairs_read *read, khub__pairs *pairs, khub__tops *tops)
{
    steps s = steps_of(f, a, b, count);
    if (s.biggest > f.largest) return 0;
    int missing = s.most > c->ulp.value ? KHUB__WORSE : 0;
    missing |= add_by_kind(c, f, a, b, count, &s);
    khub__count_pairs(c, f, a, b, count, s.same, s.least_of_b == 0);
    if (missing) khub__ask_plain_way(c, missing, a, b, count, (size_t)f.bytes, (size_t)f.bytes, read, pairs);
    if (tops) *tops = s.tops;
    return 1;
}

#define DEFINE(name)                                                                                         \
    static int block_##name(khub_comparison *c, const void *a, const void *b, size_t count,                  \
                            khub__pairs_read *read, khub__pairs *pairs, khub__tops *tops)                    \
    {                                                                                                        \
        return block(KHUB__FORMAT_##name, c, a, b, count, read, pairs, tops);                                \
    }                                                                                                        \
    static size_t find_##name(const void *at, size_t count, int64_t order)                                   \
    {                                                                                                        \
        return khub__find(KHUB__FORMAT_##name, at, count, order);                                            \
    }                                                                                                        \
    static size_t rows_##name(const void *a, const void *b, size_t rows, size_t width)                       \
    {                                                                                                        \
        return khub__same_places(KHUB__FORMAT_##name, a, b, rows, width);                                    \
    }
DEFINE(float32)
DEFINE(bfloat16)
DEFINE(float16)
DEFINE(float8_e4m3fn)
DEFINE(float8_e5m2)

#define FAST(name)                                                                                           \
    {                                                                                                        \
        block_##name, find_##name, find_##name, rows_##name                                                  \
    }
static const khub__fast float32 = FAST(float32), bfloat16 = FAST(bfloat16), float16 = FAST(float16),
                        e4m3fn = FAST(float8_e4m3fn), e5m2 = FAST(float8_e5m2);

const khub__fast *khub__fast_avx2(khub_dtype dtype)
{
    if (dtype.lanes != 1) return NULL;
    if (dtype.code == KHUB_DTYPE_BFLOAT) return &bfloat16;
    if (dtype.code == KHUB_DTYPE_FLOAT8_E4M3FN) return &e4m3fn;
    if (dtype.code == KHUB_DTYPE_FLOAT8_E5M2) return &e5m2;
    if (dtype.code != KHUB_DTYPE_FLOAT) return khub__fast_avx2_integers(dtype);
    return dtype.bits == 64 ? &khub__fast_avx2_float64 : dtype.bits == 32 ? &float32 : &float16;
}
#else
/* Another processor, or a compiler without these. */
const khub__fast *khub__fast_avx2(khub_dtype dtype)
{
    (void)dtype;
    return NULL;
}
#endif
