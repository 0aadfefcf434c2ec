/* Elements of every dtype as pairs of numbers: plain loops, one for each dtype, that say what everything
 * means. */
#include "numerics/format.h"
#include "numerics/pairs.h"

/* What an element, or what it is rounded to, is. */
enum { FINITE, INFINITE, NOT_A_NUMBER };

/* A pair of which one isn't finite. */
static void count_special(khub_comparison *c, int a, int b, int same_sign)
{
    if (a == NOT_A_NUMBER && b == NOT_A_NUMBER)
        c->both_nan++;
    else if (a == NOT_A_NUMBER)
        c->nan_only_a++;
    else if (b == NOT_A_NUMBER)
        c->nan_only_b++;
    else if (a == b)
        *(same_sign ? &c->infinity_same : &c->infinity_opposite) += 1;
    else
        *(a == INFINITE ? &c->infinity_only_a : &c->infinity_only_b) += 1;
}

KHUB__INLINE void put(khub__pairs *pairs, size_t i, double a, double b, double distance, double ulp)
{
    pairs->a[i] = a;
    pairs->b[i] = b;
    pairs->distance[i] = distance;
    pairs->ulp[i] = ulp;
}

/* Starts a block: zeros up to whole lanes. */
static void start(khub__pairs *pairs, size_t count)
{
    pairs->count = count;
    for (size_t i = count; i % KHUB__LANES; i++)
        put(pairs, i, 0, 0, 0, 0);
}

/* Ends one of which `different` pairs have other bits. */
static void finish(khub_comparison *c, const khub__pairs *pairs, size_t different)
{
    size_t first = 0;
    c->identical += pairs->count - different;
    if (c->first_different != c->count) return;
    if (different == 0)
        first = pairs->count;
    else
        while (!pairs->differs[first])
            first++;
    c->first_different += first;
}

KHUB__INLINE int kind_of(khub__format f, uint64_t magnitude)
{
    return magnitude <= f.largest ? FINITE : magnitude == f.infinity ? INFINITE : NOT_A_NUMBER;
}

KHUB__INLINE uint64_t magnitude_of(khub__format f, uint64_t bits)
{
    return bits & (khub__sign_bit(f) - 1);
}

KHUB__INLINE void read_floats(khub__format f, khub__pairs *pairs, khub_comparison *c, const void *at_a,
                              const void *at_b, size_t count)
{
    size_t different = 0;
    start(pairs, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t a = khub__bits_at(at_a, i, f.bytes), b = khub__bits_at(at_b, i, f.bytes);
        int a_kind = kind_of(f, magnitude_of(f, a)), b_kind = kind_of(f, magnitude_of(f, b));
        different += pairs->differs[i] = a != b;
        if (a_kind != FINITE || b_kind != FINITE) {
            put(pairs, i, 0, 0, 0, 0);
            count_special(c, a_kind, b_kind, !((a ^ b) & khub__sign_bit(f)));
            c->nan_payloads += a != b && a_kind == NOT_A_NUMBER && b_kind == NOT_A_NUMBER;
            continue;
        }
        int64_t a_order = khub__order_of(f, a), b_order = khub__order_of(f, b);
        uint64_t steps =
            a_order > b_order ? (uint64_t)a_order - (uint64_t)b_order : (uint64_t)b_order - (uint64_t)a_order;
        double x = khub__number_of(f, a), y = khub__number_of(f, b);
        c->finite++;
        c->zero_signs += a != b && steps == 0;
        put(pairs, i, x, y, khub__size_of(x - y), (double)steps);
    }
    finish(c, pairs, different);
}

/* b is of the wider format `w`. */
KHUB__INLINE void read_beside(khub__format f, khub__format w, khub__pairs *pairs, khub_comparison *c,
                              const void *at_a, const void *at_b, size_t count)
{
    const double largest = khub__number_of(f, f.largest);
    size_t different = 0;
    start(pairs, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t a = khub__bits_at(at_a, i, f.bytes), b = khub__bits_at(at_b, i, w.bytes);
        int a_kind = kind_of(f, magnitude_of(f, a)), b_kind = kind_of(w, magnitude_of(w, b));
        int same_sign = !(a & khub__sign_bit(f)) == !(b & khub__sign_bit(w));
        double x = 0, y = 0, rounded = 0, ulp = 1;
        if (b_kind == FINITE) {
            y = khub__number_of(w, b);
            rounded = khub__round_to(f, y, &ulp);
            if (rounded > largest) b_kind = INFINITE;
        }
        if (b_kind == INFINITE && !f.infinity) b_kind = NOT_A_NUMBER;
        int same = a_kind == b_kind && (same_sign || a_kind == NOT_A_NUMBER);
        if (a_kind == FINITE && b_kind == FINITE) {
            x = khub__number_of(f, a);
            same = same && khub__size_of(x) == rounded;
            c->finite++;
            c->zero_signs += !same && x == 0 && rounded == 0;
            put(pairs, i, x, y, khub__size_of(x - y), khub__size_of(x - y) / ulp);
        } else {
            put(pairs, i, 0, 0, 0, 0);
            count_special(c, a_kind, b_kind, same_sign);
        }
        different += pairs->differs[i] = !same;
    }
    finish(c, pairs, different);
}

/* In 64 bits, two's complement where the dtype has a sign. */
KHUB__INLINE uint64_t integer_at(const void *at, size_t i, int bytes, int is_signed)
{
    uint64_t u = khub__bits_at(at, i, bytes), from_sign = ~UINT64_C(0) << (8 * bytes - 1);
    return is_signed && (u & from_sign) ? u | from_sign : u;
}

KHUB__INLINE void read_integers(int bytes, int is_signed, khub__pairs *pairs, khub_comparison *c,
                                const void *at_a, const void *at_b, size_t count)
{
    const uint64_t order = is_signed ? UINT64_C(1) << 63 : 0; /* from two's complement to unsigned order */
    size_t different = 0;
    start(pairs, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t a = integer_at(at_a, i, bytes, is_signed), b = integer_at(at_b, i, bytes, is_signed);
        double distance = (double)((a ^ order) > (b ^ order) ? a - b : b - a);
        different += pairs->differs[i] = a != b;
        if (is_signed)
            put(pairs, i, (double)(int64_t)a, (double)(int64_t)b, distance, distance);
        else
            put(pairs, i, (double)a, (double)b, distance, distance);
    }
    c->finite += count;
    finish(c, pairs, different);
}

static void read_bool(khub__pairs *pairs, khub_comparison *c, const void *at_a, const void *at_b,
                      size_t count)
{
    size_t different = 0;
    start(pairs, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t a = khub__bits_at(at_a, i, 1), b = khub__bits_at(at_b, i, 1);
        different += pairs->differs[i] = a != b;
        put(pairs, i, a != 0, b != 0, !a != !b, !a != !b);
    }
    c->finite += count;
    finish(c, pairs, different);
}

/* The first that is larger than what came before, of elements whose order is `expression` of i. */
#define LOOK(expression)                                                                                     \
    for (size_t i = 0; i < count; i++) {                                                                     \
        int64_t order = (expression);                                                                        \
        if (order > l->order) *l = (khub__largest){order, from + (int64_t)i};                                \
    }

KHUB__INLINE int64_t float_order(khub__format f, uint64_t bits)
{
    int is_nan = kind_of(f, magnitude_of(f, bits)) == NOT_A_NUMBER;
    return is_nan ? INT64_MAX : khub__order_of(f, bits);
}

#define DEFINE_FLOAT(name, code, bytes)                                                                      \
    static void read_##name(khub__pairs *pairs, khub_comparison *c, const void *a, const void *b,            \
                            size_t count)                                                                    \
    {                                                                                                        \
        read_floats(KHUB__FORMAT_##name, pairs, c, a, b, count);                                             \
    }                                                                                                        \
    static void look_##name(khub__largest *l, const void *at, size_t count, int64_t from)                    \
    {                                                                                                        \
        LOOK(float_order(KHUB__FORMAT_##name, khub__bits_at(at, i, bytes)))                                  \
    }
KHUB__FLOATS(DEFINE_FLOAT)

#define DEFINE_BESIDE(name, wide)                                                                            \
    static void read_##name##_##wide(khub__pairs *pairs, khub_comparison *c, const void *a, const void *b,   \
                                     size_t count)                                                           \
    {                                                                                                        \
        read_beside(KHUB__FORMAT_##name, KHUB__FORMAT_##wide, pairs, c, a, b, count);                        \
    }
#define DEFINE_BESIDE_BOTH(name, code, bytes) DEFINE_BESIDE(name, float32) DEFINE_BESIDE(name, float64)
DEFINE_BESIDE(float32, float64)
KHUB__FLOATS_SMALL(DEFINE_BESIDE_BOTH)

#define DEFINE_INTEGER(name, code, bytes, is_signed)                                                         \
    static void read_##name(khub__pairs *pairs, khub_comparison *c, const void *a, const void *b,            \
                            size_t count)                                                                    \
    {                                                                                                        \
        read_integers(bytes, is_signed, pairs, c, a, b, count);                                              \
    }                                                                                                        \
    static void look_##name(khub__largest *l, const void *at, size_t count, int64_t from)                    \
    {                                                                                                        \
        const uint64_t order_bit = (is_signed) ? 0 : UINT64_C(1) << 63;                                      \
        LOOK((int64_t)(integer_at(at, i, bytes, is_signed) ^ order_bit))                                     \
    }
KHUB__INTEGERS(DEFINE_INTEGER)

static void look_bool(khub__largest *l, const void *at, size_t count, int64_t from)
{
    LOOK(khub__bits_at(at, i, 1) != 0)
}

#define DTYPE(code, bytes)                                                                                   \
    {                                                                                                        \
        code, 8 * (bytes), 1                                                                                 \
    }
#define SMALL_READER(name, code, bytes)                                                                      \
    {DTYPE(code, bytes), bytes, look_##name, read_##name, read_##name##_float32, read_##name##_float64},
#define INTEGER_READER(name, code, bytes, is_signed)                                                         \
    {DTYPE(code, bytes), bytes, look_##name, read_##name, NULL, NULL},
static const khub__dtype_reader readers[] = {
    {DTYPE(KHUB_DTYPE_FLOAT, 8), 8, look_float64, read_float64, NULL, NULL},
    {DTYPE(KHUB_DTYPE_FLOAT, 4), 4, look_float32, read_float32, NULL, read_float32_float64},
    KHUB__FLOATS_SMALL(SMALL_READER) KHUB__INTEGERS(INTEGER_READER) //
    {DTYPE(KHUB_DTYPE_BOOL, 1), 1, look_bool, read_bool, NULL, NULL},
};

const khub__dtype_reader *khub__dtype_reader_of(khub_dtype dtype)
{
    for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
        if (memcmp(&readers[i].dtype, &dtype, sizeof(dtype)) == 0) return &readers[i];
    return NULL;
}
