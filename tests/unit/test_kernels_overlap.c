/* What may share memory in a call of a built-in kernel and what may not: docs/layers.md. */
#include "kernels.h"

enum { BYTES = 4096 };
static float memory[BYTES / 4];
static library norm, activation, softmax, rotary, linear, attention;

static void setup(void)
{
    norm = library_open("norm", NULL), activation = library_open("activation", NULL);
    softmax = library_open("softmax", NULL), rotary = library_open("rotary", NULL);
    linear = library_open("linear", NULL), attention = library_open("attention", NULL);
}

/* A tensor `at` elements into the memory; strides: row-major in rows of `width`. */
typedef struct placed {
    khub_tensor t;
    int64_t shape[4], strides[4];
} placed;

static khub_value place(placed *p, int64_t at, int32_t ndim, const int64_t *shape, const int64_t *strides)
{
    memcpy(p->shape, shape, (size_t)ndim * sizeof(*shape));
    memcpy(p->strides, strides, (size_t)ndim * sizeof(*strides));
    p->t = khub_tensor_f32(memory + at, ndim, p->shape);
    p->t.strides = p->strides;
    return khub_arg_tensor(&p->t);
}

/* (3, 8), rows side by side. */
static khub_value matrix(placed *p, int64_t at)
{
    return place(p, at, 2, (int64_t[]){3, 8}, (int64_t[]){8, 1});
}

START_TEST(norms)
{
    static placed p[6];
    setup();
    khub_value out = matrix(&p[0], 0), x = matrix(&p[1], 100), residual = matrix(&p[2], 200),
               sum = matrix(&p[3], 300), eps = khub_arg_float(1e-5);
    khub_value weight = place(&p[4], 400, 1, (int64_t[]){8}, (int64_t[]){1});
    khub_value shifted = matrix(&p[5], 101), bias = khub_arg_none(), none = khub_arg_none();
    ck_kernel_ok(&norm, "rms_norm", x, x, weight, eps);
    ck_kernel_ok(&norm, "add_layer_norm", x, residual, x, residual, weight, bias, eps);
    ck_kernel_ok(&norm, "add_layer_norm", out, none, x, x, weight, bias, eps); /* inputs may be anything */
    ck_kernel_fails("ValueError: rms_norm: out overlaps x; it may be the same memory or another", &norm,
                    "rms_norm", shifted, x, weight, eps);
    ck_kernel_fails("ValueError: layer_norm: out overlaps bias", &norm, "layer_norm", out, x, weight,
                    place(&p[5], 23, 1, (int64_t[]){8}, (int64_t[]){1}), eps);
    ck_kernel_ok(&norm, "layer_norm", out, x, weight, place(&p[5], 24, 1, (int64_t[]){8}, (int64_t[]){1}),
                 eps); /* one element on */
    ck_kernel_fails("ValueError: add_rms_norm: out overlaps sum", &norm, "add_rms_norm", x, x, x, residual,
                    weight, eps);
    ck_kernel_fails("ValueError: add_rms_norm: sum overlaps x", &norm, "add_rms_norm", out, x, x, residual,
                    weight, eps);
    ck_kernel_fails("ValueError: add_rms_norm: out overlaps residual", &norm, "add_rms_norm", residual, sum,
                    x, residual, weight, eps);
}
END_TEST

START_TEST(others)
{
    static placed p[8];
    setup();
    khub_value a = matrix(&p[0], 0), b = matrix(&p[1], 1), narrow, wide;
    ck_kernel_ok(&softmax, "softmax", a, a);
    ck_kernel_ok(&activation, "gelu", a, a);
    ck_kernel_fails("ValueError: softmax: out overlaps x; it may be the same memory or another", &softmax,
                    "softmax", a, b);
    ck_kernel_fails("ValueError: gelu: out overlaps x; it may be the same memory or another", &activation,
                    "gelu", b, a);
    wide = matrix(&p[2], 0), narrow = place(&p[3], 0, 2, (int64_t[]){3, 4}, (int64_t[]){8, 1});
    ck_kernel_fails("ValueError: silu_and_mul: out overlaps x", &activation, "silu_and_mul", narrow, wide);
    khub_value square = place(&p[4], 24, 2, (int64_t[]){8, 8}, (int64_t[]){8, 1});
    ck_kernel_ok(&linear, "linear", matrix(&p[1], 100), a, square, khub_arg_none());
    ck_kernel_fails("ValueError: linear: out overlaps x", &linear, "linear", a, a, square, khub_arg_none());
    ck_kernel_fails("ValueError: linear_add: out overlaps residual; it may be the same memory or another",
                    &linear, "linear_add", matrix(&p[1], 101), a, square, khub_arg_none(),
                    matrix(&p[5], 100));
    ck_kernel_fails("ValueError: linear: out overlaps weight", &linear, "linear", matrix(&p[1], 80), a,
                    square, khub_arg_none());
}
END_TEST

/* q, k and v woven into one buffer of (tokens, 3, heads, dims), as a fused projection leaves them. */
START_TEST(woven_tensors_do_not_overlap)
{
    enum { T = 38, H = 2, D = 4, ROW = 3 * H * D };
    static placed p[6];
    const int64_t shape[3] = {T, H, D}, strides[3] = {ROW, D, 1}, angles[2] = {T, D / 2}, steps[2] = {2, 1};
    const int64_t shape4[4] = {1, T, H, D}, strides4[4] = {T * ROW, ROW, D, 1};
    setup();
    ck_assert_int_le(T * ROW + T * D / 2, BYTES / 4);
    khub_value q = place(&p[0], 0, 3, shape, strides), k = place(&p[1], H * D, 3, shape, strides),
               angle = place(&p[2], T * ROW, 2, angles, steps);
    ck_kernel_ok(&rotary, "rotary_pos_emb", q, k, q, k, angle, angle);
    ck_kernel_fails("ValueError: rotary_pos_emb: q_out overlaps k_out", &rotary, "rotary_pos_emb", q,
                    place(&p[3], (H - 1) * D, 3, shape, strides), q, k, angle, angle);
    ck_kernel_fails("ValueError: rotary_pos_emb: q_out overlaps k", &rotary, "rotary_pos_emb", k, q, q, k,
                    angle, angle);
    khub_value in[3], out = place(&p[3], 2 * H * D, 4, shape4, strides4);
    for (int i = 0; i < 2; i++)
        in[i] = place(&p[i], i * H * D, 4, shape4, strides4);
    ck_kernel_ok(&attention, "attention", out, in[0], in[1], in[1], khub_arg_none(), khub_arg_float(1),
                 khub_arg_bool(0), khub_arg_none());
    ck_kernel_fails("ValueError: attention: out overlaps v", &attention, "attention", out, in[0], in[1], out,
                    khub_arg_none(), khub_arg_float(1), khub_arg_bool(0), khub_arg_none());
}
END_TEST

static void mark(const placed *p, unsigned char *bytes, unsigned char with)
{
    for (int64_t i = 0; i < p->shape[0]; i++)
        for (int64_t j = 0; j < p->shape[1]; j++)
            for (int64_t k = 0; k < p->shape[2]; k++)
                bytes[(float *)p->t.data - memory + i * p->strides[0] + j * p->strides[1] + k] |= with;
}

/* Whatever the strides, against a map of all elements. */
START_TEST(as_a_map_of_memory_says)
{
    static placed a, b;
    int meet = 0, apart = 0;
    setup();
    for (int round = 0; round < 20000; round++) {
        int64_t shape[3], to[2][3];
        unsigned char map[BYTES / 4] = {0};
        int same = 1, shared = 0;
        for (int i = 0; i < 3; i++)
            shape[i] = 1 + random_bits() % 4;
        for (int i = 0; i < 6; i++)
            to[i / 3][i % 3] = i % 3 == 2 ? 1 : 1 + random_bits() % (i % 3 ? 8 : 40);
        if (random_bits() % 2) memcpy(to[1], to[0], sizeof(to[0]));
        khub_value out = place(&a, 500 + random_bits() % 30, 3, shape, to[0]);
        khub_value x = place(&b, 500 + random_bits() % 30, 3, shape, to[1]);
        if (random_bits() % 4 == 0) b.strides[0] = -b.strides[0];
        mark(&a, map, 1), mark(&b, map, 2);
        for (size_t i = 0; i < sizeof(map); i++)
            shared |= map[i] == 3;
        same = a.t.data == b.t.data;
        for (int i = 0; i < 3; i++)
            same &= shape[i] == 1 || a.strides[i] == b.strides[i];
        const khub_value args[2] = {out, x};
        char words[1024];
        int rc = call_kernel(&activation, "relu", args, 2, words);
        ck_assert_msg((rc != 0) == (shared && !same), "round %d: %s", round, rc ? words : "no error");
        meet += rc != 0, apart += !shared;
    }
    ck_assert_int_gt(meet, 1000);
    ck_assert_int_gt(apart, 1000);
}
END_TEST

UNIT("kernels_overlap", norms, others, woven_tensors_do_not_overlap, as_a_map_of_memory_says)
