/* What khub compare and khub bench are built on: cases, memory between guards. */
#include "unit.h"

#include "measure/accuracy.h"
#include "measure/cases.h"
#include "measure/element.h"
#include "measure/guarded.h"
#include "measure/report.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const khub_dtype float32 = {KHUB_DTYPE_FLOAT, 32, 1}, bfloat16 = {KHUB_DTYPE_BFLOAT, 16, 1},
                        float16 = {KHUB_DTYPE_FLOAT, 16, 1};

START_TEST(elements_are_rounded_once_to_nearest_even)
{
    static const struct {
        khub_dtype dtype;
        double x, rounded;
    } table[] = {
        {{KHUB_DTYPE_FLOAT, 32, 1}, 1 + 0x1p-24, 1},
        {{KHUB_DTYPE_FLOAT, 32, 1}, 1 + 0x3p-24, 1 + 0x1p-22},
        {{KHUB_DTYPE_FLOAT, 32, 1}, 0x1p-150, 0},
        {{KHUB_DTYPE_FLOAT, 32, 1}, -0x1.8p-150, -0x1p-149},
        {{KHUB_DTYPE_FLOAT, 32, 1}, 0x1.ffffffp127, INFINITY},
        {{KHUB_DTYPE_FLOAT, 32, 1}, 0x1.fffffefffp127, 0x1.fffffep127},
        {{KHUB_DTYPE_BFLOAT, 16, 1}, 1 + 0x1p-8, 1},
        {{KHUB_DTYPE_BFLOAT, 16, 1}, -(1 + 0x3p-8), -(1 + 0x1p-6)},
        {{KHUB_DTYPE_BFLOAT, 16, 1}, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7},
        {{KHUB_DTYPE_FLOAT, 16, 1}, 65519, 65504},
        {{KHUB_DTYPE_FLOAT, 16, 1}, 65520, INFINITY},
        {{KHUB_DTYPE_FLOAT, 16, 1}, 0x1p-25, 0},
        {{KHUB_DTYPE_FLOAT, 16, 1}, 0x3p-25, 0x1p-23},
        {{KHUB_DTYPE_FLOAT, 64, 1}, 1e300, 1e300},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_double_eq(khub__element_round(table[i].dtype, table[i].x), table[i].rounded);
    ck_assert(signbit(khub__element_round(bfloat16, -0.0)));
    for (uint32_t u = 0; u < 0x10000; u++) { /* every number of 16 bits is its own rounding */
        uint64_t bits = u;
        const khub_dtype both[] = {bfloat16, float16};
        for (int i = 0; i < 2; i++) {
            double x = khub__element_get(both[i], &bits, 0);
            if (isnan(x))
                ck_assert(isnan(khub__element_round(both[i], x)));
            else
                ck_assert_uint_eq(khub__element_bits(khub__format_of(both[i]), x), bits);
        }
    }
}
END_TEST

START_TEST(every_case_has_a_name_that_gives_it_again)
{
    const khub_dtype dtypes[] = {float32, bfloat16, float16};
    size_t cases = 0;
    for (size_t l = 0; l < KHUB__LAYERS; l++) {
        const khub__layer_def *layer = khub__layer_at(l);
        for (size_t d = 0; d < 3; d++) {
            for (size_t i = 0; i < khub__case_count(layer, dtypes[d]); i++, cases++) {
                khub__case c, again;
                khub_error err = {0};
                char name[KHUB__CASE_NAME];
                khub__case_at(&c, layer, dtypes[d], i, 7);
                ck_assert_uint_lt(strlen(khub__case_name(name, &c)), KHUB__CASE_NAME - 1);
                ck_khub_ok(khub__case_parse(&again, layer, name, 7, &err), &err);
                ck_assert_mem_eq(&again, &c, sizeof(c));
            }
        }
    }
    ck_assert_uint_gt(cases, 1000);
}
END_TEST

START_TEST(arguments_have_the_shapes_of_the_layer)
{
    khub__case c;
    khub_error err = {0};
    ck_khub_ok(khub__case_parse(&c, khub__layer_find("Attention"),
                                "float32/normal/2x3x5x8x4x16/lengths,causal", 0, &err),
               &err);
    static const int64_t q[] = {2, 3, 8, 16}, k[] = {2, 5, 4, 16};
    ck_assert_mem_eq(c.args[0].shape, q, sizeof(q));
    ck_assert_mem_eq(c.args[3].shape, k, sizeof(k));
    ck_assert_int_eq(c.args[4].dtype.code, KHUB_DTYPE_INT);
    ck_assert_double_eq(c.args[6].number, 1);
    ck_assert(c.args[0].is_output && !c.args[1].is_output && !c.args[4].is_none);
    ck_khub_ok(khub__case_parse(&c, khub__layer_find("SiluAndMul"), "bfloat16/tiny/3x5", 0, &err), &err);
    ck_assert_int_eq(c.args[1].shape[1], 10);
    ck_assert_uint_eq(khub__case_bytes(&c, 1), 60);
    ck_khub_ok(khub__case_parse(&c, khub__layer_find("AddLayerNorm"), "float32/normal/4x7/sum", 0, &err),
               &err);
    ck_assert(!c.args[1].is_none && c.args[5].is_none && c.args[1].is_output);
    ck_assert_int_eq(c.args[4].ndim, 1);
    ck_assert(khub__case_is_batched(&c, 1) && !khub__case_is_batched(&c, 4) && !khub__case_is_batched(&c, 5));
}
END_TEST

START_TEST(names_that_are_none)
{
    static const struct {
        const char *layer, *name, *words;
    } table[] = {
        {"GeLU", "float33/normal/3", "float33"},
        {"GeLU", "int32/normal/3", "isn't one of floats"},
        {"GeLU", "float32/odd/3", "class of values"},
        {"GeLU", "float32/bits9/3", "class of values"},
        {"GeLU", "float32/normal/3y4", "extents are"},
        {"GeLU", "float32/normal/", "extents are"},
        {"GeLU", "float32/normal/3x", "extents are"},
        {"GeLU", "float32/normal/3/x", "isn't optional"},
        {"RMSNorm", "float32/normal/3x0", "n from 1"},
        {"RMSNorm", "float32/normal/scalar", "has no case"},
        {"Linear", "float32/normal/3x4", "m, n, k"},
        {"rotary_pos_emb", "float32/normal/1x1x1x3", "d is even"},
        {"Attention", "float32/normal/1x1x1x3x2x4", "multiple of g"},
        {"GeLU", "float32/normal/99999x99999", "has no case"},
        {"GeLU", "float32/normal/99999999999999999999999", "has no case"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__case c;
        khub_error err = {0};
        ck_khub_fails(khub__case_parse(&c, khub__layer_find(table[i].layer), table[i].name, 0, &err), &err,
                      KHUB_E_INVAL, table[i].words);
    }
}
END_TEST

/* Fills argument 1 (x) of a case of GeLU. */
static uint16_t *fill(const char *name, uint64_t seed, size_t *count)
{
    khub__case c;
    khub_error err = {0};
    ck_khub_ok(khub__case_parse(&c, khub__layer_find("GeLU"), name, seed, &err), &err);
    size_t bytes = khub__case_bytes(&c, 1);
    uint16_t *x = malloc(bytes);
    ck_assert_ptr_nonnull(x);
    khub__case_fill(&c, 1, x);
    *count = bytes / (c.dtype.bits / 8);
    return x;
}

START_TEST(a_pass_over_all_numbers)
{
    size_t count;
    uint16_t *x = fill("bfloat16/bits0/256x256", 0, &count);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(x[i], i);
    free(x);
    uint32_t *y = (uint32_t *)(void *)fill("float32/bits3/64x64", 0, &count);
    for (uint64_t i = 0; i < count; i++) /* 2^32 / 4096 / 8 patterns each */
        ck_assert_uint_eq(y[i] >> 17, i * 8 + 3);
    free(y);
}
END_TEST

START_TEST(classes_of_values)
{
    static const struct {
        const char *name;
        double least, most; /* of the magnitude of finite ones that aren't 0 */
    } table[] = {{"normal", 0, 3.5},
                 {"tiny", 0x1p-126, 0x1p-118},
                 {"huge", 0x1p120, 0x1p128},
                 {"subnormal", 0x1p-149, 0x1p-126},
                 {"zeros", 0, 3.5},
                 {"infinities", 0, 3.5},
                 {"nan", 0, 3.5},
                 {"ties", 0, 8}};
    for (size_t t = 0; t < sizeof(table) / sizeof(*table); t++) {
        char name[64];
        size_t count, zeros[2] = {0}, infinite = 0, nan = 0;
        double sum = 0, square = 0;
        snprintf(name, sizeof(name), "float32/%s/64x64", table[t].name);
        float *x = (float *)(void *)fill(name, 1, &count);
        for (size_t i = 0; i < count; i++) {
            double a = fabs((double)x[i]);
            if (isfinite(x[i]) && a != 0) {
                ck_assert(a >= table[t].least && a <= table[t].most);
                sum += x[i], square += a * a;
            }
            zeros[signbit(x[i]) != 0] += a == 0;
            infinite += isinf(x[i]) != 0, nan += isnan(x[i]) != 0;
        }
        free(x);
        if (t == 0) {
            ck_assert_double_le(fabs(sum / (double)count), 0.05);
            ck_assert_double_le(fabs(square / (double)count - 1), 0.05);
        }
        if (!strcmp(table[t].name, "zeros")) ck_assert(zeros[0] > 900 && zeros[1] > 900);
        ck_assert((infinite > 0) == !strcmp(table[t].name, "infinities"));
        ck_assert((nan > 0) == !strcmp(table[t].name, "nan"));
    }
}
END_TEST

START_TEST(numbers_come_again)
{
    size_t count;
    uint16_t *a = fill("float32/mixed/33x7", 5, &count), *b = fill("float32/mixed/33x7", 5, &count),
             *other = fill("float32/mixed/33x7", 6, &count);
    ck_assert_mem_eq(a, b, count * 4);
    ck_assert(memcmp(a, other, count * 4) != 0);
    free(a), free(b), free(other);
}
END_TEST

/* The signal that touching a byte ends a child by. */
static int signal_of(volatile char *at, int write)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would print */
        if (write) *at = 1;
        _exit(*at == 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* A tensor (rows, 5) of float32 for each placement. */
static void make(khub__guarded *g, khub__placement placement)
{
    static const int64_t shape[] = {3, 5};
    khub_error err = {0};
    ck_khub_ok(khub__guarded_new(g, float32, 2, shape, placement, 1, &err), &err);
}

START_TEST(what_is_put_comes_back)
{
    float in[15], out[15];
    for (int i = 0; i < 15; i++)
        in[i] = (float)i;
    for (int p = 0; p < KHUB__PLACEMENTS; p++) {
        khub__guarded g;
        int64_t at = 0;
        make(&g, (khub__placement)p);
        khub__guarded_get(&g, out);
        for (int i = 0; i < 15; i++)
            ck_assert(isnan(out[i]));
        khub__guarded_put(&g, in);
        khub__guarded_get(&g, out);
        ck_assert_mem_eq(in, out, sizeof(in));
        const float *first = g.tensor.data; /* the tensor says the same */
        ck_assert_float_eq(first[2 * g.strides[0] + 4], 14);
        ck_assert_int_eq(g.strides[0], p == KHUB__STRIDED ? 8 : 5);
        ck_assert(khub__guarded_is_intact(&g, &at));
        uintptr_t address = (uintptr_t)g.tensor.data;
        if (p == KHUB__ALIGNED) ck_assert_uint_eq(address % 64, 0);
        if (p == KHUB__SHIFTED) ck_assert_uint_eq(address % 64, 4);
        khub__guarded_free(&g);
    }
}
END_TEST

START_TEST(what_is_written_beside_is_seen)
{
    static const struct {
        khub__placement placement;
        int64_t at;
    } table[] = {{KHUB__AT_END, -1},       {KHUB__AT_END, -64}, {KHUB__AT_START, 60},
                 {KHUB__ALIGNED, -1},      {KHUB__ALIGNED, 60}, {KHUB__STRIDED, 5 * 4},
                 {KHUB__STRIDED, 32 + 31}, {KHUB__STRIDED, -2}, {KHUB__SHIFTED, -4}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__guarded g;
        int64_t at = 0;
        make(&g, table[i].placement);
        g.data[table[i].at] = 0;
        ck_assert(!khub__guarded_is_intact(&g, &at));
        ck_assert_int_eq(at, table[i].at);
        khub__guarded_free(&g);
    }
}
END_TEST

/* As in the memory of a GPU: what lies in guard pages elsewhere is pattern, too. */
START_TEST(what_is_unlocked_is_looked_at)
{
    static const int64_t beside[] = {-1, 60, -4000, 60 + 4000};
    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
        khub__guarded g;
        int64_t at = 0;
        make(&g, KHUB__AT_END);
        khub__guarded_unlock(&g);
        khub__guarded_freeze(&g);
        ck_assert(khub__guarded_is_intact(&g, &at));
        g.data[beside[i]] = 0;
        ck_assert(!khub__guarded_owns(&g, g.data + beside[i], &at));
        ck_assert(!khub__guarded_is_intact(&g, &at));
        ck_assert_int_eq(at, beside[i]);
        khub__guarded_clear(&g, 1);
        khub__guarded_free(&g);
    }
}
END_TEST

START_TEST(what_is_touched_beside_faults)
{
    static const struct {
        khub__placement placement;
        int64_t at;
    } table[] = {{KHUB__AT_END, 60}, {KHUB__AT_START, -1}, {KHUB__STRIDED, 2 * 32 + 20}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__guarded g;
        int64_t at = 0;
        make(&g, table[i].placement);
        char *wild = g.data + table[i].at;
        ck_assert(khub__guarded_owns(&g, wild, &at));
        ck_assert_int_eq(at, table[i].at);
        ck_assert(!khub__guarded_owns(&g, g.data, &at));
        for (int write = 0; write < 2; write++) {
            ck_assert_int_eq(signal_of(wild, write), SIGSEGV);
            ck_assert_int_eq(signal_of(g.data, write), 0);
        }
        khub__guarded_free(&g);
    }
}
END_TEST

START_TEST(nothing_takes_no_memory)
{
    static const int64_t shape[] = {3, 0};
    khub__guarded g;
    khub_error err = {0};
    int64_t at;
    ck_khub_ok(khub__guarded_new(&g, float32, 2, shape, KHUB__AT_END, 1, &err), &err);
    ck_assert_ptr_null(g.tensor.data);
    ck_assert(khub__guarded_is_intact(&g, &at));
    ck_assert(!khub__guarded_owns(&g, &g, &at));
    khub__guarded_put(&g, "");
    khub__guarded_free(&g);
}
END_TEST

/* Errors 0, -1, 0 beside 3, 5, 0, added in two parts. */
static khub_accuracy some_errors(void)
{
    static const float got[] = {3, 4, 0, INFINITY};
    static const double exact[] = {3, 5, 0, INFINITY};
    khub_accuracy all = {0}, more = {0};
    const khub__results first = {float32, got, exact, exact, 1, "a", "out"},
                        rest = {float32, got + 1, exact + 1, exact + 1, 3, "b", "out"};
    khub__accuracy_add(&all, &first);
    khub__accuracy_add(&more, &rest);
    khub__accuracy_merge(&all, &more);
    return all;
}

START_TEST(errors_beside_the_size_of_all_results)
{
    khub_accuracy all = some_errors(), none = {0};
    khub__accuracy_finish(&all);
    ck_assert_double_eq_tol(all.rms, sqrt(1.0 / 34), 1e-15);
    ck_assert_double_eq_tol(all.cosine, 29 / (5 * sqrt(34)), 1e-15);
    khub__accuracy_finish(&none);
    ck_assert(none.rms == 0 && none.cosine == 1);
}
END_TEST

START_TEST(a_promise_about_the_size_of_errors)
{
    static const struct {
        double promised;
        khub_verdict verdict;
    } table[] = {{0.1715, KHUB_VERDICT_YES}, {0.1714, KHUB_VERDICT_NO}}; /* sqrt(1 / 34) is 0.17149… */
    for (int i = 0; i < 2; i++) {
        khub_compare_layer layer = {
            .tolerance_count = 1,
            .tolerances = {{"float32", -1, table[i].promised}},
            .row_count = 1,
            .rows = {{.dtype = float32, .values = "normal", .kernel = some_errors()}}};
        khub__report_judge(&layer);
        const khub_finding *finding = &layer.findings[KHUB_CHECK_TOLERANCE];
        ck_assert_int_eq(finding->verdict, table[i].verdict);
        ck_assert_int_eq(layer.broken, table[i].verdict == KHUB_VERDICT_NO);
        if (layer.broken)
            ck_assert_str_eq(finding->words,
                             "the results of \"normal\" are 0.171 of their size off (root mean "
                             "square): 0.1714 is promised");
    }
}
END_TEST

UNIT("measure", errors_beside_the_size_of_all_results, a_promise_about_the_size_of_errors,
     elements_are_rounded_once_to_nearest_even, every_case_has_a_name_that_gives_it_again,
     arguments_have_the_shapes_of_the_layer, names_that_are_none, a_pass_over_all_numbers, classes_of_values,
     numbers_come_again, what_is_put_comes_back, what_is_written_beside_is_seen,
     what_is_unlocked_is_looked_at, what_is_touched_beside_faults, nothing_takes_no_memory)
