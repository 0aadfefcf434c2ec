/* The work of a call, counted by hand. */
#include "unit.h"

#include "measure/work.h"

#include <khub/layer.h>

enum { MAX_ARGS = 8 };

/* An argument: a tensor of `dtype` and these extents; ndim -1: None; -2: the number `value`. */
typedef struct argument {
    int32_t ndim;
    int64_t shape[4];
    int64_t value;
} argument;

#define NONE                                                                                                 \
    {                                                                                                        \
        -1                                                                                                   \
    }
#define NUMBER                                                                                               \
    {                                                                                                        \
        -2                                                                                                   \
    }
#define YES                                                                                                  \
    {                                                                                                        \
        -2, {0}, 1                                                                                           \
    }
#define T1(a)                                                                                                \
    {                                                                                                        \
        1,                                                                                                   \
        {                                                                                                    \
            a                                                                                                \
        }                                                                                                    \
    }
#define T2(a, b)                                                                                             \
    {                                                                                                        \
        2,                                                                                                   \
        {                                                                                                    \
            a, b                                                                                             \
        }                                                                                                    \
    }
#define T3(a, b, c)                                                                                          \
    {                                                                                                        \
        3,                                                                                                   \
        {                                                                                                    \
            a, b, c                                                                                          \
        }                                                                                                    \
    }
#define T4(a, b, c, d)                                                                                       \
    {                                                                                                        \
        4,                                                                                                   \
        {                                                                                                    \
            a, b, c, d                                                                                       \
        }                                                                                                    \
    }

static khub__work work_of(const char *layer, khub_dtype dtype, const argument *list, const int32_t *lengths)
{
    khub_value args[MAX_ARGS];
    khub_tensor tensors[MAX_ARGS];
    int32_t n = 0;
    for (; khub_layer_arg(layer, (size_t)n); n++) {
        const argument *a = &list[n];
        int is_lengths = !strcmp(khub_layer_arg(layer, (size_t)n), "lengths");
        khub_dtype own = is_lengths ? khub_dtype_of(KHUB_DTYPE_INT, 32) : dtype;
        tensors[n] = khub_tensor_over((void *)(uintptr_t)lengths, own, a->ndim, a->shape);
        args[n] = a->ndim == -2 ? khub_arg_bool((int)a->value)
                                : khub_arg_tensor(a->ndim == -1 ? NULL : &tensors[n]);
    }
    return khub__work_of(layer, args, n);
}

static const struct {
    const char *layer;
    argument args[MAX_ARGS];
    double flops, elements; /* all tensors' */
} table[] = {
    {"Add", {T2(2, 3), T2(2, 3), T2(2, 3)}, 6, 18},
    /* 2 rows of 3: 4 an element and 4 a row; out, x, weight */
    {"RMSNorm", {T2(2, 3), T2(2, 3), T1(3), NUMBER}, 32, 6 + 6 + 3},
    {"RMSNorm", {T1(3), T1(3), T1(3), NUMBER}, 16, 9},
    {"AddRMSNorm", {T2(2, 3), T2(2, 3), T2(2, 3), T2(2, 3), T1(3), NUMBER}, 38, 24 + 3},
    {"AddRMSNorm", {T2(2, 3), NONE, T2(2, 3), T2(2, 3), T1(3), NUMBER}, 38, 18 + 3},
    {"LayerNorm", {T2(2, 3), T2(2, 3), T1(3), T1(3), NUMBER}, 6 * 7 + 2 * 5, 12 + 6},
    {"LayerNorm", {T2(2, 3), T2(2, 3), T1(3), NONE, NUMBER}, 6 * 6 + 2 * 5, 12 + 3},
    {"AddLayerNorm", {T2(1, 4), T2(1, 4), T2(1, 4), T2(1, 4), T1(4), T1(4), NUMBER}, 4 * 8 + 5, 24},
    {"GeLU", {T3(2, 3, 4), T3(2, 3, 4)}, 24 * 5, 48},
    {"GeluTanh", {T1(2), T1(2)}, 18, 4},
    {"SiLU", {T1(2), T1(2)}, 6, 4},
    {"QuickGELU", {T1(2), T1(2)}, 8, 4},
    {"ReLU", {T1(2), T1(2)}, 2, 4},
    {"SiluAndMul", {T2(2, 3), T2(2, 6)}, 6 * 4, 18},
    {"GeluAndMul", {T2(2, 3), T2(2, 6)}, 6 * 6, 18},
    {"Softmax", {T2(2, 3), T2(2, 3)}, 30, 12},
    /* 2 tokens, 2 heads and 1 of k, of 4: 3 for each of 16 + 8 */
    {"rotary_pos_emb", {T3(2, 2, 4), T3(2, 1, 4), T3(2, 2, 4), T3(2, 1, 4), T2(2, 2), T2(2, 2)}, 72, 56},
    /* every of 3 queries sees all 5 keys: 2 heads, 15 pairs, 4·4 + 6 each */
    {"Attention",
     {T4(1, 3, 2, 4), T4(1, 3, 2, 4), T4(1, 5, 1, 4), T4(1, 5, 1, 4), NONE, NUMBER, NUMBER, NONE},
     660,
     88},
    /* the queries are the last 3 of 5: 3 + 4 + 5 pairs */
    {"Attention",
     {T4(1, 3, 2, 4), T4(1, 3, 2, 4), T4(1, 5, 1, 4), T4(1, 5, 1, 4), NONE, NUMBER, YES, NONE},
     528,
     88},
    /* more queries than keys: the first 2 see none, then 1 + 2 + 3 */
    {"Attention",
     {T4(1, 5, 1, 4), T4(1, 5, 1, 4), T4(1, 3, 1, 4), T4(1, 3, 1, 4), NONE, NUMBER, YES, NONE},
     132,
     64},
    /* 2·3 sums of 4 products, and the bias */
    {"Linear", {T2(2, 3), T2(2, 4), T2(3, 4), NONE}, 48, 26},
    {"Linear", {T2(2, 3), T2(2, 4), T2(3, 4), T1(3)}, 54, 29},
    {"LinearGeLU", {T2(2, 3), T2(2, 4), T2(3, 4), T1(3)}, 84, 29},
    {"LinearGeluTanh", {T2(2, 3), T2(2, 4), T2(3, 4), T1(3)}, 108, 29},
    {"LinearSiLU", {T2(2, 3), T2(2, 4), T2(3, 4), T1(3)}, 72, 29},
    {"LinearReLU", {T2(2, 3), T2(2, 4), T2(3, 4), T1(3)}, 60, 29},
    {"LinearAdd", {T2(2, 3), T2(2, 4), T2(3, 4), T1(3), T2(2, 3)}, 60, 35},
    /* 2 rows of 4: 4 an element and 4 a row; then Linear */
    {"RMSNormLinear", {T2(2, 3), T2(2, 4), T1(4), NUMBER, T2(3, 4), NONE}, 40 + 48, 26 + 4},
    {"RMSNormLinear", {T2(2, 3), T2(2, 4), T1(4), NUMBER, T2(3, 4), T1(3)}, 40 + 54, 29 + 4},
    /* nothing to do */
    {"RMSNorm", {T2(0, 3), T2(0, 3), T1(3), NUMBER}, 0, 3},
    {"Linear", {T2(0, 3), T2(0, 4), T2(3, 4), NONE}, 0, 12},
};

START_TEST(work_of_each_layer)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__work f32 = work_of(table[i].layer, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), table[i].args, NULL),
                   bf16 = work_of(table[i].layer, khub_dtype_of(KHUB_DTYPE_BFLOAT, 16), table[i].args, NULL);
        ck_assert_msg(f32.flops == table[i].flops && bf16.flops == f32.flops, "%s, row %zu: %g, not %g",
                      table[i].layer, i, f32.flops, table[i].flops);
        ck_assert_msg(f32.bytes == 4 * table[i].elements && bf16.bytes == 2 * table[i].elements,
                      "%s, row %zu: %g bytes", table[i].layer, i, f32.bytes);
    }
}
END_TEST

START_TEST(keys_past_a_length_are_no_work)
{
    static const int32_t lengths[] = {2, 9};
    const argument args[] = {
        T4(2, 3, 1, 4), T4(2, 3, 1, 4), T4(2, 3, 1, 4), T4(2, 3, 1, 4), T1(2), NUMBER, YES, NONE};
    khub__work work = work_of("Attention", khub_dtype_of(KHUB_DTYPE_FLOAT, 32), args, lengths);
    ck_assert_double_eq(work.flops, (1 + 2 + 2 + 1 + 2 + 3) * 22); /* 9 is more keys than there are */
    ck_assert_double_eq(work.bytes, 4 * 24 * 4 + 8);
}
END_TEST

START_TEST(what_is_no_layer_has_bytes_alone)
{
    int64_t shape[] = {3};
    khub_tensor t = khub_tensor_over(NULL, khub_dtype_of(KHUB_DTYPE_INT, 8), 1, shape);
    const khub_value args[] = {khub_arg_tensor(&t), khub_arg_int(7), khub_arg_none(), khub_arg_tensor(&t)};
    khub__work work = khub__work_of("Convolution", args, 4);
    ck_assert_double_eq(work.bytes, 6);
    ck_assert_double_eq(work.flops, 0);
    ck_assert_double_eq(khub__work_of("GeLU", args, 4).flops, 0); /* not its arguments */
}
END_TEST

UNIT("work", work_of_each_layer, keys_past_a_length_are_no_work, what_is_no_layer_has_bytes_alone)
