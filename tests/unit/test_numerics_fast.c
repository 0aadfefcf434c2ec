/* The fast ways of comparing say what the plain one says, bit for bit. */
#include "unit.h"

#include "numerics/fast.h"
#include "numerics/format.h"

#include <math.h>

static khub_error err;

static khub_dtype dtype_of(const char *name)
{
    khub_dtype dtype;
    ck_khub_ok(khub_dtype_parse(&dtype, name, &err), &err);
    return dtype;
}

/* For what is asked 100,000 times: check tells its parent of every assertion, this only of failed ones. */
#define EXPECT(condition, format, ...)                                                                       \
    do {                                                                                                     \
        if (!(condition)) ck_abort_msg("%s: " format, #condition, __VA_ARGS__);                              \
    } while (0)

/* xorshift64*, by Vigna. */
static uint64_t random_bits(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

/* What has a fast way: the bits of one, of what follows the largest number, and of the mantissa; integers
 * have none of these. */
static const struct fast_one {
    const char *name;
    uint64_t one, beyond;
    int mantissa;
} fast_ones[] = {{"float32", 0x3f800000, 0x7f800000, 23},
                 {"bfloat16", 0x3f80, 0x7f80, 7},
                 {"float16", 0x3c00, 0x7c00, 10},
                 {"float64", UINT64_C(0x3ff0000000000000), UINT64_C(0x7ff0000000000000), 52},
                 {"float8_e4m3fn", 0x38, 0x7f, 3},
                 {"float8_e5m2", 0x3c, 0x7c, 2},
                 {"int8", 0, 0, 0},
                 {"int16", 0, 0, 0},
                 {"int32", 0, 0, 0},
                 {"int64", 0, 0, 0},
                 {"uint8", 0, 0, 0},
                 {"uint16", 0, 0, 0},
                 {"uint32", 0, 0, 0},
                 {"uint64", 0, 0, 0}};
enum { FAST = sizeof(fast_ones) / sizeof(*fast_ones) };

static const struct fast_one *format_of(khub_dtype dtype)
{
    for (size_t i = 0;; i++) {
        khub_dtype one = dtype_of(fast_ones[i].name);
        if (!memcmp(&one, &dtype, sizeof(dtype))) return &fast_ones[i];
    }
}

/* Integers of all sizes, small ones, the least and the largest; differences of a few, or any. */
static void fill_integers(char *a, char *b, size_t item, size_t count, unsigned form)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t r = random_bits(), x = random_bits(), y;
        if (form & 1) x %= 20;
        if (form & 2 && r >> 40 & 1) x = r >> 41 & 1 ? ~UINT64_C(0) : UINT64_C(1) << (8 * item - 1);
        y = x + (form & 4 ? (r >> 58) % 4 : 0);
        if (form & 8 && (r >> 42) % 64 == 0) y = random_bits();
        if (form & 16 && (r >> 50) % 16 == 0) y = (UINT64_C(1) << (8 * item - 1)) - (r >> 56 & 1);
        memcpy(a + i * item, r >> 57 & 1 ? &x : &y, item);
        memcpy(b + i * item, r >> 57 & 1 ? &y : &x, item);
    }
}

/* Blocks as the fast way takes them: exponents of a few neighbours or of all sizes, differences of a few
 * steps, of any, or none, zeros and subnormal numbers. */
static void fill_block(char *a, char *b, khub_dtype dtype, size_t count, unsigned form)
{
    size_t item = dtype.bits / 8;
    const struct fast_one *format = format_of(dtype);
    uint64_t sign = UINT64_C(1) << (8 * item - 1), one = format->one;
    int mantissa = format->mantissa;
    if (!one) {
        fill_integers(a, b, item, count, form);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t r = random_bits(), x = random_bits() % one, off = form & 4 ? (r >> 58) % 4 : 0, y;
        if (form & 1) x = (x % (UINT64_C(4) << mantissa)) % (one / 2) + one / 2;
        if (form & 2 && r >> 40 & 1) x %= 3; /* zeros, the smallest numbers */
        if (form & 8 && (r >> 41) % 64 == 0) off = random_bits() % one;
        if (r >> 42 & 1) x |= sign;
        y = x + off;
        if (form & 16 && (r >> 43) % 16 == 0) y ^= sign;
        if (form & 8 && r >> 47 & 1) {
            uint64_t kept = x;
            x = y, y = kept;
        }
        memcpy(a + i * item, &x, item);
        memcpy(b + i * item, &y, item);
    }
}

static int64_t largest_of(const khub__dtype_reader *reader, const void *elements, size_t count,
                          int64_t *order)
{
    khub__largest largest = {INT64_MIN, 0};
    reader->look(&largest, elements, count, 0);
    *order = largest.order;
    return largest.index;
}

/* A block, of which b is of `wide` bytes each. */
static void take_plain_beside(khub_comparison *c, khub__pairs_read *read, size_t bytes, size_t wide,
                              const char *a, const char *b, size_t count)
{
    static khub__pairs pairs;
    khub__lane_sums sums = {{{0}}};
    for (size_t i = 0; i < count; i += KHUB__PART) {
        size_t part = count - i < KHUB__PART ? count - i : KHUB__PART;
        read(&pairs, c, a + i * bytes, b + i * wide, part);
        khub__lanes_take(&sums, &pairs);
        khub__pairs_worst(c, &pairs);
        c->count += part;
    }
    khub__lanes_add(c, &sums);
}

static void take_plain(khub_comparison *c, const khub__dtype_reader *reader, const char *a, const char *b,
                       size_t count)
{
    take_plain_beside(c, reader->same, reader->bytes, reader->bytes, a, b, count);
}

/* On a processor that has no fast way, the plain one is all there is. */
START_TEST(fast_is_plain)
{
    static khub__pairs pairs;
    char a[8 * KHUB__BLOCK], b[8 * KHUB__BLOCK];
    for (unsigned k = 0; k < FAST * 320; k++) {
        const char *name = fast_ones[k % FAST].name;
        const khub__fast *fast = khub__fast_of(dtype_of(name), dtype_of(name));
        const khub__dtype_reader *reader = khub__dtype_reader_of(dtype_of(name));
        khub_comparison plain = {.count = 1000}, quick = {.count = 1000};
        if (k / FAST % 2) plain.first_different = quick.first_different = 1000;
        for (unsigned round = 0; fast && round < 3; round++) { /* with what the rounds before have found */
            size_t count = 1 + random_bits() % khub__block_of(reader->bytes, reader->bytes);
            khub__tops tops;
            int64_t top_a, top_b;
            fill_block(a, b, reader->dtype, count, k / FAST % 32);
            take_plain(&plain, reader, a, b, count);
            EXPECT(fast->block(&quick, a, b, count, reader->same, &pairs, &tops), "%u", k);
            quick.count += count;
            EXPECT(memcmp(&plain, &quick, sizeof(plain)) == 0, "%s, form %u, %zu pairs", name, k / FAST % 32,
                   count);
            size_t in_a = (size_t)largest_of(reader, a, count, &top_a),
                   in_b = (size_t)largest_of(reader, b, count, &top_b);
            EXPECT(tops.a == top_a && tops.b == top_b, "%u", k);
            EXPECT(fast->find(a, count, top_a) == in_a && fast->find(b, count, top_b) == in_b, "%u", k);
        }
    }
}
END_TEST

/* Magnitudes from a least one to a largest one, of any sign, zeros among them; b no more than `most` steps
 * off. */
static void fill_float8(char *a, char *b, unsigned beyond, size_t count, unsigned most)
{
    uint64_t r = random_bits();
    unsigned low = r % beyond, high = low + (unsigned)(r >> 8) % (beyond - low);
    for (size_t i = 0; i < count; i++) {
        r = random_bits();
        unsigned x = low + (unsigned)(r >> 8) % (high - low + 1), y = x + r % 256 % (most + 1);
        if (r >> 60 == 0) x = y = 0;
        if (y >= beyond) y = x;
        unsigned sign = r >> 59 & 1 ? 0x80 : 0, swap = r >> 58 & 1;
        a[i] = (char)((swap ? y : x) | sign);
        b[i] = (char)((swap ? x : y) | sign);
    }
}

/* Blocks that are taken in integers, since no error is larger than the worst so far; their sums are exact in
 * doubles, or not, or there are numbers too small for the integers. */
START_TEST(fast_float8_is_plain)
{
    static khub__pairs pairs;
    static const khub_worst any = {.value = 1e300};
    const size_t block = khub__block_of(1, 1);
    char a[KHUB__BLOCK_BYTES], b[KHUB__BLOCK_BYTES];
    for (unsigned k = 0; k < 1000; k++) {
        const struct fast_one *one = &fast_ones[4 + k % 2];
        const khub__fast *fast = khub__fast_of(dtype_of(one->name), dtype_of(one->name));
        const khub__dtype_reader *reader = khub__dtype_reader_of(dtype_of(one->name));
        khub_comparison plain = {.ulp = any, .absolute = any, .relative = any}, quick = plain;
        size_t count = k % 3 ? block : 1 + random_bits() % block;
        khub__tops tops;
        if (!fast) continue;
        fill_float8(a, b, (unsigned)one->beyond, count, k / 2 % 4);
        take_plain(&plain, reader, a, b, count);
        EXPECT(fast->block(&quick, a, b, count, reader->same, &pairs, &tops), "%u", k);
        quick.count += count;
        EXPECT(memcmp(&plain, &quick, sizeof(plain)) == 0, "%s, %u, %zu pairs", one->name, k, count);
    }
}
END_TEST

/* The same magnitude everywhere, so each of them is once the one that fills the integers' lanes the most; b
 * is it, or `off` steps nearer to zero. */
START_TEST(fast_float8_in_full_lanes)
{
    static khub__pairs pairs;
    static const khub_worst any = {.value = 1e300};
    static char a[KHUB__BLOCK_BYTES], b[KHUB__BLOCK_BYTES];
    for (unsigned k = 0; k < 2 * 128 * 2; k++) {
        const struct fast_one *one = &fast_ones[4 + k % 2];
        const khub__fast *fast = khub__fast_of(dtype_of(one->name), dtype_of(one->name));
        const khub__dtype_reader *reader = khub__dtype_reader_of(dtype_of(one->name));
        khub_comparison plain = {.ulp = any, .absolute = any, .relative = any}, quick = plain;
        unsigned magnitude = k / 4, off = k / 2 % 2 ? 1u << one->mantissa : 0;
        khub__tops tops;
        if (!fast || magnitude >= one->beyond || magnitude < off) continue;
        memset(a, (int)magnitude, sizeof(a));
        memset(b, (int)(magnitude - off), sizeof(b));
        take_plain(&plain, reader, a, b, sizeof(a));
        EXPECT(fast->block(&quick, a, b, sizeof(a), reader->same, &pairs, &tops), "%u", k);
        quick.count += sizeof(a);
        EXPECT(memcmp(&plain, &quick, sizeof(plain)) == 0, "%s, magnitude %u", one->name, magnitude);
    }
}
END_TEST

/* Of a row: often one that is looked at together with others. */
static size_t random_width(size_t most)
{
    uint64_t r = random_bits();
    return r % 4 == 0 ? 32 : r % 4 == 1 ? 64 : 1 + (r >> 2) % most;
}

/* A wide number near one of the format: it, next to it, between it and the next, or of any size up to 2. */
static double near_number(khub__format f, uint64_t bits)
{
    double x = khub__number_of(f, bits), next = khub__number_of(f, bits + 1);
    uint64_t r = random_bits();
    switch (r % 5) {
    case 0:
        return x;
    case 1:
        return x * (1 + (double)(r >> 40) * 0x1p-50);
    case 2:
        return x + (next - x) / 2;
    case 3:
        return x + (next - x) * ((double)(r >> 11) * 0x1p-53);
    default:
        return r >> 40 & 1 ? -x : ldexp((double)(r >> 11), -52 - (int)(r >> 3 & 0xff));
    }
}

static void fill_beside(char *a, char *b, khub_dtype dtype, int wide, khub__format f, size_t count,
                        unsigned form)
{
    static char unused[8 * KHUB__BLOCK];
    fill_block(a, unused, dtype, count, form);
    for (size_t i = 0; i < count; i++) {
        if (form % 8 == 7) a[(i + 1) * (size_t)f.bytes - 1] |= (char)0x80; /* none is positive */
        double y = near_number(f, khub__bits_at(a, i, f.bytes));
        if (form % 8 == 7) y = -fabs(y);
        float narrow = (float)y;
        memcpy(b + i * (size_t)wide, wide == 4 ? (void *)&narrow : (void *)&y, (size_t)wide);
    }
}

static const char *const narrow[] = {"float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"};
enum { NARROW = sizeof(narrow) / sizeof(*narrow) };

static khub__format narrow_format(unsigned k)
{
    const khub__format formats[NARROW] = {KHUB__FORMAT_float32, KHUB__FORMAT_bfloat16, KHUB__FORMAT_float16,
                                          KHUB__FORMAT_float8_e4m3fn, KHUB__FORMAT_float8_e5m2};
    return formats[k % NARROW];
}

/* Beside float64, and but for float32 beside float32, too; b of every other one past the largest number of
 * a's format, or none, in one place: that is left to the plain way. */
START_TEST(fast_beside_is_plain)
{
    static khub__pairs pairs;
    static char a[8 * KHUB__BLOCK], b[8 * KHUB__BLOCK];
    for (unsigned k = 0; k < NARROW * 200; k++) {
        int wide = k % NARROW && k / NARROW % 2 ? 4 : 8, bad = k / NARROW % 5 == 4;
        khub_dtype dtype = dtype_of(narrow[k % NARROW]), other = dtype_of(wide == 4 ? "float32" : "float64");
        const khub__format f = narrow_format(k);
        const khub__dtype_reader *reader = khub__dtype_reader_of(dtype),
                                 *wider = khub__dtype_reader_of(other);
        khub__pairs_read *read = wide == 4 ? reader->beside_float32 : reader->beside_float64;
        const khub__fast *fast = khub__fast_of(dtype, other);
        khub_comparison plain = {.count = 1000}, quick = {.count = 1000};
        if (k / NARROW / 2 % 2) plain.first_different = quick.first_different = 1000;
        for (unsigned round = 0; fast && round < 3; round++) {
            size_t count = 1 + random_bits() % KHUB__BLOCK;
            khub__tops tops;
            int64_t top_a, top_b;
            fill_beside(a, b, dtype, wide, f, count, k / NARROW % 32);
            if (bad) {
                const double large[] = {khub__number_of(f, f.largest) * 1.25, INFINITY, NAN};
                double beyond = large[random_bits() % 3];
                float narrower = (float)beyond;
                memcpy(b + random_bits() % count * (size_t)wide,
                       wide == 4 ? (void *)&narrower : (void *)&beyond, (size_t)wide);
                khub_comparison before = quick;
                EXPECT(!fast->block(&quick, a, b, count, read, &pairs, &tops), "%s", narrow[k % NARROW]);
                EXPECT(!memcmp(&quick, &before, sizeof(quick)), "%s", narrow[k % NARROW]);
                continue;
            }
            take_plain_beside(&plain, read, reader->bytes, wider->bytes, a, b, count);
            EXPECT(fast->block(&quick, a, b, count, read, &pairs, &tops), "%u", k);
            quick.count += count;
            EXPECT(memcmp(&plain, &quick, sizeof(plain)) == 0, "%s beside %d bytes, form %u, %zu pairs",
                   narrow[k % NARROW], wide, k / NARROW % 32, count);
            size_t in_a = (size_t)largest_of(reader, a, count, &top_a),
                   in_b = (size_t)largest_of(wider, b, count, &top_b);
            EXPECT(tops.a == top_a && tops.b == top_b, "%s", narrow[k % NARROW]);
            EXPECT(fast->find(a, count, top_a) == in_a && fast->find_beside(b, count, top_b) == in_b, "%u",
                   k);
            size_t width = random_width(80), rows = count / width, same = 0;
            for (size_t row = 0; row < rows; row++)
                same += largest_of(reader, a + row * width * reader->bytes, width, &top_a) ==
                        largest_of(wider, b + row * width * wider->bytes, width, &top_b);
            EXPECT(fast->rows(a, b, rows, width) == same, "%s, %zu", narrow[k % NARROW], width);
        }
    }
}
END_TEST

/* A NaN or an infinity in a. */
START_TEST(fast_beside_leaves_the_rest)
{
    static khub__pairs pairs;
    static char a[8 * 67], b[8 * 67];
    for (unsigned k = 0; k < NARROW * 67; k++) {
        const khub__format f = narrow_format(k);
        khub_dtype dtype = dtype_of(narrow[k % NARROW]);
        const khub__fast *fast = khub__fast_of(dtype, dtype_of("float64"));
        uint64_t special = f.largest + 1 + (f.infinity && k % 2);
        khub_comparison c = {0}, before = {0};
        khub__tops tops;
        fill_beside(a, b, dtype, 8, f, 67, 5);
        memcpy(a + k / NARROW * (size_t)f.bytes, &special, (size_t)f.bytes);
        if (!fast) continue;
        EXPECT(!fast->block(&c, a, b, 67, khub__dtype_reader_of(dtype)->beside_float64, &pairs, &tops), "%u",
               k);
        EXPECT(memcmp(&c, &before, sizeof(c)) == 0, "%u", k);
    }
}
END_TEST

/* Rows of all widths that fit twice into a block; largest ones that stand alone, stand twice, or are zeros.
 */
START_TEST(fast_rows_are_plain)
{
    static char a[8 * KHUB__BLOCK], b[8 * KHUB__BLOCK];
    for (unsigned k = 0; k < FAST * 170; k++) {
        const char *name = fast_ones[k % FAST].name;
        const khub__fast *fast = khub__fast_of(dtype_of(name), dtype_of(name));
        const khub__dtype_reader *reader = khub__dtype_reader_of(dtype_of(name));
        size_t block = khub__block_of(reader->bytes, reader->bytes);
        size_t width = random_width(k % 3 ? 80 : block / 2), rows = block / width;
        size_t bytes = width * reader->bytes, same = 0;
        fill_block(a, b, reader->dtype, rows * width, k / FAST % 32);
        for (size_t i = reader->bytes - 1; k % 5 == 0 && i < bytes; i += reader->bytes)
            a[i] |= (char)0x80, b[i] |= (char)0x80; /* none of the first row is positive */
        for (size_t row = 0; row < rows; row++) {
            char *x = a + row * bytes, *y = b + row * bytes;
            int64_t top;
            size_t in_a = (size_t)largest_of(reader, x, width, &top);
            memmove(random_bits() % 2 ? x + random_bits() % width * reader->bytes : y + in_a * reader->bytes,
                    x + in_a * reader->bytes, reader->bytes);
            same += largest_of(reader, x, width, &top) == largest_of(reader, y, width, &top);
        }
        if (fast)
            EXPECT(fast->rows(a, b, rows, width) == same, "%s, form %u, %zu", name, k / FAST % 32, width);
    }
}
END_TEST

/* What isn't finite, anywhere in a block, is left to the plain way. */
START_TEST(fast_leaves_the_rest)
{
    static khub__pairs pairs;
    char a[8 * 67], b[8 * 67];
    for (size_t t = 0; t < FAST && fast_ones[t].beyond; t++) {
        khub_dtype dtype = dtype_of(fast_ones[t].name);
        const khub__fast *fast = khub__fast_of(dtype, dtype);
        const khub__dtype_reader *reader = khub__dtype_reader_of(dtype);
        for (unsigned at = 0; fast && at < 4 * 67; at++) {
            uint64_t beyond = fast_ones[t].beyond, special = beyond + (beyond == 0x7f ? 0 : at % 2 * 3);
            khub_comparison c = {0}, before = {0};
            khub__tops tops;
            fill_block(a, b, dtype, 67, 5);
            if (at % 4 != 1) memcpy(a + at / 4 * (dtype.bits / 8), &special, dtype.bits / 8);
            if (at % 4 != 0) memcpy(b + at / 4 * (dtype.bits / 8), &special, dtype.bits / 8);
            EXPECT(!fast->block(&c, a, b, 67, reader->same, &pairs, &tops), "%u", at);
            EXPECT(memcmp(&c, &before, sizeof(c)) == 0, "%u", at);
        }
    }
}
END_TEST

/* Of float64, differences and squares may be infinite: as in the plain way. */
START_TEST(fast_beyond_the_largest)
{
    static khub__pairs pairs;
    const khub__fast *fast = khub__fast_of(dtype_of("float64"), dtype_of("float64"));
    const khub__dtype_reader *reader = khub__dtype_reader_of(dtype_of("float64"));
    for (unsigned k = 0; fast && k < 300; k++) {
        double a[67], b[67];
        khub_comparison plain = {0}, quick = {0};
        khub__tops tops;
        for (int i = 0; i < 67; i++) {
            a[i] = ldexp(1 + (double)(random_bits() % 1000) / 1000, (int)(random_bits() % 2046) - 1022);
            b[i] = random_bits() % 4 ? a[i] * (k % 3 ? 1 - 0x1p-40 : 1) : -a[i];
        }
        take_plain(&plain, reader, (char *)a, (char *)b, 67);
        int is_fast = fast->block(&quick, a, b, 67, reader->same, &pairs, &tops);
        quick.count += 67;
        EXPECT(!is_fast || memcmp(&plain, &quick, sizeof(plain)) == 0, "%u", k);
        EXPECT(is_fast || plain.absolute.value > 0x1p1017, "%u", k); /* 67 of them are infinite */
    }
}
END_TEST

UNIT("numerics_fast", fast_is_plain, fast_float8_is_plain, fast_float8_in_full_lanes, fast_beside_is_plain,
     fast_beside_leaves_the_rest, fast_rows_are_plain, fast_leaves_the_rest, fast_beyond_the_largest)
