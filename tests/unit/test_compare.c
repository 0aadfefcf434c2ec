/* What khub compare is built on: exact results, errors in ULP, children that may crash. Expected values are
 * worked out by hand, or are known to many digits. */
#include "failing_memory.h"

#include "measure/accuracy.h"
#include "base/contained.h"
#include "measure/watched.h"
#include "measure/element.h"
#include "measure/reference.h"
#include "measure/report.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const khub_dtype float32 = {KHUB_DTYPE_FLOAT, 32, 1}, bfloat16 = {KHUB_DTYPE_BFLOAT, 16, 1};

enum { MOST = 8 };

/* One call of the reference: up to four inputs after the outputs, and what is expected. */
typedef struct example {
    const char *layer, *name;
    double eps;
    double in[KHUB__MAX_ARGS][MOST];
    double out[MOST], scale[MOST];
    int count;
} example;

#define LN3 1.0986122886681098

static const example examples[] = {
    {"GeLU",
     "float32/normal/3",
     0,
     {{0}, {1, -1, -10}},
     {0.84134474606854293, -0.15865525393145707, -7.619853024160526e-23},
     {0.8413447, 0.1586553, 7.6198530e-23},
     3},
    {"GeluTanh", "float32/normal/2", 0, {{0}, {1, 0}}, {0.84119199060827676, 0}, {0.841192, 0}, 2},
    {"SiLU",
     "float32/normal/2",
     0,
     {{0}, {1, -1}},
     {0.73105857863000490, -0.26894142136999512},
     {0.7310586, 0.2689414},
     2},
    {"QuickGELU", "float32/normal/1", 0, {{0}, {1}}, {0.84579576593282127}, {0.8457958}, 1},
    {"ReLU", "float32/normal/2", 0, {{0}, {2, -2}}, {2, 0}, {2, 0}, 2},
    {"Add", "float32/normal/2", 0, {{0}, {2, -2}, {1, 0.5}}, {3, -1.5}, {3, 1.5}, 2},
    {"SiluAndMul",
     "float32/normal/2x1",
     0,
     {{0}, {1, 10, -1, 10}},
     {7.3105857863000490, -2.6894142136999512},
     {7.310586, 2.689414},
     2},
    {"RMSNorm",
     "float32/normal/2",
     0,
     {{0}, {3, 4}, {1, 2}},
     {0.84852813742385703, 2.2627416997969521},
     {0.8485281, 2.2627417},
     2},
    {"LayerNorm", "float32/normal/2/bias", 0, {{0}, {1, 3}, {2, 2}, {10, 20}}, {8, 22}, {16, 30}, 2},
    {"LayerNorm", "float32/normal/1x2", 3, {{0}, {1, 3}, {2, 2}}, {-1, 1}, {3, 5}, 2},
    {"Embedding",
     "float32/normal/2x2x1/position_ids,types,positions",
     0,
     {{0}, {1, 0}, {0}, {0, 1}, {3, 4}, {10, 20}, {-100, 200}},
     {-86, 213},
     {114, 213},
     2},
    {"EmbeddingLayerNorm",
     "float32/normal/1x2x2/bias",
     3,
     {{0}, {1}, {0}, {0}, {9, 9, 1, 3}, {0}, {0}, {2, 2}, {10, 20}},
     {9, 21},
     {13, 25},
     2},
    {"Softmax",
     "float32/normal/2x2",
     0,
     {{0}, {0, LN3, 1000, 1000}},
     {0.25, 0.75, 0.5, 0.5},
     {0.25, 0.75, 0.5, 0.5},
     4},
    {"rotary_pos_emb",
     "float32/normal/1x1x1x2",
     0,
     {{0}, {0}, {1, 2}, {0, 0}, {0.6}, {0.8}},
     {-1, 2},
     {2.2, 2},
     2},
    {"Linear", "float32/normal/1x2x2/bias", 0, {{0}, {1, 2}, {3, 4, 3, -4}, {5, 6}}, {16, 1}, {16, 17}, 2},
    {"LinearReLU", "float32/normal/1x2x2", 0, {{0}, {1, 2}, {3, 4, 3, -4}}, {11, 0}, {11, 11}, 2},
    {"LinearAdd",
     "float32/normal/1x2x2/bias",
     0,
     {{0}, {1, 2}, {3, 4, 3, -4}, {5, 6}, {-20, 0.5}},
     {-4, 1.5},
     {36, 17.5},
     2},
    /* the mean of the squares is 8, with eps 1 its root 3 */
    {"RMSNormLinear",
     "float32/normal/1x2x2/bias",
     1,
     {{0}, {4, 0}, {3, 9}, {0}, {2, 5, -1, 7}, {10, 20}},
     {18, 16},
     {18, 24},
     2},
    {"Attention", "float32/normal/1x1x2x1x1x1", 0, {{0}, {4}, {0, LN3}, {8, 16}}, {14}, {14}, 1},
    {"Attention",
     "float32/normal/1x2x2x1x1x1/causal",
     0,
     {{0}, {4, 4}, {0, LN3}, {8, -16}},
     {8, -10},
     {8, 14},
     2},
    /* a window of (2 + 2) / 3: itself */
    {"Attention",
     "float32/normal/1x2x2x1x1x1/window",
     0,
     {{0}, {4, 4}, {0, LN3}, {8, -16}},
     {8, -16},
     {8, 16},
     2},
    {"Attention",
     "float32/normal/2x1x2x1x1x1/lengths",
     0,
     {{0}, {1, 1}, {0, 0, 1, NAN}, {8, 16, 4, NAN}, {0, 1}},
     {0, 4},
     {0, 4},
     2},
};

START_TEST(exact_results)
{
    for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
        const example *x = &examples[i];
        khub__case c;
        khub_error err = {0};
        double out[KHUB__MAX_ARGS][MOST] = {{0}}, scale[KHUB__MAX_ARGS][MOST] = {{0}};
        ck_khub_ok(khub__case_parse(&c, khub__layer_find(x->layer), x->name, 0, &err), &err);
        khub__exact e = {0};
        for (int32_t a = 0; a < c.layer->arg_count; a++) {
            if (c.args[a].kind == KHUB__ARG_FLOAT)
                c.args[a].number = strcmp(x->layer, "Attention") ? x->eps : 0.25;
            if (c.args[a].is_none) continue;
            e.in[a] = x->in[a], e.out[a] = out[a], e.scale[a] = scale[a];
        }
        khub__reference(&c, &e);
        for (int k = 0; k < x->count; k++) {
            double room =
                2e-14 * fabs(x->out[k]) + 1e-300; /* exp and erfc make more of their argument's rounding */
            ck_assert_msg(fabs(out[0][k] - x->out[k]) <= room, "%s[%d] is %.17g, %.17g is expected", x->layer,
                          k, out[0][k], x->out[k]);
            ck_assert_msg(fabs(scale[0][k] - x->scale[k]) <= 1e-6 * x->scale[k],
                          "%s[%d]: scale %.17g, %.17g is expected", x->layer, k, scale[0][k], x->scale[k]);
        }
    }
}
END_TEST

START_TEST(what_is_normalized_is_the_rounded_sum)
{
    khub__case c;
    khub_error err = {0};
    ck_khub_ok(khub__case_parse(&c, khub__layer_find("AddRMSNorm"), "bfloat16/normal/2/sum", 0, &err), &err);
    c.args[5].number = 0;
    const double x[] = {1, 1}, residual[] = {0x1p-9, 0}, weight[] = {1, 1}; /* 1 + 2^-9 is 1 in bfloat16 */
    double out[2], sum[2], out_scale[2], sum_scale[2];
    khub__exact e = {
        .in = {NULL, NULL, x, residual, weight}, .out = {out, sum}, .scale = {out_scale, sum_scale}};
    khub__reference(&c, &e);
    ck_assert_double_eq(sum[0], 1 + 0x1p-9);
    ck_assert_double_eq(out[0], 1);
    ck_assert_double_eq(out[1], 1);
}
END_TEST

START_TEST(long_sums_lose_nothing)
{
    khub__sum sum = {0, 0};
    khub__sum_of(&sum, 1e16);
    for (int i = 0; i < 1000; i++)
        khub__sum_of(&sum, 0.25);
    khub__sum_of(&sum, -1e16);
    ck_assert_double_eq(khub__sum_value(&sum), 250);
    khub__sum_of(&sum, INFINITY);
    ck_assert(isinf(khub__sum_value(&sum)));
}
END_TEST

START_TEST(errors_in_ulp)
{
    static const struct {
        khub_dtype dtype;
        double got, exact, scale, ulp;
        int unlike;
    } table[] = {
        {{KHUB_DTYPE_FLOAT, 32, 1}, 1, 1, 1, 0, 0},
        {{KHUB_DTYPE_FLOAT, 32, 1}, 1 + 0x1p-23, 1, 1, 1, 0},
        {{KHUB_DTYPE_FLOAT, 32, 1}, 1, 1 + 0x1p-24, 1, 0.5, 0},
        {{KHUB_DTYPE_FLOAT, 32, 1}, 1 + 0x1p-23, 1, 4, 0.25, 0}, /* as a sum of terms of size 4 */
        {{KHUB_DTYPE_FLOAT, 32, 1}, 1 + 0x1p-23, 1, 0.25, 1, 0}, /* never below the result's own size */
        {{KHUB_DTYPE_FLOAT, 32, 1}, 0, 0x1p-149, 0, 1, 0},       /* subnormal */
        {{KHUB_DTYPE_FLOAT, 32, 1}, 0, 0x1p-126, 0, 8388608, 0}, /* all of them lost */
        {{KHUB_DTYPE_FLOAT, 32, 1}, -0.0, 0, 0, 0, 0},
        {{KHUB_DTYPE_FLOAT, 32, 1}, INFINITY, 0x1.fffffep127, 0, 1, 0}, /* the number after the largest */
        {{KHUB_DTYPE_FLOAT, 32, 1}, INFINITY, 1e300, 0, 0, 0},
        {{KHUB_DTYPE_FLOAT, 32, 1}, INFINITY, 1, 0, 0, 1},
        {{KHUB_DTYPE_FLOAT, 32, 1}, INFINITY, -INFINITY, 0, 0, 1},
        {{KHUB_DTYPE_FLOAT, 32, 1}, 0, INFINITY, 0, 0, 1},
        {{KHUB_DTYPE_FLOAT, 32, 1}, NAN, 1, 1, 0, 1},
        {{KHUB_DTYPE_FLOAT, 32, 1}, 1, NAN, 1, 0, 1},
        {{KHUB_DTYPE_FLOAT, 32, 1}, NAN, NAN, NAN, 0, 0},
        {{KHUB_DTYPE_BFLOAT, 16, 1}, 1 + 0x1p-7, 1, 1, 1, 0},
        {{KHUB_DTYPE_BFLOAT, 16, 1}, 256, 257, 257, 0.5, 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_accuracy a = {0};
        uint64_t got = khub__element_bits(khub__format_of(table[i].dtype), table[i].got);
        khub__results r = {table[i].dtype, &got, &table[i].exact, &table[i].scale, 1, "case", "out"};
        khub__accuracy_add(&a, &r);
        ck_assert_msg(fabs(a.worst - table[i].ulp) <= 1e-12 * table[i].ulp, "%zu: %.17g ULP, %.17g expected",
                      i, a.worst, table[i].ulp);
        ck_assert_uint_eq(a.unlike, (uint64_t)table[i].unlike);
        ck_assert_uint_eq(a.elements, !table[i].unlike && !isnan(table[i].exact));
    }
}
END_TEST

START_TEST(the_first_of_the_worst_is_told)
{
    const float got[] = {1, 1.5f, 1.5f, 2};
    const double exact[] = {1, 1.25, 1.25, 2.5}, scale[] = {1, 1, 1, 2};
    khub_accuracy a = {0}, b = {0};
    khub__results r = {float32, got, exact, scale, 4, "case", "out"};
    khub__accuracy_add(&a, &r);
    ck_assert_uint_eq(a.index, 1);
    ck_assert_double_eq(a.worst, 0x1p21);
    ck_assert_double_eq(a.absolute, 0.5);
    ck_assert_double_eq(a.relative, 0.2); /* 0.25 / 1.25, and 0.5 / 2.5 */
    r.count = 1, r.name = "other";
    khub__accuracy_add(&b, &r);
    khub__accuracy_merge(&b, &a);
    khub__accuracy_finish(&b);
    ck_assert_uint_eq(b.elements, 5);
    ck_assert_double_eq(b.mean, 3 * 0x1p21 / 5);
    ck_assert_str_eq(b.name, "case");
}
END_TEST

START_TEST(bits_are_the_same_but_for_nans)
{
    const uint32_t a[] = {1, 0x7fc00000, 0, 5}, b[] = {1, 0xffc00001, 0x80000000, 5};
    ck_assert_int_eq(khub__first_different(float32, a, b, 4), 2);
    ck_assert_int_eq(khub__first_different(float32, a, b, 2), -1);
    ck_assert_int_eq(khub__count_same(float32, a, b, 4), 3);
    const uint16_t c[] = {0x7f81, 0x7f80}, d[] = {0xff81, 0xff80};
    ck_assert_int_eq(khub__first_different(bfloat16, c, d, 2), 1);
}
END_TEST

/* What children do, by number; `shared` counts. */
static struct shared {
    volatile uint64_t beat;
    int way, ran;
    khub__fault fault;
    khub__guarded buffer;
} * shared;

static void be(void *user)
{
    struct shared *s = user;
    s->ran++;
    s->beat++;
    if (s->way == 1) raise(SIGSEGV);
    if (s->way == 2) abort();
    if (s->way == 3) exit(0);
    if (s->way == 4) _exit(3);
    while (s->way == 5)
        pause();
    if (s->way == 9) _exit(0xd7);
    if (s->way == 10 && fork() != 0) _exit(0);       /* as daemon() does: what goes on is another process */
    if ((s->way == 7 || s->way == 8) && fork() == 0) /* has the end of the pipe */
        pause();
    for (int file = 3; s->way == 8 && file < 1024; file++)
        close(file);
    while (s->way == 8)
        pause();
    if (s->way == 6) {
        khub__watch(&s->fault, &s->buffer, 1);
        volatile char *wild = s->buffer.data + 8;
        *wild = 1;
    }
    s->beat++;
}

START_TEST(every_way_to_end)
{
    static const struct {
        khub__ending how;
        int number;
        const char *words;
    } ends[] = {{KHUB__RETURNED, 0, "it returned"},
                {KHUB__SIGNALED, SIGSEGV, "SIGSEGV (Segmentation fault)"},
                {KHUB__SIGNALED, SIGABRT, "SIGABRT (Aborted)"},
                {KHUB__LEFT, 0, "it called exit(0)"},
                {KHUB__LEFT, 3, "it called exit(3)"},
                {KHUB__HUNG, 0, "it doesn't come back"},
                {KHUB__SIGNALED, SIGSEGV, "SIGSEGV (Segmentation fault)"},
                {KHUB__RETURNED, 0, "it returned"},        /* and left a process behind */
                {KHUB__HUNG, 0, "it doesn't come back"},   /* without a file */
                {KHUB__LEFT, 0xd7, "it called exit(215)"}, /* which was "done" once */
                {KHUB__LEFT, 0, "it called exit(0)"}};
    const int64_t shape[] = {2};
    khub_error err = {0};
    shared = khub__shared_new(sizeof(*shared));
    ck_assert_ptr_nonnull(shared);
    ck_khub_ok(khub__guarded_new(&shared->buffer, float32, 1, shape, KHUB__AT_END, 1, &err), &err);
    for (int way = 0; way < (int)(sizeof(ends) / sizeof(*ends)); way++) {
        khub__end end;
        char words[100];
        shared->way = way;
        shared->beat = 0;
        ck_khub_ok(khub__contain(&end, be, shared, &shared->beat, 200, &err), &err);
        ck_assert_int_eq(end.how, ends[way].how);
        ck_assert_int_eq(end.number, ends[way].number);
        ck_assert_str_eq(khub__end_words(&end, words), ends[way].words);
        ck_assert_int_eq(shared->ran, way + 1);
    }
    ck_assert(shared->fault.hit && shared->fault.buffer == 0 && shared->fault.at == 8);
    ck_assert_int_ne(shared->fault.is_write, 0);
    khub__guarded_free(&shared->buffer);
    khub__shared_free(shared, sizeof(*shared));
}
END_TEST

START_TEST(a_function_of_ones_own)
{
    khub_compare_options options;
    khub_compare_report *report;
    khub_error err = {0};
    khub_function standard;
    const khub_slot_axis *axes;
    KHUB_INIT(&options);
    options.case_name = "float32/normal/9x384/bias";
    ck_khub_ok(khub_standard(&standard, "LayerNorm", &err), &err);
    size_t count = khub_standard_axes("LayerNorm", &axes);
    for (options.same_process = 0; options.same_process < 2; options.same_process++) {
        ck_khub_ok(khub_compare_function(&report, "LayerNorm", standard, axes, count, &options, &err), &err);
        ck_assert_uint_eq(khub_compare_count(report), 1);
        ck_assert_ptr_null(khub_compare_at(report, 1));
        const khub_compare_layer *layer = khub_compare_at(report, 0);
        ck_assert_str_eq(layer->error, "");
        ck_assert_int_eq(layer->broken, 0);
        for (int i = 0; i < KHUB_CHECKS; i++)
            ck_assert_int_eq(layer->findings[i].verdict,
                             i == KHUB_CHECK_TOLERANCE ? KHUB_VERDICT_NONE : KHUB_VERDICT_YES);
        ck_assert(layer->worst.worst > 0.4 &&
                  layer->worst.worst < 0.501); /* computed in double, rounded once */
        ck_assert_uint_eq(layer->findings[KHUB_CHECK_SLICES].tried, 3);
        khub_compare_free(report);
    }
    options.device = "cuda:0";
    ck_khub_fails(khub_compare_function(&report, "LayerNorm", standard, NULL, 0, &options, &err), &err,
                  KHUB_E_INVAL, "called on the host alone");
    options.device = NULL;
    ck_khub_fails(khub_compare_function(&report, "Nonsense", standard, NULL, 0, &options, &err), &err,
                  KHUB_E_INVAL, "Nonsense");
    ck_assert_ptr_null(report);
    khub_compare_free(NULL);
}
END_TEST

/* ReLU of two axes, without any memory of its own. */
static int relu(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    const khub_tensor *out = khub_value_tensor(&args[0]), *x = khub_value_tensor(&args[1]);
    (void)self, (void)n, (void)result;
    for (int64_t i = 0; i < x->shape[0] * x->shape[1]; i++) {
        int64_t row = i / x->shape[1], column = i % x->shape[1];
        float f = ((float *)x->data)[row * (x->strides ? x->strides[0] : x->shape[1]) + column];
        ((float *)out->data)[row * (out->strides ? out->strides[0] : out->shape[1]) + column] = f < 0 ? 0 : f;
    }
    return 0;
}

static int try_relu(void *user, khub_error *err)
{
    khub__case c;
    int rc = khub__case_parse(&c, khub__layer_find("ReLU"), "float32/normal/3x5", 0, err);
    return rc == KHUB_OK ? khub__try(user, &c, err) : rc;
}

START_TEST(without_memory)
{
    khub_error err = {0};
    khub__progress progress = {0};
    khub_compare_layer *layer = calloc(1, sizeof(*layer));
    const khub_slot_axis axis = {"rows", {{0, 0, 1, 1}, {1, 0, 1, 1}}, 2, 0};
    khub__tester tester = {.target = {.name = "relu",
                                      .layer = khub__layer_find("ReLU"),
                                      .function = {relu, NULL},
                                      .axes = &axis,
                                      .axis_count = 1},
                           .layer = layer,
                           .progress = &progress};
    ck_khub_ok(khub__threads_new(&tester.threads, 2, &err), &err);
    fm_fail_each(try_relu, &tester);
    for (int i = 0; i < KHUB_CHECK_TOLERANCE; i++)
        ck_assert_msg(layer->findings[i].verdict == KHUB_VERDICT_YES, "%s: %s",
                      khub_check_name((khub_check)i), layer->findings[i].words);
    khub__threads_free(tester.threads);
    free(layer);
}
END_TEST

START_TEST(where_a_report_goes_on)
{
    khub_compare_report *r = khub__shared_new(sizeof(*r));
    khub_error err = {0};
    const khub__end crash = {KHUB__SIGNALED, SIGSEGV}, hang = {KHUB__HUNG, 0};
    ck_assert_ptr_nonnull(r);
    ck_khub_fails(khub__report_ended(r, &crash, &err), &err, KHUB_E_LOAD, "SIGSEGV");
    r->count = 2, r->listed = 1;
    strcpy(r->progress.name, "float32/normal/7");
    r->progress.at = 5, r->progress.stage = KHUB__STAGE_BASE;
    ck_khub_ok(khub__report_ended(r, &crash, &err), &err); /* the next case */
    ck_assert(r->progress.at == 6 && r->progress.layer == 0 && r->progress.left_out == 0);
    r->progress.stage = KHUB__STAGE_SLICES;
    ck_khub_ok(khub__report_ended(r, &crash, &err), &err); /* the same case, what comes after slices */
    ck_assert(r->progress.at == 6 && r->progress.from == KHUB__STAGE_SLICES + 1 &&
              r->progress.left_out == 1u << KHUB__STAGE_SLICES);
    ck_khub_ok(khub__report_ended(r, &hang, &err), &err); /* the next layer */
    ck_assert(r->progress.at == 0 && r->progress.layer == 1 && r->progress.left_out == 0 &&
              r->progress.from == 0);
    ck_assert(r->layers[0].broken && r->layers[0].findings[KHUB_CHECK_RETURNS].failed == 3 &&
              !r->layers[1].broken);
    for (int i = 0; i < 8; i++)
        ck_khub_ok(khub__report_ended(r, &crash, &err), &err);
    ck_assert_uint_eq(r->progress.layer, 2); /* one that ends again and again is given up */
    khub_compare_free(r);
}
END_TEST

UNIT("compare", exact_results, what_is_normalized_is_the_rounded_sum, long_sums_lose_nothing, errors_in_ulp,
     the_first_of_the_worst_is_told, bits_are_the_same_but_for_nans, every_way_to_end, a_function_of_ones_own,
     without_memory, where_a_report_goes_on)
