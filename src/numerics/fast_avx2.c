/* Blocks of float32, bfloat16 and float16 with AVX2, FMA and F16C, which only this source is compiled for.
 *
 * A block is read twice, the second time out of the nearest cache: as integers, for all that is about bits
 * and steps, then as doubles, for the sums. A product that is exact in double may be fused into its sum: that
 * rounds as the two operations do. */
#include "numerics/fast.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "numerics/format.h"

#include <immintrin.h>

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

KHUB__INLINE __m256i load(const void *at)
{
    return _mm256_loadu_si256(at);
}

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

/* `count` pairs of 32 bits, a multiple of 8. */
KHUB__INLINE steps steps_of_32(const char *a, const char *b, size_t count)
{
    const __m256i magnitude = _mm256_set1_epi32(INT32_MAX), half = _mm256_set1_epi64x(UINT32_MAX);
    __m256i total = _mm256_setzero_si256(), most = total, same = total, low = total,
            least = _mm256_set1_epi32(-1), top_a = _mm256_set1_epi32(INT32_MIN), top_b = top_a;
    for (size_t i = 0; i < count; i += 8) {
        __m256i x = load(a + 4 * i), y = load(b + 4 * i), size_y = _mm256_and_si256(y, magnitude);
        __m256i order_x = _mm256_sign_epi32(_mm256_and_si256(x, magnitude), x);
        __m256i order_y = _mm256_sign_epi32(size_y, y), lower = _mm256_min_epi32(order_x, order_y);
        __m256i distance = _mm256_sub_epi32(_mm256_max_epi32(order_x, order_y), lower);
        __m256i equal = _mm256_cmpeq_epi32(x, y);
        total = _mm256_add_epi64(total, _mm256_and_si256(distance, half));
        total = _mm256_add_epi64(total, _mm256_srli_epi64(distance, 32));
        most = _mm256_max_epu32(most, distance);
        low = _mm256_min_epi32(low, lower);
        same = _mm256_sub_epi32(same, equal);
        least = _mm256_min_epu32(least, _mm256_or_si256(size_y, equal));
        top_a = _mm256_max_epi32(top_a, order_x);
        top_b = _mm256_max_epi32(top_b, order_y);
    }
    uint64_t totals[4];
    memcpy(totals, &total, sizeof(totals));
    __m256i biggest = _mm256_max_epi32(_mm256_max_epi32(top_a, top_b), _mm256_abs_epi32(low));
    return (steps){totals[0] + totals[1] + totals[2] + totals[3],
                   max_of_unsigned(most),
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
/* The sum of both, each less 2^15: the instruction takes them as signed. */
KHUB__INLINE __m256i sum_of_two(__m256i v)
{
    return _mm256_madd_epi16(_mm256_xor_si256(v, _mm256_set1_epi16(INT16_MIN)), _mm256_set1_epi16(1));
}

/* `count` pairs of 16 bits, a multiple of 16 and at most KHUB__BLOCK: no lane of 16 bits counts further. */
KHUB__INLINE steps steps_of_16(const char *a, const char *b, size_t count)
{
    const __m256i magnitude = _mm256_set1_epi16(INT16_MAX);
    __m256i total = _mm256_setzero_si256(), most = total, same = total, low = total,
            least = _mm256_set1_epi16(-1), top_a = _mm256_set1_epi16(INT16_MIN), top_b = top_a;
    for (size_t i = 0; i < count; i += 16) {
        __m256i x = load(a + 2 * i), y = load(b + 2 * i), size_y = _mm256_and_si256(y, magnitude);
        __m256i order_x = _mm256_sign_epi16(_mm256_and_si256(x, magnitude), x);
        __m256i order_y = _mm256_sign_epi16(size_y, y), lower = _mm256_min_epi16(order_x, order_y);
        __m256i distance = _mm256_sub_epi16(_mm256_max_epi16(order_x, order_y), lower);
        __m256i equal = _mm256_cmpeq_epi16(x, y);
        total = _mm256_add_epi32(total, sum_of_two(distance));
        most = _mm256_max_epu16(most, distance);
        low = _mm256_min_epi16(low, lower);
        same = _mm256_sub_epi16(same, equal);
        least = _mm256_min_epu16(least, _mm256_or_si256(size_y, equal));
        top_a = _mm256_max_epi16(top_a, order_x);
        top_b = _mm256_max_epi16(top_b, order_y);
    }
    __m256i biggest = _mm256_max_epi16(_mm256_max_epi16(top_a, top_b), _mm256_abs_epi16(low));
    return (steps){sum_of(total) + (uint32_t)count * 0x8000,
                   max_of_unsigned(_mm256_max_epu32(even(most), odd(most))),
                   max_of_signed(max_of_two(biggest)),
                   min_of_unsigned(_mm256_min_epu32(even(least), odd(least))),
                   sum_of(_mm256_add_epi32(even(same), odd(same))),
                   {(int32_t)max_of_signed(max_of_two(top_a)), (int32_t)max_of_signed(max_of_two(top_b))}};
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
    if (whole) s = f.bytes == 4 ? steps_of_32(a, b, whole) : steps_of_16(a, b, whole);
    more_steps(&s, f, a, b, whole, count);
    return s;
}

/* How much must be looked at for the sums of a block. */
typedef enum block_kind {
    EQUAL, /* a is b, but for the sign of zeros */
    CLOSE, /* the differences have few bits, and no relative error is larger than the worst so far */
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

KHUB__INLINE __m256d size_of(__m256d x)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
}

KHUB__INLINE void add_pairs(sums *s, bounds *worst, __m256d a, __m256d b, block_kind kind)
{
    s->a = _mm256_fmadd_pd(a, a, s->a); /* exact: twice 24 bits of 53 */
    if (kind == EQUAL) return;
    __m256d distance = size_of(_mm256_sub_pd(a, b));
    s->b = _mm256_fmadd_pd(b, b, s->b);
    s->absolute = _mm256_add_pd(s->absolute, distance);
    if (kind == CLOSE) {
        s->square = _mm256_fmadd_pd(distance, distance, s->square);
        worst->most = _mm256_max_pd(worst->most, distance);
        return;
    }
    s->square = _mm256_add_pd(s->square, _mm256_mul_pd(distance, distance));
    __m256d bound = _mm256_min_pd(worst->absolute, _mm256_mul_pd(worst->relative, size_of(b)));
    worst->most = _mm256_or_pd(worst->most, _mm256_cmp_pd(distance, bound, _CMP_GT_OQ));
}

/* Of 16 bfloat16, those that belong to lanes 0 to 3 (side 0: elements 0 to 3 and 8 to 11) or to lanes 4 to 7
 * as float32, whose upper half they are. Other formats are loaded when they are needed. */
KHUB__INLINE __m256 load_side(khub__format f, const char *at, int side)
{
    const __m256i zero = _mm256_setzero_si256();
    if (f.mantissa != 7) return _mm256_setzero_ps();
    return _mm256_castsi256_ps(side ? _mm256_unpackhi_epi16(zero, load(at))
                                    : _mm256_unpacklo_epi16(zero, load(at)));
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

/* Asks for what lies `bytes` further on, which the next block most likely starts with: this one's sums are
 * worked out while it comes. Nothing is read, so it may lie past the tensor's end. */
KHUB__INLINE void ask_for(const char *at, size_t bytes)
{
    _mm_prefetch((const char *)((uintptr_t)at + bytes), _MM_HINT_T0);
}

/* The last pairs, fewer than 16, and zeros. */
static void copy_rest(char *to, const char *from, size_t bytes)
{
    memset(to, 0, 64);
    memcpy(to, from, bytes);
}

KHUB__INLINE void add_all(sums s[2], bounds *worst, khub__format f, const char *a, const char *b,
                          size_t count, block_kind kind)
{
    size_t bytes = (size_t)f.bytes, whole = count / 16 * 16;
    sums lanes[2] = {s[0], s[1]}; /* in registers */
    bounds at = *worst;
    for (size_t i = 0; i < whole; i += 16) {
        ask_for(a + i * bytes, count * bytes);
        ask_for(b + i * bytes, count * bytes);
        add_16(lanes, &at, f, a + i * bytes, b + i * bytes, kind);
    }
    if (whole < count) {
        char rest_a[64], rest_b[64];
        copy_rest(rest_a, a + whole * bytes, (count - whole) * bytes);
        copy_rest(rest_b, b + whole * bytes, (count - whole) * bytes);
        add_16(lanes, &at, f, rest_a, rest_b, kind);
    }
    s[0] = lanes[0], s[1] = lanes[1], *worst = at;
}

/* A pair d > 0 steps apart, d no more than a binade has: |a - b| is d steps of b's binade at most where b is
 * normal, and a small multiple of the smaller one's step, so its square is exact. */
KHUB__INLINE block_kind kind_of_block(khub__format f, const khub_comparison *c, const steps *s)
{
    uint32_t binade = UINT32_C(1) << f.mantissa;
    if (s->most == 0) return EQUAL;
    if (f.bytes == 4) return ANY; /* 2^23 numbers in a binade: the bound is never reached */
    int is_close = s->most <= binade && s->least_of_b >= binade;
    return is_close && (double)s->most / binade <= c->relative.value ? CLOSE : ANY;
}

/* What only the plain way can tell of a block. */
enum { WORSE = 1, PRODUCT = 2 };

/* Adds to the sums. Returns WORSE when there may be an error that is worse than the worst so far, PRODUCT
 * when that sum is missing. */
KHUB__INLINE int add_sums(khub_comparison *c, khub__format f, const char *a, const char *b, size_t count,
                          const steps *counted, block_kind kind)
{
    const __m256d zero = _mm256_setzero_pd(), absolute = _mm256_set1_pd(c->absolute.value);
    sums s[2] = {{zero, zero, zero, zero}, {zero, zero, zero, zero}};
    bounds worst = {absolute, _mm256_set1_pd(khub__relative_bound(c)), zero};
    double lanes[KHUB__LANE_SUMS][KHUB__LANES] = {{(double)counted->total}}; /* exact, in whatever lanes */
    add_all(s, &worst, f, a, b, count, kind);
    for (int i = 0; i < 2; i++) {
        _mm256_storeu_pd(lanes[KHUB__SUM_ABSOLUTE] + 4 * i, s[i].absolute);
        _mm256_storeu_pd(lanes[KHUB__SUM_SQUARE] + 4 * i, s[i].square);
        _mm256_storeu_pd(lanes[KHUB__SUM_A] + 4 * i, s[i].a);
        _mm256_storeu_pd(lanes[KHUB__SUM_B] + 4 * i, kind == EQUAL ? s[i].a : s[i].b);
    }
    int missing = khub__lanes_add(c, lanes) ? 0 : PRODUCT;
    if (kind == CLOSE) worst.most = _mm256_cmp_pd(worst.most, absolute, _CMP_GT_OQ);
    return missing | (_mm256_movemask_pd(worst.most) ? WORSE : 0);
}

/* Everything else that the plain way counts of finite pairs. */
KHUB__INLINE void count_pairs(khub_comparison *c, khub__format f, const char *a, const char *b, size_t count,
                              const steps *s)
{
    size_t first = 0;
    c->finite += count;
    c->identical += s->same;
    for (size_t i = 0; s->least_of_b == 0 && i < count; i++) {
        uint64_t x = khub__bits_at(a, i, f.bytes), y = khub__bits_at(b, i, f.bytes);
        c->zero_signs += x != y && khub__order_of(f, x) == khub__order_of(f, y);
    }
    if (c->first_different != c->count) return;
    if (s->same == count)
        first = count;
    else
        while (khub__bits_at(a, first, f.bytes) == khub__bits_at(b, first, f.bytes))
            first++;
    c->first_different += first;
}

KHUB__INLINE int block(khub__format f, khub_comparison *c, const char *a, const char *b, size_t count,
                       khub__pairs_read *read, khub__pairs *pairs, khub__tops *tops)
{
    steps s = steps_of(f, a, b, count);
    if (s.biggest > f.largest) return 0;
    int missing = s.most > c->ulp.value ? WORSE : 0;
    switch (kind_of_block(f, c, &s)) {
    case EQUAL:
        missing |= add_sums(c, f, a, b, count, &s, EQUAL);
        break;
    case CLOSE:
        missing |= add_sums(c, f, a, b, count, &s, CLOSE);
        break;
    case ANY:
        missing |= add_sums(c, f, a, b, count, &s, ANY);
        break;
    }
    count_pairs(c, f, a, b, count, &s);
    if (missing) {
        khub_comparison counted = *c; /* by now, so what `read` counts goes nowhere */
        read(pairs, &counted, a, b, count);
        if (missing & WORSE) khub__pairs_worst(c, pairs);
        if (missing & PRODUCT) khub__pairs_product(c, pairs);
    }
    *tops = s.tops;
    return 1;
}

/* The place of the first element of this order, which is there. */
KHUB__INLINE size_t find(khub__format f, const char *at, size_t count, int64_t order)
{
    size_t i = 0, width = 32 / (size_t)f.bytes;
    uint64_t bits = order < 0 ? khub__sign_bit(f) | (uint64_t)-order : (uint64_t)order;
    uint64_t asked = order == 0 ? khub__sign_bit(f) - 1 : ~UINT64_C(0); /* two zeros are of one order */
    __m256i wanted = f.bytes == 4 ? _mm256_set1_epi32((int32_t)bits) : _mm256_set1_epi16((int16_t)bits);
    __m256i mask = f.bytes == 4 ? _mm256_set1_epi32((int32_t)asked) : _mm256_set1_epi16((int16_t)asked);
    for (; i + width <= count; i += width) {
        __m256i x = _mm256_and_si256(load(at + i * (size_t)f.bytes), mask);
        __m256i equal = f.bytes == 4 ? _mm256_cmpeq_epi32(x, wanted) : _mm256_cmpeq_epi16(x, wanted);
        uint32_t found = (uint32_t)_mm256_movemask_epi8(equal);
        if (found) return i + (size_t)__builtin_ctz(found) / (size_t)f.bytes;
    }
    while (khub__order_of(f, khub__bits_at(at, i, f.bytes)) != order)
        i++;
    return i;
}

/* 0: there may be a NaN among the elements. */
KHUB__INLINE int look(khub__format f, khub__largest *l, const char *at, size_t count, int64_t from)
{
    steps s = steps_of(f, at, at, count); /* the compiler drops what isn't asked */
    if (s.biggest > f.infinity) return 0;
    if (s.tops.a > l->order) *l = (khub__largest){s.tops.a, from + (int64_t)find(f, at, count, s.tops.a)};
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
        return find(KHUB__FORMAT_##name, at, count, order);                                                  \
    }                                                                                                        \
    static int look_##name(khub__largest *l, const void *at, size_t count, int64_t from)                     \
    {                                                                                                        \
        return look(KHUB__FORMAT_##name, l, at, count, from);                                                \
    }
DEFINE(float32)
DEFINE(bfloat16)
DEFINE(float16)

static const khub__fast fast[] = {
    {{KHUB_DTYPE_FLOAT, 32, 1}, block_float32, find_float32, look_float32},
    {{KHUB_DTYPE_BFLOAT, 16, 1}, block_bfloat16, find_bfloat16, look_bfloat16},
    {{KHUB_DTYPE_FLOAT, 16, 1}, block_float16, find_float16, look_float16},
};

const khub__fast *khub__fast_avx2(khub_dtype dtype)
{
    for (size_t i = 0; i < sizeof(fast) / sizeof(*fast); i++)
        if (memcmp(&fast[i].dtype, &dtype, sizeof(dtype)) == 0) return &fast[i];
    return NULL;
}
#else
/* Another processor, or a compiler without these. */
const khub__fast *khub__fast_avx2(khub_dtype dtype)
{
    (void)dtype;
    return NULL;
}
#endif
