/* Shapes by name, the calls that are timed, and what khub_bench says of them. */
#include "failing_memory.h"
#include "unit.h"

#include "measure/calls.h"
#include "measure/fill.h"
#include "measure/shapes.h"

#include <khub/bench.h>

#include <math.h>

static const khub_dtype f32 = {KHUB_DTYPE_FLOAT, 32, 1};

static khub__case shape(const char *layer, const char *text)
{
    khub__case c;
    khub_error err = {0};
    ck_khub_ok(khub__shape_parse(&c, khub__layer_find(layer), f32, text, &err), &err);
    return c;
}

START_TEST(a_shape_names_extents_and_switches)
{
    static const struct {
        const char *layer, *given, *full;
    } table[] = {
        {"Linear", "m=3,n=17,k=33", "m=3,n=17,k=33"},
        {"Linear", "k=33,m=3,n=17,bias=0", "m=3,n=17,k=33,bias=0"},
        {"Linear", "m=3,n=17,k=33,bias=1", "m=3,n=17,k=33"}, /* as it is anyway */
        {"Linear", "m=5", "m=5,n=384,k=384"},                /* the rest from the first of the list */
        {"Linear", "", "m=252,n=384,k=384"},
        {"AddRMSNorm", "m=1,n=2,sum=0", "m=1,n=2,sum=0"},
        {"Attention", "b=1,t=2,s=3,h=4,g=2,d=8", "b=1,t=2,s=3,h=4,g=2,d=8"},
        {"Attention", "b=1,t=2,s=3,h=4,g=2,d=8,causal=1,lengths=1",
         "b=1,t=2,s=3,h=4,g=2,d=8,lengths=1,causal=1"},
        {"Attention", "b=1,t=2,s=3,h=4,g=2,d=8,window=77", "b=1,t=2,s=3,h=4,g=2,d=8,window=77"},
        {"Attention", "b=1,t=2,s=3,h=4,g=2,d=8,window=0", "b=1,t=2,s=3,h=4,g=2,d=8"},
        {"rotary_pos_emb", "t=2,h=3,g=1,d=4", "t=2,h=3,g=1,d=4"},
        {"SiluAndMul", "m=0,n=5", "m=0,n=5"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char text[KHUB__SHAPE_TEXT];
        khub__case c = shape(table[i].layer, table[i].given);
        ck_assert_str_eq(khub__shape_text_of(text, &c), table[i].full);
    }
    khub__case gated = shape("SiluAndMul", "m=3,n=5"),
               grouped = shape("Attention", "b=1,t=2,s=3,h=4,g=2,d=8,lengths=1");
    ck_assert_int_eq(gated.args[0].shape[1], 5);
    ck_assert_int_eq(gated.args[1].shape[1], 10);
    ck_assert_int_eq(grouped.args[1].shape[2], 4);
    ck_assert_int_eq(grouped.args[2].shape[2], 2);
    ck_assert(!grouped.args[4].is_none);
    ck_assert_int_eq(grouped.args[4].dtype.code, KHUB_DTYPE_INT);
}
END_TEST

START_TEST(a_shape_that_is_none_says_why)
{
    static const struct {
        const char *layer, *text, *words;
    } table[] = {
        {"Linear", "m", "NAME=NUMBER"},
        {"Linear", "m=", "NAME=NUMBER"},
        {"Linear", "=3", "NAME=NUMBER"},
        {"Linear", "m=-3", "NAME=NUMBER"},
        {"Linear", "m=3x", "NAME=NUMBER"},
        {"Linear", "m=3,", "NAME=NUMBER"},
        {"Linear", "m=3,,n=2", "as in m=252,n=384,k=384"},
        {"Linear", "m=3,q=2", "Linear has no \"q\"; there are m, n, k, bias (0 or 1)"},
        {"Linear", "mn=3", "no \"mn\""},
        {"Linear", "x=1", "no \"x\""}, /* a tensor that is always there */
        {"Linear", "bias=2", "bias is 0 or 1"},
        {"GeLU", "bias=0", "there are m, n"},
        {"RMSNorm", "m=3,n=0", "RMSNorm"},
        {"Attention", "h=4,g=3", "multiple"},
        {"rotary_pos_emb", "d=3", "even"},
        {"Linear", "m=99999999999999999999", "Linear"},
        {"Linear", "m=65536,n=65536", "out would have more than 2^31 elements"},
        {"Linear", "k=2147483648,n=2", "2^31"},
        {"SiluAndMul", "m=1,n=2147483648", "x would have more"},
    };
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__case c;
        ck_khub_fails(khub__shape_parse(&c, khub__layer_find(table[i].layer), f32, table[i].text, &err), &err,
                      KHUB_E_INVAL, table[i].words);
    }
}
END_TEST

START_TEST(every_layer_has_shapes_that_are_some)
{
    for (size_t i = 0; i < KHUB__LAYERS; i++) {
        const char *layer = khub__layer_at(i)->name;
        size_t count = 0;
        for (; khub_bench_shape(layer, count); count++) {
            char text[KHUB__SHAPE_TEXT];
            khub__case c = shape(layer, khub_bench_shape(layer, count));
            ck_assert_str_eq(khub__shape_text_of(text, &c), khub_bench_shape(layer, count));
        }
        ck_assert_uint_ge(count, 3);
        ck_assert_ptr_null(khub_bench_shape(layer, 1000));
    }
    ck_assert_ptr_null(khub_bench_shape("Convolution", 0));
    ck_assert_ptr_null(khub_bench_shape(NULL, 0));
}
END_TEST

/* What a value of each float type is as a double: sign, exponent and mantissa by hand. */
static double value_of(khub_dtype dtype, const char *at)
{
    uint64_t bits = 0;
    memcpy(&bits, at, dtype.bits / 8u);
    int exponent_bits = dtype.bits == 64 ? 11 : dtype.bits == 16 && dtype.code == KHUB_DTYPE_FLOAT ? 5 : 8;
    int mantissa_bits = dtype.bits - 1 - exponent_bits;
    uint64_t mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
    int exponent = (int)(bits >> mantissa_bits & ((1u << exponent_bits) - 1)),
        bias = (1 << (exponent_bits - 1)) - 1;
    double sign = bits >> (dtype.bits - 1) ? -1 : 1;
    if (exponent == 0) return sign * ldexp((double)mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp((double)(mantissa + (UINT64_C(1) << mantissa_bits)), exponent - bias - mantissa_bits);
}

START_TEST(filled_tensors_are_spread_over_one_and_minus_one)
{
    enum { COUNT = 10007 };
    static char data[8 * COUNT + 8];
    static const khub_dtype dtypes[] = {{KHUB_DTYPE_FLOAT, 32, 1},
                                        {KHUB_DTYPE_BFLOAT, 16, 1},
                                        {KHUB_DTYPE_FLOAT, 16, 1},
                                        {KHUB_DTYPE_FLOAT, 64, 1}};
    const int64_t extents[] = {COUNT};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
        size_t size = dtypes[i].bits / 8u;
        double sum = 0, least = 1, most = -1;
        memset(data, 7, sizeof(data));
        khub_tensor t = khub_tensor_over(data, dtypes[i], 1, extents);
        khub__fill(&t);
        for (size_t k = 0; k < COUNT; k++) {
            double x = value_of(dtypes[i], data + k * size);
            ck_assert(fabs(x) < 1);
            sum += x, least = fmin(least, x), most = fmax(most, x);
        }
        ck_assert(fabs(sum) < 0.05 * COUNT && least < -0.9 && most > 0.9);
        for (size_t k = COUNT * size; k < COUNT * size + 8; k++)
            ck_assert_int_eq(data[k], 7); /* not beyond its end */
    }
    khub_tensor ints = khub_tensor_over(data, khub_dtype_of(KHUB_DTYPE_INT, 32), 1, extents);
    khub__fill(&ints);
    for (size_t k = 0; k < COUNT; k++) {
        int32_t own;
        memcpy(&own, data + 4 * k, 4);
        ck_assert(own == 0 || own == 1);
    }
}
END_TEST

/* The sets of a case: as many as fill what is asked for, each called in turn. */
START_TEST(cold_calls_go_round_many_arguments)
{
    khub_error err = {0};
    khub__threads *pool;
    khub__timed_calls calls;
    khub__case c = shape("GeLU", "m=4,n=64"); /* 2 KiB */
    ck_khub_ok(khub__threads_new(&pool, 1, &err), &err);
    khub_kernel *kernel;
    khub__calls_options how = {.standard = 1, .fill = 9 * 2048, .pool = pool};
    ck_khub_ok(khub_get(&kernel, "khub/activation", NULL, &err), &err);
    ck_khub_ok(khub_kernel_layer(&how.spec, kernel, "GeLU", &err), &err);
    how.kernel = kernel;
    ck_khub_ok(khub__timed_calls_new(&calls, &c, &how, &err), &err);
    ck_assert_uint_eq(calls.count, 10);
    ck_assert_double_eq(calls.work.bytes, 2048);
    ck_khub_ok(khub__timed_calls_run(&calls.kernel, 13, &err), &err);
    ck_assert_uint_eq(calls.kernel.next, 3);
    ck_assert_uint_eq(calls.standard.next, 0);
    float *out = calls.sets[9]->arrays[0].tensor.data, *x = calls.sets[9]->arrays[1].tensor.data;
    ck_assert_double_eq_tol((double)out[5], 0.5 * (double)x[5] * (1 + erf((double)x[5] / sqrt(2))), 1e-6);
    khub__timed_calls_free(&calls);
    how.fill = 0;
    ck_khub_ok(khub__timed_calls_new(&calls, &c, &how, &err), &err);
    ck_assert_uint_eq(calls.count, 1);
    khub__timed_calls_free(&calls);
    c = shape("ReLU", "m=4,n=64");
    khub_layer_spec missing = {.layer = "ReLU", .function = "rely"};
    how.spec = &missing;
    ck_khub_fails(khub__timed_calls_new(&calls, &c, &how, &err), &err, KHUB_E_NOTFOUND, "rely");
    khub__timed_calls_free(&calls);
    khub_kernel_close(kernel);
    khub__threads_free(pool);
}
END_TEST

static int stop_at_second(void *user, size_t done, size_t count)
{
    *(size_t *)user = count;
    return done == 1;
}

START_TEST(a_bench_can_be_stopped)
{
    khub_error err = {0};
    khub_bench_options options;
    size_t count = 0;
    const char *shapes[] = {"m=1,n=4", "m=2,n=4", NULL};
    KHUB_INIT(&options);
    options.shapes = shapes;
    options.seconds = 0.01;
    options.progress = stop_at_second;
    options.user = &count;
    khub_bench *bench = (khub_bench *)&err;
    ck_khub_fails(khub_bench_layer(&bench, "khub/activation", "GeLU", &options, &err), &err, KHUB_E_CANCELED,
                  "khub/activation");
    ck_assert_ptr_null(bench);
    ck_assert_uint_eq(count, 4);
}
END_TEST

static int stop_at_once(void *user, size_t done, size_t count)
{
    (void)user, (void)done, (void)count;
    return 1;
}

/* All that comes before the first measuring. */
static int plan_all(void *user, khub_error *err)
{
    khub_bench *bench = NULL;
    khub_bench_options options;
    KHUB_INIT(&options);
    options.progress = stop_at_once;
    int rc = khub_bench_layer(&bench, user, NULL, &options, err);
    khub_bench_free(bench);
    return rc == KHUB_E_CANCELED ? KHUB_OK : rc;
}

/* A weight that is prepared, twice, and the standard function beside it. */
static int make_calls(void *user, khub_error *err)
{
    khub__timed_calls calls;
    khub__case c = shape("Linear", "m=3,n=16,k=8");
    const khub__calls_options *how = user;
    int rc = khub__timed_calls_new(&calls, &c, how, err);
    if (rc == KHUB_OK) rc = khub__timed_calls_run(&calls.kernel, 3, err);
    khub__timed_calls_free(&calls);
    return rc;
}

START_TEST(every_allocation_can_fail)
{
    khub_error err = {0};
    khub__threads *pool;
    fm_fail_each_own(plan_all, (void *)(uintptr_t) "khub/linear");
    khub__calls_options how = {.standard = 1, .fill = 1024};
    ck_khub_ok(khub__threads_new(&pool, 1, &err), &err);
    ck_khub_ok(khub_get(&how.kernel, "khub/linear", NULL, &err), &err);
    ck_khub_ok(khub_kernel_layer(&how.spec, how.kernel, "Linear", &err), &err);
    how.pool = pool;
    fm_fail_each_own(make_calls, &how);
    khub_kernel_close(how.kernel);
    khub__threads_free(pool);
}
END_TEST

START_TEST(a_bench_is_asked_for_something)
{
    khub_error err = {0};
    khub_bench *bench = (khub_bench *)&err;
    khub_bench_options options;
    KHUB_INIT(&options);
    ck_khub_fails(khub_bench_layer(&bench, NULL, NULL, NULL, &err), &err, KHUB_E_INVAL, "khub_bench_layer");
    ck_assert_ptr_null(bench);
    ck_khub_fails(khub_bench_function(&bench, NULL, "gelu", NULL, 0, NULL, &err), &err, KHUB_E_INVAL,
                  "khub_bench_function");
    ck_khub_fails(khub_bench_layer(&bench, "khub/norm", "Convolution", NULL, &err), &err, KHUB_E_NOTFOUND,
                  "Convolution");
    ck_khub_fails(khub_bench_layer(&bench, "khub/probably", NULL, NULL, &err), &err, KHUB_E_NOTFOUND,
                  "khub/probably");
    options.seconds = -1;
    ck_khub_fails(khub_bench_layer(&bench, "khub/norm", NULL, &options, &err), &err, KHUB_E_INVAL, "seconds");
    options.seconds = NAN;
    ck_khub_fails(khub_bench_layer(&bench, "khub/norm", NULL, &options, &err), &err, KHUB_E_INVAL, "seconds");
    options.seconds = 0;
    options.function = "gelu";
    ck_khub_fails(khub_bench_layer(&bench, "khub/activation", NULL, &options, &err), &err, KHUB_E_INVAL,
                  "layer");
    ck_khub_fails(khub_bench_fill(NULL, &err), &err, KHUB_E_INVAL, "khub_bench_fill");
    ck_assert_ptr_null(bench);
    khub_bench_free(NULL);
}
END_TEST

UNIT("bench", a_shape_names_extents_and_switches, a_shape_that_is_none_says_why,
     every_layer_has_shapes_that_are_some, filled_tensors_are_spread_over_one_and_minus_one,
     cold_calls_go_round_many_arguments, a_bench_can_be_stopped, every_allocation_can_fail,
     a_bench_is_asked_for_something)
