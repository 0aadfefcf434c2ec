/* What the built-in kernels are made of (kernels/common/vec.h, vmath.h), by instruction set: exp, tanh, erf
 * within 2 ULP (their worst is known: docs/kernels.md), the portable multiply-add exact, sums in their order,
 * bfloat16 to nearest even. */
#include "kernels.h"

enum { POINTS = 1 << 20 };

/* ck_assert_msg for loops of a million: Check writes a line to a file for each of its own. */
#define check_msg(condition, ...)                                                                            \
    do {                                                                                                     \
        if (!(condition)) ck_abort_msg(__VA_ARGS__);                                                         \
    } while (0)

static void call1(const library *l, const char *name, float *out, const float *x, int64_t n)
{
    khub_tensor to = khub_tensor_f32(out, 1, &n), tx = khub_tensor_f32((float *)(uintptr_t)x, 1, &n);
    ck_kernel_ok(l, name, khub_arg_tensor(&to), khub_arg_tensor(&tx));
}

/* Distance of `got` from the exact value, in units in the last place of a float of that size. */
static double ulps(float got, double exact)
{
    if (isnan(exact) || isinf((float)exact) || exact == 0)
        return (isnan(exact) && isnan(got)) || got == (float)exact ? 0 : INFINITY;
    int exponent;
    frexp(exact, &exponent);
    return fabs(got - exact) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

/* u · exp(u²/2) · Φ(-u); a long double's exponents reach far enough. */
static double normal_tail(double u)
{
    long double x = u;
    return (double)(x * expl(x * x / 2) * erfcl(x / sqrtl(2)) / 2);
}

static const struct {
    const char *name;
    double (*exact)(double);
    float low, high; /* where the function isn't flat */
    double ulp;
} functions[] = {{"exp", exp, -105, 90, 1.02},
                 {"tanh", tanh, -10, 10, 1.41},
                 {"erf", erf, -5, 5, 1},
                 {"normal_tail", normal_tail, 4, 20, 1.5}};
enum { FUNCTIONS = sizeof(functions) / sizeof(*functions) };

/* Half evenly between low and high, half from all bit patterns; specials first. */
static void fill_points(float *x, float low, float high)
{
    static const float specials[] = {0,
                                     -0.0f,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     1,
                                     -1,
                                     0x1p-149f,
                                     -0x1p-149f,
                                     0x1p-126f,
                                     0x1.fffffep+127f,
                                     -0x1.fffffep+127f,
                                     88.72283f,
                                     88.72284f,
                                     -87.33654f,
                                     -103.97208f,
                                     -104,
                                     0x1.7f599ap+4f, /* the worst of exp, tanh and erf */
                                     0x1.40ac3ap-1f,
                                     0x1.313328p-1f};
    for (size_t i = 0; i < POINTS; i++) {
        x[i] =
            i & 1 ? float_of_bits(random_bits()) : low + (high - low) * (float)(random_bits() / 4294967296.0);
        if (i < sizeof(specials) / sizeof(*specials)) x[i] = specials[i];
        if (low > 0 && !(x[i] >= low && x[i] <= high)) x[i] = high; /* asked for nothing else */
    }
}

START_TEST(functions_within_a_few_ulp)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    ck_assert_int_ge(count, 1);
    float *x = malloc(POINTS * 4), *out = malloc(POINTS * 4), *first = malloc(POINTS * 4);
    for (int f = 0; f < FUNCTIONS; f++) {
        fill_points(x, functions[f].low, functions[f].high);
        for (int i = 0; i < count; i++) {
            library l = library_open("probe", isas[i]);
            call1(&l, functions[f].name, i ? out : first, x, POINTS);
            for (int k = 0; i && k < POINTS; k++)
                check_msg(bits_of_float(out[k]) == bits_of_float(first[k]) ||
                              (isnan(out[k]) && isnan(first[k])),
                          "%s(%a): %a by %s, %a by %s", functions[f].name, x[k], first[k], isas[0], out[k],
                          isas[i]);
        }
        double worst = 0;
        for (int k = 0; k < POINTS; k++) {
            double off = ulps(first[k], functions[f].exact(x[k]));
            check_msg(off <= functions[f].ulp, "%s(%a) is %a, %g ULP off", functions[f].name, x[k], first[k],
                      off);
            if (off > worst) worst = off;
        }
        printf("%s: %.3f ULP at most\n", functions[f].name, worst);
    }
    free(x);
    free(out);
    free(first);
}
END_TEST

/* Signs of zero, which ULPs don't see. */
START_TEST(odd_functions_keep_the_sign_of_zero)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int i = 0; i < count; i++) {
        library l = library_open("probe", isas[i]);
        const float x[3] = {0.0f, -0.0f, -0x1p-149f};
        float out[3];
        for (int odd = 0; odd < 2; odd++) {
            call1(&l, odd ? "tanh" : "erf", out, x, 3);
            ck_assert(!signbit(out[0]) && signbit(out[1]) && signbit(out[2]));
        }
    }
}
END_TEST

/* c + a · b a hair beside the middle of two floats, farther than double sees: a · b is 1 - i² 2⁻⁴⁶ or 1 +
 * 2⁻³⁶, c an even number from 2²⁴ to 2²⁵, all scaled. Rounding to double first, then to float, gets half of
 * them wrong. */
static void hard_tie(float *a, float *b, float *c, uint32_t r)
{
    float i = (float)(r % 8 + 1) * 0x1p-23f;
    *a = r & 8 ? 1 + i : 1 + 0x1p-12f;
    *b = r & 8 ? 1 - i : 1 - 0x1p-12f + 0x1p-24f;
    *c = 0x1p24f + (float)(random_bits() >> 9) * 2;
    int scale = (int)(r >> 4 & 127) - 64;
    *a = ldexpf(r >> 12 & 1 ? *a : -*a, scale);
    *c = ldexpf(r >> 13 & 1 ? *c : -*c, scale);
}

/* Three floats whose a · b + c is hard: any bits, ties, cancellation, results below the normal numbers. */
static void fill_hard(float *a, float *b, float *c, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t r = random_bits();
        a[i] = float_of_bits(random_bits());
        b[i] = float_of_bits(random_bits());
        c[i] = float_of_bits(random_bits());
        if (r % 4 == 0) continue;
        if (r % 4 == 1) {
            hard_tie(a + i, b + i, c + i, r >> 2);
            continue;
        }
        int low = r % 4 == 2 ? -120 : -40;
        a[i] = ldexpf((float)(random_bits() >> 8 | 1), (int)(r >> 8 & 63) + low);
        b[i] = ldexpf((float)(random_bits() >> 8 | 1), (int)(r >> 16 & 63) + low);
        double product = (double)a[i] * b[i];
        c[i] = (float)(-product * (1 + ((int)(r >> 24 & 7) - 3) * ldexp(1, -(int)(r >> 27 & 31))));
    }
}

START_TEST(fma_is_exact)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    int64_t n = POINTS;
    float *memory = malloc(POINTS * 4 * 4), *a = memory, *b = a + n, *c = b + n, *out = c + n;
    fill_hard(a, b, c, POINTS);
    for (int i = 0; i < count; i++) {
        library l = library_open("probe", isas[i]);
        khub_tensor t[4] = {khub_tensor_f32(out, 1, &n), khub_tensor_f32(a, 1, &n), khub_tensor_f32(b, 1, &n),
                            khub_tensor_f32(c, 1, &n)};
        ck_kernel_ok(&l, "fma", khub_arg_tensor(t), khub_arg_tensor(t + 1), khub_arg_tensor(t + 2),
                     khub_arg_tensor(t + 3));
        for (int k = 0; k < POINTS; k++) {
            float exact = fmaf(a[k], b[k], c[k]);
            check_msg(bits_of_float(out[k]) == bits_of_float(exact) || (isnan(out[k]) && isnan(exact)),
                      "%s: %a * %a + %a is %a, not %a", isas[i], a[k], b[k], c[k], exact, out[k]);
        }
    }
    free(memory);
}
END_TEST

/* Lanes i and i + 8, then i + 4, i + 2, i + 1, written out once more. */
START_TEST(sums_have_one_order)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int i = 0; i < count; i++) {
        library l = library_open("probe", isas[i]);
        for (int round = 0; round < 1000; round++) {
            float x[16], s[16], sum, largest, most = -INFINITY;
            for (int k = 0; k < 16; k++) {
                s[k] = x[k] = (float)(random_normal() * ldexp(1, (int)(random_bits() % 30)));
                if (x[k] > most) most = x[k];
            }
            int64_t shape[2] = {1, 16};
            khub_tensor in = khub_tensor_f32(x, 2, shape), out = khub_tensor_f32(&sum, 1, shape);
            ck_kernel_ok(&l, "sum", khub_arg_tensor(&out), khub_arg_tensor(&in));
            out.data = &largest;
            ck_kernel_ok(&l, "largest", khub_arg_tensor(&out), khub_arg_tensor(&in));
            for (int k = 0; k < 8; k++)
                s[k] = x[k] + x[k + 8];
            float expected = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
            ck_assert_uint_eq(bits_of_float(sum), bits_of_float(expected));
            ck_assert_uint_eq(bits_of_float(largest), bits_of_float(most));
        }
    }
}
END_TEST

START_TEST(bfloat16_rounds_to_nearest_even)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { LOW = sizeof(low) / sizeof(*low) };
    int64_t shape[2] = {65536 * LOW / 16, 16};
    float *x = malloc(65536 * LOW * 4);
    uint16_t *out = malloc(65536 * LOW * 2);
    for (uint32_t i = 0; i < 65536 * LOW; i++)
        x[i] = float_of_bits(i / LOW << 16 | low[i % LOW]);
    for (int i = 0; i < count; i++) {
        library l = library_open("probe", isas[i]);
        khub_tensor tx = khub_tensor_f32(x, 2, shape), to = khub_tensor_over(out, bf16, 2, shape);
        ck_kernel_ok(&l, "narrow", khub_arg_tensor(&to), khub_arg_tensor(&tx));
        for (uint32_t k = 0; k < 65536 * LOW; k++) {
            float got = float_of_bits((uint32_t)out[k] << 16);
            double exact = round_bf16(x[k]);
            check_msg(isnan(exact) ? isnan(got) : bits_of_float(got) == bits_of_float((float)exact),
                      "%s: %a becomes %a, not %a", isas[i], x[k], got, exact);
        }
    }
    free(x);
    free(out);
}
END_TEST

UNIT("kernels_math", functions_within_a_few_ulp, odd_functions_keep_the_sign_of_zero, fma_is_exact,
     sums_have_one_order, bfloat16_rounds_to_nearest_even)
