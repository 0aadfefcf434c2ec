/* Comparing tensors. Expected values are worked out by hand, or by slow loops that look numbers up in sorted
 * lists instead of computing with bits. */
#include "unit.h"

#include <khub/numerics.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

static khub_error err;

static khub_dtype dtype_of(const char *name)
{
    khub_dtype dtype;
    ck_khub_ok(khub_dtype_parse(&dtype, name, &err), &err);
    return dtype;
}

/* Vectors of n elements. */
static khub_comparison compare_as(const char *a_dtype, const void *a, const char *b_dtype, const void *b,
                                  int64_t n)
{
    khub_comparison c;
    khub_tensor x = khub_tensor_over((void *)(uintptr_t)a, dtype_of(a_dtype), 1, &n),
                y = khub_tensor_over((void *)(uintptr_t)b, dtype_of(b_dtype), 1, &n);
    ck_khub_ok(khub_compare_tensors(&c, &x, &y, &err), &err);
    return c;
}

static khub_comparison compare(const char *dtype, const void *a, const void *b, int64_t n)
{
    return compare_as(dtype, a, dtype, b, n);
}

static int near_to(double x, double y)
{
    return fabs(x - y) <= 1e-14 * fabs(y);
}

/* Every field of three pairs: (1, 1), (2, 2 + one step of 2^-22), (-4, 3). */
START_TEST(by_hand)
{
    const float a[] = {1, 2, -4}, b[] = {1, 2 + 0x1p-22f, 3};
    const double step = 0x1p-22, dd = step * step + 49, bb = 1 + (2 + step) * (2 + step) + 9;
    khub_comparison c = compare("float32", a, b, 3);
    ck_assert_uint_eq(c.count, 3);
    ck_assert_uint_eq(c.identical, 1);
    ck_assert_double_eq(c.identical_share, 1.0 / 3);
    ck_assert_uint_eq(c.first_different, 1);
    ck_assert_uint_eq(c.finite, 3);
    ck_assert_double_eq(c.ulp.value, (double)0x40800000 + 0x40400000); /* the bits of 4 and of 3 */
    ck_assert_uint_eq(c.ulp.index, 2);
    ck_assert_double_eq(c.ulp.a, -4);
    ck_assert_double_eq(c.ulp.b, 3);
    ck_assert_double_eq(c.mean_ulp, (1 + (double)0x40800000 + 0x40400000) / 3);
    ck_assert_double_eq(c.absolute.value, 7);
    ck_assert_uint_eq(c.absolute.index, 2);
    ck_assert_double_eq(c.mean_absolute, (step + 7) / 3);
    ck_assert_double_eq(c.relative.value, 7.0 / 3);
    ck_assert(near_to(c.rms, sqrt(dd / 3)));
    ck_assert(near_to(c.cosine, (1 + 2 * (2 + step) - 12) / sqrt(21 * bb)));
    ck_assert_uint_eq(c.rows, 1);
    ck_assert_uint_eq(c.argmax_same, 0);
    ck_assert_uint_eq(c.zero_signs + c.zero_missed + c.both_nan + c.infinity_same, 0);
}
END_TEST

START_TEST(nothing_differs)
{
    float a[1000];
    for (int i = 0; i < 1000; i++)
        a[i] = (float)sin(i);
    khub_comparison c = compare("float32", a, a, 1000);
    ck_assert_uint_eq(c.identical, 1000);
    ck_assert_uint_eq(c.first_different, 1000);
    ck_assert_double_eq(c.identical_share, 1);
    ck_assert_double_eq(c.cosine, 1);
    ck_assert_double_eq(c.rms + c.mean_ulp + c.mean_absolute, 0);
    ck_assert_double_eq(c.ulp.value + c.absolute.value + c.relative.value, 0);
    ck_assert_uint_eq(c.argmax_same, 1);
}
END_TEST

START_TEST(classes)
{
    const uint32_t nan = 0x7fc00000, other_nan = 0xffc00001, inf = 0x7f800000, one = 0x3f800000,
                   minus = 0x80000000;
    const struct {
        uint32_t a, b;
        size_t counted; /* the field that is 1 */
        uint64_t identical;
    } table[] = {
#define FIELD(name) offsetof(khub_comparison, name)
        {one, one, FIELD(finite), 1},
        {nan, nan, FIELD(both_nan), 1},
        {nan, other_nan, FIELD(both_nan), 0},
        {nan, one, FIELD(nan_only_a), 0},
        {nan, inf, FIELD(nan_only_a), 0},
        {0, other_nan, FIELD(nan_only_b), 0},
        {inf | minus, nan, FIELD(nan_only_b), 0},
        {inf, inf, FIELD(infinity_same), 1},
        {inf | minus, inf | minus, FIELD(infinity_same), 1},
        {inf | minus, inf, FIELD(infinity_opposite), 0},
        {inf, one, FIELD(infinity_only_a), 0},
        {0x7f7fffff, inf, FIELD(infinity_only_b), 0},
        {minus, 0, FIELD(finite), 0},
    };
    const size_t fields[] = {FIELD(finite),          FIELD(both_nan),       FIELD(nan_only_a),
                             FIELD(nan_only_b),      FIELD(infinity_same),  FIELD(infinity_opposite),
                             FIELD(infinity_only_a), FIELD(infinity_only_b)};
#undef FIELD
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_comparison c = compare("float32", &table[i].a, &table[i].b, 1);
        for (size_t f = 0; f < sizeof(fields) / sizeof(*fields); f++) {
            uint64_t value;
            memcpy(&value, (char *)&c + fields[f], sizeof(value));
            ck_assert_msg(value == (fields[f] == table[i].counted), "row %zu, field %zu", i, f);
        }
        ck_assert_uint_eq(c.identical, table[i].identical);
        ck_assert_uint_eq(c.first_different, table[i].identical);
        ck_assert_uint_eq(c.nan_payloads, c.both_nan && !table[i].identical);
        ck_assert_uint_eq(c.zero_signs, table[i].a == minus);
        ck_assert_double_eq(c.ulp.value + c.absolute.value + c.relative.value + c.mean_ulp + c.rms, 0);
        ck_assert_double_eq(c.cosine, 1);
    }
}
END_TEST

/* A pair that isn't finite adds nothing to what is measured of the others. */
START_TEST(special_values_do_not_measure)
{
    const float a[] = {1, NAN, 2, INFINITY, 3, -INFINITY}, b[] = {1, 5, 2, 7, 4, INFINITY};
    khub_comparison c = compare("float32", a, b, 6);
    ck_assert_uint_eq(c.finite, 3);
    ck_assert_double_eq(c.absolute.value, 1);
    ck_assert_uint_eq(c.absolute.index, 4);
    ck_assert_double_eq(c.mean_absolute, 1.0 / 3);
    ck_assert(near_to(c.cosine, 17 / sqrt(14.0 * 21)));
    ck_assert_uint_eq(c.first_different, 1);
}
END_TEST

START_TEST(relative_where_the_expected_is_zero)
{
    const float a[] = {0, -0.0f, 1e-40f, 3, 5}, b[] = {0, 0, -0.0f, 2, 0};
    khub_comparison c = compare("float32", a, b, 5);
    ck_assert_uint_eq(c.zero_missed, 2);
    ck_assert_uint_eq(c.zero_signs, 1);
    ck_assert_double_eq(c.relative.value, 0.5);
    ck_assert_uint_eq(c.relative.index, 3);
    ck_assert_double_eq(c.absolute.value, 5);
}
END_TEST

/* 3 * 2^-52 times 2^-1023 is no double: 2^-1073, which it is rounded to, is larger. */
START_TEST(relative_beside_the_least_numbers)
{
    const double a[] = {1 + 3 * 0x1p-52, 0x1p-1023 + 0x1p-1073}, b[] = {1, 0x1p-1023};
    khub_comparison c = compare("float64", a, b, 2);
    ck_assert_double_eq(c.relative.value, 0x1p-50);
    ck_assert_uint_eq(c.relative.index, 1);
}
END_TEST

START_TEST(cosine_of_zeros)
{
    const float zero[] = {0, -0.0f}, one[] = {1, 0}, minus[] = {-3, 0}, other[] = {0, 2};
    ck_assert_double_eq(compare("float32", zero, zero, 2).cosine, 1);
    ck_assert_double_eq(compare("float32", zero, one, 2).cosine, 0);
    ck_assert_double_eq(compare("float32", one, zero, 2).cosine, 0);
    ck_assert_double_eq(compare("float32", one, minus, 2).cosine, -1);
    ck_assert_double_eq(compare("float32", one, other, 2).cosine, 0);
    const float large[] = {1e20f, 1e20f}, small[] = {1e-20f, 0};
    ck_assert(near_to(compare("float32", large, small, 2).cosine, sqrt(0.5)));
    ck_assert(near_to(compare("float32", small, large, 2).cosine, sqrt(0.5)));
}
END_TEST

/* What a float format is, said by its meaning: the finite numbers in order, and the bits of each. */
typedef struct numbers {
    size_t count;
    double value[1 << 16];
    int place[1 << 16]; /* of bits in `value`; -1: NaN, -2: infinity */
} numbers;

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static int place_of(const numbers *n, double x)
{
    const double *at = bsearch(&x, n->value, n->count, sizeof(x), by_value);
    return at ? (int)(at - n->value) : -3;
}

/* `exponent_bits` and `mantissa_bits` as the formats' descriptions have them. */
static double meaning(unsigned bits, int exponent_bits, int mantissa_bits, int has_infinity)
{
    unsigned mantissa = bits & ((1u << mantissa_bits) - 1),
             exponent = bits >> mantissa_bits & ((1u << exponent_bits) - 1), top = (1u << exponent_bits) - 1;
    int bias = (1 << (exponent_bits - 1)) - 1;
    double size = exponent ? ldexp(1 + ldexp(mantissa, -mantissa_bits), (int)exponent - bias)
                           : ldexp(mantissa, 1 - bias - mantissa_bits);
    if (exponent == top && has_infinity) size = mantissa ? NAN : INFINITY;
    if (exponent == top && !has_infinity && mantissa == (1u << mantissa_bits) - 1) size = NAN;
    return bits >> (exponent_bits + mantissa_bits) ? -size : size;
}

static const struct small {
    const char *name;
    int exponent_bits, mantissa_bits, has_infinity;
} smalls[] = {
    {"float8_e4m3fn", 4, 3, 0}, {"float8_e5m2", 5, 2, 1}, {"float16", 5, 10, 1}, {"bfloat16", 8, 7, 1}};

static void list_numbers(numbers *n, const struct small *s)
{
    unsigned all = 1u << (1 + s->exponent_bits + s->mantissa_bits);
    n->count = 0;
    for (unsigned bits = 0; bits < all; bits++) {
        double x = meaning(bits, s->exponent_bits, s->mantissa_bits, s->has_infinity);
        if (isfinite(x) && !(x == 0 && signbit(x))) n->value[n->count++] = x;
    }
    qsort(n->value, n->count, sizeof(double), by_value);
    for (unsigned bits = 0; bits < all; bits++) {
        double x = meaning(bits, s->exponent_bits, s->mantissa_bits, s->has_infinity);
        n->place[bits] = isnan(x) ? -1 : isinf(x) ? -2 : place_of(n, x);
    }
}

static numbers known;

/* For what is asked 100,000 times: check tells its parent of every assertion, this only of failed ones. */
#define EXPECT(condition, format, ...)                                                                       \
    do {                                                                                                     \
        if (!(condition)) ck_abort_msg("%s: " format, #condition, __VA_ARGS__);                              \
    } while (0)

/* One pair of float8, by its places in `known`. */
static void expect_float8(const khub_comparison *c, const char *name, unsigned a, unsigned b)
{
    int p = known.place[a], q = known.place[b], both = p >= 0 && q >= 0;
    double steps = both ? abs(p - q) : 0, distance = both ? fabs(known.value[p] - known.value[q]) : 0,
           relative = both && known.value[q] != 0 ? distance / fabs(known.value[q]) : 0;
    EXPECT(c->ulp.value == steps && c->mean_ulp == steps, "%s %u %u", name, a, b);
    EXPECT(c->absolute.value == distance && c->rms == distance, "%s %u %u", name, a, b);
    EXPECT(c->relative.value == relative, "%s %u %u", name, a, b);
    EXPECT(c->identical == (a == b), "%s %u %u", name, a, b);
    EXPECT(c->finite == (uint64_t)both, "%s %u %u", name, a, b);
    EXPECT(c->both_nan == (p == -1 && q == -1), "%s %u %u", name, a, b);
    EXPECT(c->nan_only_a == (p == -1 && q != -1), "%s %u %u", name, a, b);
    EXPECT(c->nan_only_b == (q == -1 && p != -1), "%s %u %u", name, a, b);
    EXPECT(c->infinity_same == (p == -2 && q == -2 && a == b), "%s %u %u", name, a, b);
    EXPECT(c->infinity_opposite == (p == -2 && q == -2 && a != b), "%s %u %u", name, a, b);
    EXPECT(c->infinity_only_a == (p == -2 && q >= 0), "%s %u %u", name, a, b);
    EXPECT(c->infinity_only_b == (q == -2 && p >= 0), "%s %u %u", name, a, b);
    EXPECT(c->zero_signs == (a != b && both && steps == 0), "%s %u %u", name, a, b);
}

/* The 65,536 pairs of both float8 formats, one at a time. */
START_TEST(every_pair_of_float8)
{
    for (int s = 0; s < 2; s++) {
        const int64_t one = 1;
        khub_dtype dtype = dtype_of(smalls[s].name);
        list_numbers(&known, &smalls[s]);
        ck_assert_uint_eq(known.count, s == 0 ? 253 : 247); /* 2 · 126 + 1, 2 · 123 + 1 */
        for (unsigned a = 0; a < 256; a++)
            for (unsigned b = 0; b < 256; b++) {
                unsigned char x = (unsigned char)a, y = (unsigned char)b;
                khub_tensor p = khub_tensor_over(&x, dtype, 1, &one),
                            q = khub_tensor_over(&y, dtype, 1, &one);
                khub_comparison c;
                EXPECT(khub_compare_tensors(&c, &p, &q, &err) == KHUB_OK, "%s", err.message);
                expect_float8(&c, smalls[s].name, a, b);
            }
    }
}
END_TEST

/* Each number beside the next one: 1 ULP; beside the one after that 2, which the smallest negative and
 * positive one are, too. */
START_TEST(neighbours)
{
    static uint16_t bits[1 << 16];
    for (int s = 2; s < 4; s++) {
        list_numbers(&known, &smalls[s]);
        for (unsigned b = 0; b < 1u << 16; b++)
            if (known.place[b] >= 0 && b != 0x8000) bits[known.place[b]] = (uint16_t)b;
        for (int apart = 0; apart < 3; apart++) {
            int64_t n = (int64_t)known.count - apart;
            long double sum = 0;
            double most = 0;
            for (int64_t i = 0; i < n; i++) {
                double d = known.value[i + apart] - known.value[i];
                sum += d;
                most = d > most ? d : most;
            }
            khub_comparison c = compare(smalls[s].name, bits + apart, bits, n);
            ck_assert_uint_eq(c.finite, (uint64_t)n);
            ck_assert_double_eq(c.ulp.value, apart);
            ck_assert_double_eq(c.mean_ulp, apart);
            ck_assert_double_eq(c.absolute.value, most);
            ck_assert(near_to(c.mean_absolute, (double)(sum / (long double)n)));
            ck_assert_uint_eq(c.identical, apart ? 0 : (uint64_t)n);
        }
    }
}
END_TEST

/* Beside float64 and float32: all float8 and float16 numbers, the middles between them, and what lies next to
 * those. */
static void beside(const struct small *s, const char *wide, double b, int64_t at)
{
    /* a is known.value[at]; the nearest number to b, ties to even bits */
    uint16_t bits = 0;
    while (known.place[bits] != at)
        bits++;
    float narrow = (float)b;
    int is_float = strcmp(wide, "float32") == 0;
    if (is_float) b = narrow;
    khub_comparison c = compare_as(s->name, &bits, wide, is_float ? (void *)&narrow : (void *)&b, 1);
    int64_t r = at;
    while (r > 0 && fabs(known.value[r - 1] - b) < fabs(known.value[r] - b))
        r--;
    while (r + 1 < (int64_t)known.count && fabs(known.value[r + 1] - b) < fabs(known.value[r] - b))
        r++;
    double size = fabs(known.value[r]), a = known.value[at];
    int64_t up = place_of(&known, size);
    double ulp =
        up + 1 < (int64_t)known.count ? known.value[up + 1] - size : known.value[up] - known.value[up - 1];
    ck_assert_uint_eq(c.finite, 1);
    ck_assert_msg(c.ulp.value == fabs(a - b) / ulp, "%s %a beside %a: %g", s->name, a, b, c.ulp.value);
    ck_assert(c.absolute.value == fabs(a - b));
    ck_assert(c.relative.value == (b != 0 ? fabs(a - b) / fabs(b) : 0));
}

START_TEST(beside_wider_ones)
{
    for (int s = 0; s < 4; s++) {
        list_numbers(&known, &smalls[s]);
        int64_t step = s < 2 ? 1 : 499;
        for (int64_t i = 1; i + 1 < (int64_t)known.count; i += step) {
            double middle = (known.value[i] + known.value[i + 1]) / 2;
            const double tries[] = {known.value[i],
                                    nextafter(middle, -INFINITY),
                                    nextafter(middle, INFINITY),
                                    0.9 * known.value[i] + 0.1 * known.value[i - 1],
                                    known.value[i] * 1.37,
                                    known.value[i - 1]};
            for (size_t t = 0; t < sizeof(tries) / sizeof(*tries); t++) {
                if (fabs(tries[t]) > known.value[known.count - 1]) continue;
                beside(&smalls[s], "float64", tries[t], i);
                if (t != 1 && t != 2) beside(&smalls[s], "float32", tries[t], i);
            }
        }
    }
}
END_TEST

START_TEST(rounding_of_wider_ones)
{
    const struct {
        const char *dtype;
        uint32_t a;
        double b;
        int identical, finite;
        double ulp;
    } table[] = {
        {"float32", 0x3f800000, 1 + 0x1p-24, 1, 1, 0.5},   /* a tie, to even */
        {"float32", 0x3f800001, 1 + 0x1p-24, 0, 1, 0.5},   /* rounded the other way */
        {"float32", 0x3f800000, 1 - 0x1p-26, 1, 1, 0.125}, /* 1's own step, not that below it */
        {"float32", 0x3f800000, 1 + 0x1p-24 + 0x1p-52, 0, 1, 0.5 + 0x1p-29},
        {"float32", 0x3f7fffff, 1, 0, 1, 0.5}, /* its neighbour below */
        {"float32", 0, 0x1p-149, 0, 1, 1},
        {"float32", 1, 0, 0, 1, 1},
        {"float32", 0, 0x1p-150, 1, 1, 0.5},
        {"float32", 0x80000000, 0x1p-150, 0, 1, 0.5}, /* -0, where +0 is right */
        {"float32", 0x80000000, -0x1p-1074, 1, 1, 0x1p-925},
        {"float32", 0x80000001, 0x1p-149, 0, 1, 2},
        {"float32", 0x7f7fffff, 0x1.fffffefp127, 1, 1, 0.46875},
        {"float32", 0x7f7fffff, 0x1.ffffffp127, 0, 0, 0}, /* rounds to infinity */
        {"float32", 0x7f800000, 0x1.ffffffp127, 1, 0, 0},
        {"float32", 0xff800000, 1e300, 0, 0, 0},
        {"float32", 0x7fc12345, NAN, 1, 0, 0},
        {"float32", 0x7f800000, INFINITY, 1, 0, 0},
        {"bfloat16", 0x3f80, 1 + 0x1p-8, 1, 1, 0.5},
        {"bfloat16", 0x3f80, 1 + 0x1p-8 + 0x1p-40, 0, 1, 0.5 + 0x1p-33}, /* no rounding by way of float32 */
        {"bfloat16", 0x3f81, 1 + 0x1p-8 + 0x1p-40, 1, 1, 0.5 - 0x1p-33},
        {"float16", 0x7bff, 65519.999, 1, 1, 15.999 / 32},
        {"float16", 0x7c00, 65520, 1, 0, 0},
        {"float16", 0x0001, 0x1p-25 + 0x1p-60, 1, 1, 0.5 - 0x1p-36},
        {"float8_e4m3fn", 0x7e, 464, 1, 1, 0.5},
        {"float8_e4m3fn", 0x7f, 465, 1, 0, 0}, /* past the largest: NaN */
        {"float8_e4m3fn", 0xff, INFINITY, 1, 0, 0},
        {"float8_e5m2", 0x7c, 61440, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        uint16_t half = (uint16_t)table[i].a;
        uint8_t byte = (uint8_t)table[i].a;
        const void *a = strchr(table[i].dtype, '8')   ? (const void *)&byte
                        : strchr(table[i].dtype, '1') ? (const void *)&half
                                                      : (const void *)&table[i].a;
        khub_comparison c = compare_as(table[i].dtype, a, "float64", &table[i].b, 1);
        ck_assert_msg(c.identical == (uint64_t)table[i].identical, "row %zu", i);
        ck_assert_msg(c.finite == (uint64_t)table[i].finite, "row %zu", i);
        ck_assert_msg(fabs(c.ulp.value - table[i].ulp) <= 1e-12, "row %zu: %.17g", i, c.ulp.value);
        ck_assert_uint_eq(c.nan_only_a + c.nan_only_b, 0);
        ck_assert_uint_eq(c.zero_signs, table[i].a == 0x80000000 && !table[i].identical);
    }
}
END_TEST

START_TEST(float64_by_hand)
{
    const double a[] = {1, -0.0, 0x1p-1074, 1e300, -DBL_MAX, 5e-324},
                 b[] = {nextafter(1, 2), 0, -0x1p-1074, 1e300, DBL_MAX, 0};
    khub_comparison c = compare("float64", a, b, 6);
    ck_assert_uint_eq(c.identical, 1);
    ck_assert_double_eq(c.ulp.value, 2 * (double)UINT64_C(0x7fefffffffffffff));
    ck_assert_uint_eq(c.ulp.index, 4);
    ck_assert_uint_eq(c.zero_signs, 1);
    c = compare("float64", a, b, 3);
    ck_assert_double_eq(c.ulp.value, 2);
    ck_assert_double_eq(c.mean_ulp, 1);
    ck_assert_double_eq(c.absolute.value, 0x1p-52);
    ck_assert_double_eq(c.relative.value, 2);
    const double far[] = {1e300, 1, 2}, tiny[] = {0x1p-1074, 0, 1};
    c = compare("float64", far, tiny, 3);
    ck_assert_double_eq(c.relative.value, INFINITY);
    ck_assert_uint_eq(c.relative.index, 0);
    c = compare("float64", far, tiny, 1);
    int64_t two = 2;
    khub_tensor x = khub_tensor_over((void *)(uintptr_t)(far + 1), dtype_of("float64"), 1, &two),
                y = khub_tensor_over((void *)(uintptr_t)(tiny + 1), dtype_of("float64"), 1, &two);
    ck_khub_ok(khub_comparison_add(&c, &x, &y, &err), &err); /* with an infinite error already there */
    ck_assert_uint_eq(c.zero_missed, 1);
}
END_TEST

#define INTEGERS(type, name, least, most)                                                                    \
    do {                                                                                                     \
        const type a[] = {0, 5, least, most, most}, b[] = {0, 9, most, least, most - 1};                     \
        khub_comparison c = compare(name, a, b, 5);                                                          \
        ck_assert_uint_eq(c.identical, 1);                                                                   \
        ck_assert_uint_eq(c.first_different, 1);                                                             \
        ck_assert_double_eq(c.ulp.value, (double)most - (double)least);                                      \
        ck_assert_double_eq(c.absolute.value, (double)most - (double)least);                                 \
        ck_assert_uint_eq(c.absolute.index, 2);                                                              \
        c = compare(name, a, b, 2);                                                                          \
        ck_assert_double_eq(c.mean_ulp, 2);                                                                  \
        ck_assert_double_eq(c.relative.value, 4.0 / 9);                                                      \
        c = compare(name, a + 4, b + 4, 1);                                                                  \
        ck_assert_double_eq(c.ulp.value, 1);                                                                 \
        ck_assert_double_eq(c.absolute.value, 1);                                                            \
        ck_assert_double_eq(c.rms, 1);                                                                       \
        ck_assert_uint_eq(c.finite, 1);                                                                      \
    } while (0)

START_TEST(integers)
{
    INTEGERS(int8_t, "int8", INT8_MIN, INT8_MAX);
    INTEGERS(int16_t, "int16", INT16_MIN, INT16_MAX);
    INTEGERS(int32_t, "int32", INT32_MIN, INT32_MAX);
    INTEGERS(int64_t, "int64", INT64_MIN, INT64_MAX);
    INTEGERS(uint8_t, "uint8", 0, UINT8_MAX);
    INTEGERS(uint16_t, "uint16", 0, UINT16_MAX);
    INTEGERS(uint32_t, "uint32", 0, UINT32_MAX);
    INTEGERS(uint64_t, "uint64", 0, UINT64_MAX);
    const uint8_t a[] = {0, 1, 1, 2}, b[] = {0, 0, 1, 1};
    khub_comparison c = compare("bool", a, b, 4);
    ck_assert_uint_eq(c.identical, 2);
    ck_assert_double_eq(c.ulp.value, 1);
    ck_assert_double_eq(c.mean_ulp, 0.25); /* 2 is true, as 1 is, by other bits */
}
END_TEST

/* rows of `width`: where a's largest isn't b's */
START_TEST(argmax)
{
    const float a[] = {1, 3, 2, /**/ 0, 0, 0, /**/ 5, NAN, 9, /**/ -1, -2, -INFINITY, /**/ -0.0f, 0, -1},
                b[] = {1, 3, 2.5f, /**/ 0, -1, 0, /**/ 5, 6, 9, /**/ -1, -2, 7, /**/ 0, -0.0f, -1};
    khub_tensor x = khub_tensor_f32((float *)(uintptr_t)a, 2, (int64_t[]){5, 3}),
                y = khub_tensor_f32((float *)(uintptr_t)b, 2, (int64_t[]){5, 3});
    khub_comparison c;
    ck_khub_ok(khub_compare_tensors(&c, &x, &y, &err), &err);
    ck_assert_uint_eq(c.rows, 5);
    ck_assert_uint_eq(c.argmax_same, 3); /* not the third, not the fourth */
    const int64_t wide_a[] = {INT64_MIN, INT64_MIN}, wide_b[] = {INT64_MIN, INT64_MIN + 1};
    c = compare("int64", wide_a, wide_b, 2);
    ck_assert_uint_eq(c.argmax_same, 0);
    const uint64_t huge_a[] = {UINT64_MAX, 1}, huge_b[] = {UINT64_MAX - 1, 1};
    c = compare("uint64", huge_a, huge_b, 2);
    ck_assert_uint_eq(c.argmax_same, 1);
}
END_TEST

enum { LONG_ROW = 3001 };

/* The largest at every place of a row of several blocks. */
START_TEST(argmax_of_long_rows)
{
    static float a[LONG_ROW], b[LONG_ROW];
    for (int i = 0; i < LONG_ROW; i++)
        a[i] = b[i] = (float)cos(i);
    for (int i = 0; i < LONG_ROW; i += 61) {
        float kept = a[i];
        a[i] = 2;
        khub_comparison c = compare("float32", a, b, LONG_ROW);
        ck_assert_uint_eq(c.argmax_same, i == 0); /* cos(0) is b's largest */
        b[i] = 3;
        c = compare("float32", a, b, LONG_ROW);
        ck_assert_uint_eq(c.argmax_same, 1);
        ck_assert_double_eq(c.absolute.value, 1);
        ck_assert_uint_eq(c.absolute.index, (uint64_t)i);
        a[i] = b[i] = kept;
    }
    for (int i = 0; i < LONG_ROW; i++)
        a[i] = b[i] = -1;
    a[2001] = b[2001] = 0;
    a[2000] = -0.0f; /* no smaller than +0, and first */
    khub_comparison c = compare("float32", a, b, LONG_ROW);
    ck_assert_uint_eq(c.argmax_same, 0);
    b[2000] = 0;
    c = compare("float32", a, b, LONG_ROW);
    ck_assert_uint_eq(c.argmax_same, 1);
}
END_TEST

/* xorshift64*, by Vigna. */
static uint64_t random_bits(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

/* Any bits but for the exponents of NaN and infinity, which are rare where `specials` and else not there. */
static void fill_random(unsigned char *data, size_t bytes, size_t item, int specials)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(random_bits() >> 32);
    for (size_t i = item - 1; i < bytes; i += item)
        if (!specials || random_bits() % 64) data[i] &= 0xbf; /* the exponent's upper bit */
}

static const char *const all_dtypes[] = {"float64",     "float32", "bfloat16", "float16", "float8_e4m3fn",
                                         "float8_e5m2", "int8",    "int16",    "int32",   "int64",
                                         "uint8",       "uint16",  "uint32",   "uint64",  "bool"};
enum { DTYPES = sizeof(all_dtypes) / sizeof(*all_dtypes) };

static int same_but_rounding(double x, double y)
{
    return fabs(x - y) <= 1e-13 * fabs(y) || (!isfinite(y) && !isfinite(x));
}

static void expect_equal(const khub_comparison *x, const khub_comparison *y)
{
    ck_assert_mem_eq(x, y, offsetof(khub_comparison, ulp));
    ck_assert_mem_eq(&x->ulp, &y->ulp, sizeof(x->ulp));
    ck_assert_mem_eq(&x->absolute, &y->absolute, sizeof(x->ulp));
    ck_assert_mem_eq(&x->relative, &y->relative, sizeof(x->ulp));
    ck_assert_uint_eq(x->zero_missed, y->zero_missed);
    ck_assert_uint_eq(x->rows, y->rows);
    ck_assert_uint_eq(x->argmax_same, y->argmax_same);
    ck_assert(same_but_rounding(x->mean_ulp, y->mean_ulp));
    ck_assert(same_but_rounding(x->mean_absolute, y->mean_absolute));
    ck_assert(same_but_rounding(x->rms, y->rms));
    ck_assert(fabs(x->cosine - y->cosine) <= 1e-13 || x->cosine != x->cosine);
}

/* Rows (7, 900) of both tensors with room between them, from the back to the front, or with the axes
 * swapped. */
START_TEST(strided_is_contiguous)
{
    enum { ROWS = 7, WIDTH = 900, ROOM = 3 };
    static unsigned char a[8 * ROWS * WIDTH], b[8 * ROWS * WIDTH], far_a[8 * ROWS * WIDTH * ROOM],
        far_b[8 * ROWS * WIDTH * ROOM];
    const int64_t shape[] = {ROWS, WIDTH};
    const struct {
        int64_t strides[2], first;
    } views[] = {{{WIDTH * ROOM, ROOM}, 0},
                 {{WIDTH * ROOM, 1}, 5},
                 {{-WIDTH, -1}, ROWS * WIDTH - 1},
                 {{1, ROWS}, 0},
                 {{WIDTH, 1}, 77}};
    for (size_t d = 0; d < DTYPES; d++) {
        khub_dtype dtype = dtype_of(all_dtypes[d]);
        size_t item = dtype.bits / 8;
        fill_random(a, item * ROWS * WIDTH, item, d % 2);
        memcpy(b, a, sizeof(a));
        for (size_t i = 0; i < ROWS * WIDTH; i++)
            if (random_bits() % 2) b[i * item] ^= 1 + random_bits() % 4;
        khub_tensor x = khub_tensor_over(a, dtype, 2, shape), y = khub_tensor_over(b, dtype, 2, shape);
        khub_comparison whole, c;
        ck_khub_ok(khub_compare_tensors(&whole, &x, &y, &err), &err);
        ck_assert_uint_eq(whole.rows, ROWS);
        for (size_t v = 0; v < sizeof(views) / sizeof(*views); v++) {
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t i = 0; i < WIDTH; i++) {
                    int64_t at = views[v].first + r * views[v].strides[0] + i * views[v].strides[1];
                    memcpy(far_a + (size_t)at * item, a + (size_t)(r * WIDTH + i) * item, item);
                    memcpy(far_b + (size_t)at * item, b + (size_t)(r * WIDTH + i) * item, item);
                }
            khub_tensor p = khub_tensor_over(far_a, dtype, 2, shape),
                        q = khub_tensor_over(far_b, dtype, 2, shape);
            p.strides = q.strides = (int64_t *)(uintptr_t)views[v].strides;
            p.byte_offset = q.byte_offset = (uint64_t)views[v].first * item;
            ck_khub_ok(khub_compare_tensors(&c, &p, &q, &err), &err);
            ck_assert_mem_eq(&c, &whole, sizeof(c));
        }
    }
}
END_TEST

/* A row beside a batch, a number beside all. */
START_TEST(broadcast)
{
    float batch[2][3][4], row[4] = {1, 2, 3, 4}, expected[2][3][4], columns[3] = {1, 2, 3};
    khub_comparison c, whole;
    khub_tensor a = khub_tensor_f32(&batch[0][0][0], 3, (int64_t[]){2, 3, 4}),
                e = khub_tensor_f32(&expected[0][0][0], 3, (int64_t[]){2, 3, 4}),
                as_row = khub_tensor_f32(row, 1, (int64_t[]){4}),
                as_columns = khub_tensor_f32(columns, 2, (int64_t[]){3, 1}),
                as_number = khub_tensor_f32(row, 0, NULL), bad = khub_tensor_f32(row, 1, (int64_t[]){3});
    const khub_tensor *const views[] = {&as_row, &as_columns, &as_number};
    for (int v = 0; v < 3; v++) {
        for (int i = 0; i < 24; i++) {
            (&batch[0][0][0])[i] = (float)(i % 5);
            (&expected[0][0][0])[i] = v == 0 ? row[i % 4] : v == 1 ? columns[i / 4 % 3] : row[0];
        }
        ck_khub_ok(khub_compare_tensors(&whole, &a, &e, &err), &err);
        ck_khub_ok(khub_compare_tensors(&c, &a, views[v], &err), &err);
        ck_assert_mem_eq(&c, &whole, sizeof(c));
    }
    ck_khub_fails(khub_compare_tensors(&c, &a, &bad, &err), &err, KHUB_E_INVAL,
                  "a has shape [2,3,4], b has [3]");
    ck_khub_fails(khub_compare_tensors(&c, &as_row, &a, &err), &err, KHUB_E_INVAL,
                  "a has shape [4], b has [2,3,4]");
}
END_TEST

/* Pieces of all sizes, added one by one, and each on its own and then merged, are the whole. */
START_TEST(pieces_are_the_whole)
{
    enum { N = 5000 };
    static unsigned char a[8 * N], b[8 * N];
    for (size_t d = 0; d < DTYPES; d++) {
        khub_dtype dtype = dtype_of(all_dtypes[d]);
        size_t item = dtype.bits / 8;
        fill_random(a, sizeof(a), item, d % 2);
        memcpy(b, a, sizeof(a));
        for (size_t i = N / 5; i < N; i++)
            if (random_bits() % 2) b[i * item] ^= 1 + random_bits() % 8;
        khub_comparison whole = compare(all_dtypes[d], a, b, N), added = {0}, merged = {0}, nothing = {0};
        whole.argmax_same = whole.rows = 0; /* of one row, which the pieces aren't */
        for (int64_t at = 0, n = 0; at < N; at += n) {
            n = (int64_t)(random_bits() % 700);
            if (n > N - at) n = N - at;
            khub_tensor x = khub_tensor_over(a + (size_t)at * item, dtype, 1, &n),
                        y = khub_tensor_over(b + (size_t)at * item, dtype, 1, &n);
            khub_comparison one;
            ck_khub_ok(khub_comparison_add(&added, &x, &y, &err), &err);
            ck_khub_ok(khub_compare_tensors(&one, &x, &y, &err), &err);
            ck_khub_ok(khub_comparison_merge(&merged, &one, &err), &err);
            ck_khub_ok(khub_comparison_merge(&merged, &nothing, &err), &err);
        }
        ck_assert_uint_eq(added.rows, merged.rows);
        added.argmax_same = added.rows = merged.argmax_same = merged.rows = 0;
        expect_equal(&added, &whole);
        expect_equal(&merged, &whole);
    }
}
END_TEST

/* Small errors beside a large one: none is lost, in however many calls they come. */
START_TEST(sums_keep_what_is_small)
{
    khub_comparison added = {0}, merged = {0}, one;
    for (int i = 0; i < 11; i++) {
        double a = i ? 1 : 0x1p53, b = 0;
        khub_tensor x = khub_tensor_over(&a, dtype_of("float64"), 0, NULL),
                    y = khub_tensor_over(&b, dtype_of("float64"), 0, NULL);
        ck_khub_ok(khub_comparison_add(&added, &x, &y, &err), &err);
        ck_khub_ok(khub_compare_tensors(&one, &x, &y, &err), &err);
        ck_khub_ok(khub_comparison_merge(&merged, &one, &err), &err);
    }
    ck_assert_double_eq(added.mean_absolute, (0x1p53 + 10) / 11);
    ck_assert_double_eq(merged.mean_absolute, (0x1p53 + 10) / 11);
}
END_TEST

START_TEST(merged_with_itself)
{
    const float a[] = {1, 2}, b[] = {1, 3};
    khub_comparison c = compare("float32", a, b, 2);
    ck_khub_ok(khub_comparison_merge(&c, &c, &err), &err);
    ck_assert_uint_eq(c.count, 4);
    ck_assert_uint_eq(c.identical, 2);
    ck_assert_uint_eq(c.first_different, 1);
    ck_assert_uint_eq(c.absolute.index, 1);
    ck_assert_double_eq(c.mean_absolute, 0.5);
    ck_assert_uint_eq(c.rows, 2);
}
END_TEST

START_TEST(empty_ones)
{
    khub_comparison c, nothing = {0};
    khub_tensor a = khub_tensor_f32(NULL, 2, (int64_t[]){3, 0});
    ck_khub_ok(khub_compare_tensors(&c, &a, &a, &err), &err);
    ck_assert_uint_eq(c.count + c.rows + c.first_different, 0);
    ck_assert_double_eq(c.identical_share, 1);
    ck_assert_double_eq(c.cosine, 1);
    ck_assert_double_eq(c.rms + c.mean_ulp + c.mean_absolute, 0);
    a = khub_tensor_f32(NULL, 2, (int64_t[]){0, 3});
    ck_khub_ok(khub_compare_tensors(&c, &a, &a, &err), &err);
    ck_khub_ok(khub_comparison_merge(&nothing, &nothing, &err), &err);
    ck_assert_uint_eq(nothing.count, 0);
    float x = 3, y = 4;
    khub_tensor p = khub_tensor_f32(&x, 0, NULL), q = khub_tensor_f32(&y, 0, NULL);
    ck_khub_ok(khub_comparison_add(&c, &p, &q, &err), &err);
    ck_assert_uint_eq(c.count, 1);
    ck_assert_uint_eq(c.rows, 1);
    ck_assert_double_eq(c.absolute.value, 1);
}
END_TEST

START_TEST(misuse)
{
    float data[4] = {0};
    int64_t shape[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, negative[] = {-1};
    khub_tensor good = khub_tensor_f32(data, 1, shape), bad = good;
    khub_comparison c = {0}, before;
    ck_khub_fails(khub_compare_tensors(NULL, &good, &good, &err), &err, KHUB_E_INVAL, "khub_compare_tensors");
    ck_khub_fails(khub_compare_tensors(&c, NULL, &good, &err), &err, KHUB_E_INVAL, "khub_compare_tensors");
    ck_khub_fails(khub_comparison_add(&c, &good, NULL, &err), &err, KHUB_E_INVAL, "khub_comparison_add");
    ck_khub_fails(khub_comparison_merge(&c, NULL, &err), &err, KHUB_E_INVAL, "khub_comparison_merge");
    ck_khub_fails(khub_comparison_merge(NULL, &c, &err), &err, KHUB_E_INVAL, "khub_comparison_merge");
    ck_assert_int_eq(khub_compare_tensors(NULL, NULL, NULL, NULL), KHUB_E_INVAL);
    ck_khub_ok(khub_comparison_add(&c, &good, &good, &err), &err);
    before = c;
    bad.device.type = KHUB_DEVICE_CUDA;
    ck_khub_fails(khub_comparison_add(&c, &good, &bad, &err), &err, KHUB_E_INVAL, "b lies on device 2:0");
    bad = good, bad.data = NULL;
    ck_khub_fails(khub_comparison_add(&c, &bad, &good, &err), &err, KHUB_E_INVAL, "a has no memory");
    bad = good, bad.shape = negative;
    ck_khub_fails(khub_comparison_add(&c, &bad, &good, &err), &err, KHUB_E_INVAL,
                  "a has an impossible shape");
    bad = good, bad.ndim = 9;
    ck_khub_fails(khub_comparison_add(&c, &bad, &good, &err), &err, KHUB_E_UNSUPPORTED, "a has 9 axes");
    bad = good, bad.dtype = dtype_of("complex64");
    ck_khub_fails(khub_comparison_add(&c, &bad, &bad, &err), &err, KHUB_E_UNSUPPORTED, "a is complex64");
    bad = good, bad.dtype.lanes = 2;
    ck_khub_fails(khub_comparison_add(&c, &good, &bad, &err), &err, KHUB_E_UNSUPPORTED, "b is float32x2");
    bad = good, bad.dtype = dtype_of("int32");
    ck_khub_fails(khub_comparison_add(&c, &bad, &good, &err), &err, KHUB_E_INVAL, "a is int32, b is float32");
    bad = good, bad.dtype = dtype_of("float16");
    ck_khub_fails(khub_comparison_add(&c, &good, &bad, &err), &err, KHUB_E_INVAL,
                  "a is float32, b is float16");
    ck_khub_fails(khub_comparison_add(&c, &bad, &good, &err), &err, KHUB_E_INVAL,
                  "float16 beside float32 is added to a comparison of float32 beside float32");
    khub_comparison halves = {0};
    ck_khub_ok(khub_comparison_add(&halves, &bad, &good, &err), &err);
    ck_khub_fails(khub_comparison_merge(&c, &halves, &err), &err, KHUB_E_INVAL, "float16 beside float32");
    ck_assert_mem_eq(&c, &before, sizeof(c));
}
END_TEST

UNIT("numerics", by_hand, nothing_differs, classes, special_values_do_not_measure,
     relative_where_the_expected_is_zero, relative_beside_the_least_numbers, cosine_of_zeros,
     every_pair_of_float8, neighbours, beside_wider_ones, rounding_of_wider_ones, float64_by_hand, integers,
     argmax, argmax_of_long_rows, strided_is_contiguous, broadcast, pieces_are_the_whole,
     sums_keep_what_is_small, merged_with_itself, empty_ones, misuse)
