/* Every layer cut along the axes that its functions declare: the bits of the call as a whole, for the
 * standard functions and the built-in kernels, whatever the number of axes and of threads. */
#include "unit.h"

#include "layer/slot.h"
#include "model/cut.h"
#include "ops/functions.h"

#include <khub/khub.h>
#include <khub/standard.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 60000, N = 36 };
static const khub_slot_options float32 = {sizeof(float32), {KHUB_DTYPE_FLOAT, 32, 1}, NULL, NULL, 0};

/* The arguments of one call. */
struct call {
    const char *layer;
    khub_tensor tensor[KHUB__MAX_ARGS];
    int64_t shape[KHUB__MAX_ARGS][4];
    float *data[KHUB__MAX_ARGS];
    khub_value args[KHUB__MAX_ARGS];
    int32_t n;
};

static void add(struct call *c, int32_t ndim, const int64_t *shape)
{
    int32_t i = c->n++;
    memcpy(c->shape[i], shape, (size_t)ndim * sizeof(*shape));
    c->data[i] = calloc(ROOM, sizeof(float));
    for (size_t k = 0; k < ROOM; k++)
        c->data[i][k] = (float)((k * 7919 + (size_t)i * 31) % 1000) / 250 - 2;
    c->tensor[i] = khub_tensor_f32(c->data[i], ndim, c->shape[i]);
    ck_assert_int_le(khub_tensor_count(&c->tensor[i]), ROOM);
    c->args[i] = khub_arg_tensor(&c->tensor[i]);
}

/* Arguments of (…, N), `ndim` axes. */
static void make_rows(struct call *c, int32_t ndim)
{
    int64_t shape[3] = {5, 6, N}, *own = shape + 3 - ndim, wide[3];
    const char *name;
    int gated = strstr(c->layer, "AndMul") != NULL;
    for (size_t i = 0; (name = khub_layer_arg(c->layer, i)) != NULL; i++) {
        memcpy(wide, own, (size_t)ndim * sizeof(*wide));
        if (gated && !strcmp(name, "x")) wide[ndim - 1] *= 2;
        if (!strcmp(name, "eps"))
            c->args[c->n++] = khub_arg_float(1e-5);
        else if (!strcmp(name, "weight") || !strcmp(name, "bias"))
            add(c, 1, (int64_t[]){N});
        else
            add(c, ndim, wide);
    }
}

static void make_linear(struct call *c)
{
    enum { M = 9, OUTPUTS = 3 * KHUB__LINEAR_BLOCK + 7 };
    add(c, 2, (int64_t[]){M, OUTPUTS});
    add(c, 2, (int64_t[]){M, N});
    if (!strcmp(c->layer, "RMSNormLinear")) {
        add(c, 1, (int64_t[]){N});
        c->args[c->n++] = khub_arg_float(1e-5);
    }
    add(c, 2, (int64_t[]){OUTPUTS, N});
    add(c, 1, (int64_t[]){OUTPUTS});
    if (!strcmp(c->layer, "LinearAdd")) add(c, 2, (int64_t[]){M, OUTPUTS});
}

static void make_attention(struct call *c, int64_t batch, int64_t key_heads)
{
    const int64_t q[4] = {batch, 5, 4, 8}, k[4] = {batch, 7, key_heads, 8};
    add(c, 4, q), add(c, 4, q), add(c, 4, k), add(c, 4, k);
    c->args[c->n++] = khub_arg_none();
    c->args[c->n++] = khub_arg_float(0.3);
    c->args[c->n++] = khub_arg_bool(1);
    c->args[c->n++] = khub_arg_int(3);
}

static void make_rotary(struct call *c)
{
    for (int i = 0; i < 4; i++)
        add(c, 3, (int64_t[]){6, i % 2 ? 2 : 4, 8});
    add(c, 2, (int64_t[]){6, 4}), add(c, 2, (int64_t[]){6, 4});
}

static void unmake(struct call *c)
{
    for (int32_t i = 0; i < c->n; i++)
        free(c->data[i]);
    *c = (struct call){0};
}

/* A slot for the layer: with its standard function, or with the built-in kernel. */
static khub_slot *slot_for(khub_layers **layers, const struct call *c, int kernel)
{
    khub_error err = {0};
    khub_slot *slot;
    khub_function standard;
    const khub_slot_axis *axes;
    ck_khub_ok(khub_layers_new(layers, &err), &err);
    ck_khub_ok(khub_standard(&standard, c->layer, &err), &err);
    ck_khub_ok(khub_layers_add(*layers, c->layer, c->layer, standard, &float32, &slot, &err), &err);
    size_t count = khub_standard_axes(c->layer, &axes);
    ck_assert_uint_gt(count, 0);
    ck_khub_ok(khub_slot_slice(slot, axes, count, &err), &err);
    if (!kernel) return slot;
    int weight = strcmp(c->layer, "RMSNormLinear") ? 2 : 4;
    if (strstr(c->layer, "Linear"))
        ck_khub_ok(khub_slot_bind(slot, "weight", &c->tensor[weight], &err), &err);
    khub_report *report;
    ck_khub_ok(khub_kernelize(*layers, NULL, &report, &err), &err);
    ck_assert_msg(khub_report_filled(report) == 1, "%s", khub_report_at(report, 0)->reason);
    khub_report_free(report);
    return slot;
}

/* Runs the call as a whole and in pieces; how many those were. */
static size_t compare(const struct call *c, khub_slot *slot, unsigned threads)
{
    khub_error err = {0};
    khub__threads *pool;
    khub__calls list = {0};
    float *whole[2];
    memset(c->data[0], 0xff, ROOM * sizeof(float));
    ck_khub_ok(khub_slot_call(slot, c->args, c->n, &err), &err);
    for (int i = 0; i < 2; i++) { /* no layer writes more than its first two arguments */
        whole[i] = malloc(ROOM * sizeof(float));
        memcpy(whole[i], c->data[i], ROOM * sizeof(float));
    }
    memset(c->data[0], 0xff, ROOM * sizeof(float));
    ck_khub_ok(khub__threads_new(&pool, threads, &err), &err);
    ck_khub_ok(khub__calls_add(&list, slot, c->args, c->n, 1e9, &err), &err); /* as if worth every cut */
    ck_khub_ok(khub__calls_run(&list, pool, &err), &err);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(memcmp(whole[i], c->data[i], ROOM * sizeof(float)) == 0,
                      "%s, %d axes, %u threads: argument %d", c->layer, (int)c->tensor[0].ndim, threads, i);
        free(whole[i]);
    }
    size_t pieces = list.piece_count;
    khub__calls_free(&list);
    khub__threads_free(pool);
    return pieces;
}

/* With 2, 3 and 7 threads; whether it was cut must be as expected. */
static void check(struct call *c, int cut)
{
    for (int kernel = 0; kernel <= 1; kernel++) {
        khub_layers *layers;
        khub_slot *slot = slot_for(&layers, c, kernel);
        ck_assert_uint_eq(compare(c, slot, 1), 1);
        for (unsigned threads = 2; threads <= 7; threads += threads == 3 ? 4 : 1)
            ck_assert_msg((compare(c, slot, threads) > 1) == cut, "%s (%s), %d axes: %s", c->layer,
                          kernel ? "kernel" : "standard", (int)c->tensor[0].ndim, cut ? "whole" : "cut");
        khub_layers_free(layers);
    }
    unmake(c);
}

START_TEST(rows)
{
    static const char *const over_the_last[] = {"RMSNorm",    "AddRMSNorm", "LayerNorm", "AddLayerNorm",
                                                "SiluAndMul", "GeluAndMul", "Softmax"};
    static const char *const elementwise[] = {"GeLU", "GeluTanh", "SiLU", "QuickGELU", "ReLU"};
    for (int32_t ndim = 1; ndim <= 3; ndim++) {
        for (size_t i = 0; i < sizeof(over_the_last) / sizeof(*over_the_last); i++) {
            struct call c = {.layer = over_the_last[i]};
            make_rows(&c, ndim);
            check(&c, ndim > 1); /* the only axis is the one that is computed over */
        }
        for (size_t i = 0; i < sizeof(elementwise) / sizeof(*elementwise); i++) {
            struct call c = {.layer = elementwise[i]};
            make_rows(&c, ndim);
            check(&c, 1);
        }
    }
}
END_TEST

START_TEST(matrices)
{
    static const char *const linears[] = {"Linear",     "LinearGeLU", "LinearGeluTanh", "LinearSiLU",
                                          "LinearReLU", "LinearAdd",  "RMSNormLinear"};
    for (size_t i = 0; i < sizeof(linears) / sizeof(*linears); i++) {
        struct call c = {.layer = linears[i]};
        make_linear(&c);
        check(&c, 1);
    }
}
END_TEST

START_TEST(heads)
{
    struct call c = {.layer = "rotary_pos_emb"};
    make_rotary(&c);
    check(&c, 1);
    /* batch, heads of the keys, cut: two of the queries' four for each, or all for the only one */
    static const int64_t table[][3] = {{1, 4, 1}, {3, 4, 1}, {3, 2, 1}, {1, 2, 1}, {1, 1, 0}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        c = (struct call){.layer = "Attention"};
        make_attention(&c, table[i][0], table[i][1]);
        check(&c, (int)table[i][2]);
    }
}
END_TEST

START_TEST(slices_that_a_layer_cant_have)
{
    khub_error err = {0};
    khub_layers *layers;
    khub_slot *slot;
    const khub_slot_axis *axes;
    khub_slot_axis axis = {"rows", {{0, 0, 1, 0}, {2, 0, 1, 0}}, 2, 0};
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "a", "GeLU", (khub_function){0}, &float32, &slot, &err), &err);
    ck_khub_fails(khub_slot_slice(slot, &axis, 1, &err), &err, KHUB_E_INVAL, "\"rows\" has a part that GeLU");
    ck_khub_fails(khub_slot_slice(slot, &axis, 5, &err), &err, KHUB_E_INVAL, "5 axes");
    ck_assert_uint_eq(khub_filling_axes(khub_slot_filling(slot), &axes), 0);
    ck_assert_uint_eq(khub_standard_axes("Convolution", &axes), 0);
    khub_layers_free(layers);
}
END_TEST

/* A BLAS that the program brought along may have threads of its own; cut calls would multiply them. */
START_TEST(not_cut_where_the_blas_has_threads)
{
    char path[4096];
    const khub_slot_axis *axes;
    snprintf(path, sizeof(path), "%s/tests/fake/elsewhere/libblas.so.3", getenv("KHUB_BINARY"));
    void *blas = dlopen(path, RTLD_NOW);
    ck_assert_msg(blas != NULL, "%s", dlerror());
    void (*set_threads)(int);
    int (*told)(void);
    *(void **)&set_threads = dlsym(blas, "openblas_set_num_threads");
    *(void **)&told = dlsym(blas, "fake_blas_told");
    ck_assert_uint_eq(khub_standard_axes("Linear", &axes), 0);
    ck_assert_uint_eq(khub_standard_axes("Attention", &axes), 0);
    ck_assert_uint_eq(khub_standard_axes("LayerNorm", &axes), 1);
    ck_assert_int_eq(told(), 0); /* its threads are the program's */
    set_threads(1);
    ck_assert_uint_eq(khub_standard_axes("Linear", &axes), 1);
    ck_assert_uint_eq(khub_standard_axes("Attention", &axes), 2);
}
END_TEST

UNIT("slices", rows, matrices, heads, slices_that_a_layer_cant_have, not_cut_where_the_blas_has_threads)
