/* The standard functions against the formulas of docs/layers.md, written out once more in double. */
#include "unit.h"

#include <khub/khub.h>
#include <khub/standard.h>

#include <math.h>
#include <stdlib.h>

enum { MOST = 512 };

/* A small tensor with its memory. */
typedef struct box {
    float data[MOST];
    int64_t shape[4];
    khub_tensor t;
} box;

/* Values between -3 and 3 from a fixed sequence (the constants of the C standard's example of rand). */
static float next_value(void)
{
    static uint32_t state = 1;
    state = state * 1103515245u + 12345u;
    return (float)((state >> 8) % 60001) / 10000.0f - 3.0f;
}

static khub_value fill(box *b, int ndim, const int64_t *shape)
{
    memcpy(b->shape, shape, (size_t)ndim * sizeof(*shape));
    b->t = khub_tensor_f32(b->data, ndim, b->shape);
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    ck_assert_int_le(count, MOST);
    for (int64_t i = 0; i < count; i++)
        b->data[i] = next_value();
    return khub_arg_tensor(&b->t);
}
#define FILL(b, ...) fill(b, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[]){__VA_ARGS__})

static void call(const char *layer, const khub_value *args, int32_t n)
{
    khub_error err = {0};
    khub_function f;
    ck_khub_ok(khub_standard(&f, layer, &err), &err);
    ck_khub_ok(khub_function_call(&f, args, n, NULL, &err), &err);
}

static void fails(const char *layer, const khub_value *args, int32_t n, const char *words)
{
    khub_error err = {0};
    khub_function f;
    ck_khub_ok(khub_standard(&f, layer, &err), &err);
    ck_khub_fails(khub_function_call(&f, args, n, NULL, &err), &err, KHUB_E_KERNEL, words);
}

/* One rounding to float32 of a value computed in double, and the sums' own rounding. */
static void near(float have, double want)
{
    ck_assert_msg(fabs(have - want) <= 4e-7 * (1 + fabs(want)), "%.9g, %.17g is expected", have, want);
}

START_TEST(activations)
{
    static const char *const names[] = {"GeLU", "GeluTanh", "SiLU", "QuickGELU", "ReLU"};
    box x, out;
    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
        const khub_value args[] = {FILL(&out, 3, 7), FILL(&x, 3, 7)};
        call(names[k], args, 2);
        for (int i = 0; i < 21; i++) {
            double v = x.data[i];
            const double want[] = {v / 2 * (1 + erf(v / sqrt(2))),
                                   v / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v))),
                                   v / (1 + exp(-v)), v / (1 + exp(-1.702 * v)), v > 0 ? v : 0};
            near(out.data[i], want[k]);
        }
    }
    x.data[0] = NAN;
    call("ReLU", (const khub_value[]){khub_arg_tensor(&out.t), khub_arg_tensor(&x.t)}, 2);
    ck_assert(isnan(out.data[0]));
}
END_TEST

START_TEST(add)
{
    box x, residual, out;
    const khub_value args[] = {FILL(&out, 3, 7), FILL(&x, 3, 7), FILL(&residual, 3, 7)};
    call("Add", args, 3);
    for (int i = 0; i < 21; i++)
        ck_assert_float_eq(out.data[i], x.data[i] + residual.data[i]);
    residual.shape[0] = 2;
    fails("Add", args, 3, "residual is (2, 7), (3, 7) is expected");
}
END_TEST

START_TEST(gated)
{
    box x, out;
    const khub_value args[] = {FILL(&out, 2, 3), FILL(&x, 2, 6)};
    call("SiluAndMul", args, 2);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 3; i++)
            near(out.data[r * 3 + i],
                 x.data[r * 6 + i] / (1 + exp(-x.data[r * 6 + i])) * x.data[r * 6 + 3 + i]);
    x.shape[1] = 5;
    fails("GeluAndMul", args, 2, "x has a last axis that isn't even");
}
END_TEST

START_TEST(norms)
{
    box out, sum, x, res, w, b;
    const khub_value args[] = {FILL(&out, 2, 2, 5), FILL(&sum, 2, 2, 5), FILL(&x, 2, 2, 5),
                               FILL(&res, 2, 2, 5), FILL(&w, 5),         FILL(&b, 5),
                               khub_arg_float(1e-3)};
    call("AddLayerNorm", args, 7);
    for (int r = 0; r < 4; r++) {
        double s[5], mean = 0, var = 0;
        for (int i = 0; i < 5; i++)
            mean += (s[i] = x.data[r * 5 + i] + res.data[r * 5 + i]) / 5;
        for (int i = 0; i < 5; i++)
            var += (s[i] - mean) * (s[i] - mean) / 5;
        for (int i = 0; i < 5; i++) {
            near(sum.data[r * 5 + i], s[i]);
            near(out.data[r * 5 + i], (s[i] - mean) / sqrt(var + 1e-3) * w.data[i] + b.data[i]);
        }
    }
    const khub_value rms[] = {args[0], args[2], args[4], khub_arg_float(1e-3)};
    call("RMSNorm", rms, 4);
    for (int r = 0; r < 4; r++) {
        double square = 0;
        for (int i = 0; i < 5; i++)
            square += (double)x.data[r * 5 + i] * x.data[r * 5 + i] / 5;
        for (int i = 0; i < 5; i++)
            near(out.data[r * 5 + i], x.data[r * 5 + i] / sqrt(square + 1e-3) * w.data[i]);
    }
    fails("RMSNorm", (const khub_value[]){args[0], args[2], args[2], khub_arg_float(1)}, 4,
          "weight is (2, 2, 5), (5) is expected");
    fails("RMSNorm", rms, 3, "takes 4 arguments, 3 were given");
    fails("RMSNorm", (const khub_value[]){args[0], khub_arg_int(3), args[4], khub_arg_float(1)}, 4,
          "x is an integer, a tensor is expected");
}
END_TEST

START_TEST(embedding)
{
    enum { V = 6, N = 5 };
    box out, words, types, positions, w, b;
    const khub_dtype i32 = khub_dtype_of(KHUB_DTYPE_INT, 32), i64 = khub_dtype_of(KHUB_DTYPE_INT, 64);
    const int64_t lead[2] = {2, 3}, strides[2] = {4, 1}; /* of the positions */
    int32_t ids[6] = {5, 0, 3, 3, 1, 2};
    int64_t places[8] = {0, 1, 2, 99, 2, 1, 0, 99};
    khub_tensor t_ids = khub_tensor_over(ids, i32, 2, lead),
                t_places = khub_tensor_over(places, i64, 2, lead);
    t_places.strides = (int64_t *)(uintptr_t)strides;
    const khub_value args[] = {
        FILL(&out, 2, 3, N), khub_arg_tensor(&t_ids), khub_arg_none(),        khub_arg_tensor(&t_places),
        FILL(&words, V, N),  FILL(&types, 2, N),      FILL(&positions, 3, N), FILL(&w, N),
        FILL(&b, N),         khub_arg_float(1e-3)};
    for (int normed = 0; normed < 2; normed++) {
        call(normed ? "EmbeddingLayerNorm" : "Embedding", args, normed ? 10 : 7);
        for (int r = 0; r < 6; r++) {
            double mean = 0, var = 0, s[N];
            for (int k = 0; k < N; k++) {
                float sum = words.data[ids[r] * N + k] + types.data[k];
                s[k] = sum + positions.data[places[r + r / 3] * N + k];
                mean += s[k] / N;
            }
            for (int k = 0; k < N; k++)
                var += (s[k] - mean) * (s[k] - mean) / N;
            for (int k = 0; k < N; k++)
                near(out.data[r * N + k],
                     normed ? (s[k] - mean) / sqrt(var + 1e-3) * w.data[k] + b.data[k] : s[k]);
        }
    }
    const khub_value none = khub_arg_none(), alone[] = {args[0], args[1], none, none, args[4], none, none};
    call("Embedding", alone, 7); /* one table: its rows */
    for (int i = 0; i < 6 * N; i++)
        ck_assert_float_eq(out.data[i], words.data[ids[i / N] * N + i % N]);
    ids[4] = V;
    memset(out.data, 0, sizeof(out.data));
    fails("EmbeddingLayerNorm", args, 10, "EmbeddingLayerNorm: ids[4] is 6, words has 6 rows");
    ids[4] = -1;
    fails("Embedding", args, 7, "Embedding: ids[4] is -1, words has 6 rows");
    ck_assert(out.data[0] == 0 && out.data[6 * N - 1] == 0);
    ids[4] = 0, types.shape[0] = 0;
    fails("Embedding", args, 7, "type_ids[0] is 0, types has 0 rows");
    types.shape[0] = 2, t_ids.dtype = khub_dtype_of(KHUB_DTYPE_FLOAT, 32);
    fails("Embedding", args, 7, "ids is float32, int32 or int64 is expected");
}
END_TEST

START_TEST(softmax_and_rotary)
{
    box out, x, kout, k, c, s;
    call("Softmax", (const khub_value[]){FILL(&out, 2, 4), FILL(&x, 2, 4)}, 2);
    for (int r = 0; r < 2; r++) {
        double sum = 0;
        for (int i = 0; i < 4; i++)
            sum += exp(x.data[r * 4 + i]);
        for (int i = 0; i < 4; i++)
            near(out.data[r * 4 + i], exp(x.data[r * 4 + i]) / sum);
    }
    const khub_value args[] = {FILL(&out, 2, 3, 4), FILL(&kout, 2, 1, 4), FILL(&x, 2, 3, 4),
                               FILL(&k, 2, 1, 4),   FILL(&c, 2, 2),       FILL(&s, 2, 2)};
    call("rotary_pos_emb", args, 6);
    for (int t = 0; t < 2; t++)
        for (int h = 0; h < 3; h++)
            for (int i = 0; i < 2; i++) {
                int at = (t * 3 + h) * 4 + i;
                near(out.data[at],
                     (double)x.data[at] * c.data[t * 2 + i] - (double)x.data[at + 2] * s.data[t * 2 + i]);
                near(out.data[at + 2],
                     (double)x.data[at + 2] * c.data[t * 2 + i] + (double)x.data[at] * s.data[t * 2 + i]);
            }
}
END_TEST

START_TEST(linear)
{
    box out, x, w, b;
    const khub_value args[] = {FILL(&out, 3, 4), FILL(&x, 3, 5), FILL(&w, 4, 5), FILL(&b, 4)};
    for (int gelu = 0; gelu < 2; gelu++) {
        call(gelu ? "LinearGeLU" : "Linear", args, 4);
        for (int i = 0; i < 12; i++) {
            double sum = b.data[i % 4];
            for (int l = 0; l < 5; l++)
                sum += (double)x.data[i / 4 * 5 + l] * w.data[i % 4 * 5 + l];
            near(out.data[i], gelu ? sum / 2 * (1 + erf(sum / sqrt(2))) : sum);
        }
    }
    /* a residual behind it, which may be the result's memory */
    box residual;
    const khub_value added[] = {args[0], args[1], args[2], args[3], FILL(&residual, 3, 4)};
    for (int in_place = 0; in_place < 2; in_place++) {
        khub_value again[5];
        memcpy(again, added, sizeof(again));
        if (in_place) {
            memcpy(out.data, residual.data, sizeof(out.data));
            again[4] = args[0];
        }
        call("LinearAdd", again, 5);
        for (int i = 0; i < 12; i++) {
            double sum = (double)b.data[i % 4] + residual.data[i];
            for (int l = 0; l < 5; l++)
                sum += (double)x.data[i / 4 * 5 + l] * w.data[i % 4 * 5 + l];
            near(out.data[i], sum);
        }
    }
    const khub_value narrow[] = {args[0], args[1], args[2], args[3], FILL(&residual, 3, 3)};
    fails("LinearAdd", narrow, 5, "LinearAdd: residual is (3, 3), (3, 4) is expected");
    /* rows of x and out may lie apart */
    const int64_t strides[2] = {20, 1};
    x.t.strides = out.t.strides = (int64_t *)(uintptr_t)strides;
    for (int i = 0; i < 60; i++)
        x.data[i] = next_value(), out.data[i] = 77;
    call("Linear", args, 4);
    for (int i = 0; i < 12; i++) {
        double sum = b.data[i % 4];
        for (int l = 0; l < 5; l++)
            sum += (double)x.data[i / 4 * 20 + l] * w.data[i % 4 * 5 + l];
        near(out.data[i / 4 * 20 + i % 4], sum);
    }
    ck_assert_float_eq(out.data[4], 77);
    const int64_t backwards[2] = {1, 3};
    x.t.strides = (int64_t *)(uintptr_t)backwards;
    fails("Linear", args, 4, "x has a last axis that isn't contiguous");
}
END_TEST

START_TEST(a_norm_before_linear)
{
    box out, x, g, w, b;
    const khub_value args[] = {FILL(&out, 3, 4),    FILL(&x, 3, 5), FILL(&g, 5),
                               khub_arg_float(0.5), FILL(&w, 4, 5), FILL(&b, 4)};
    call("RMSNormLinear", args, 6);
    for (int i = 0; i < 12; i++) {
        const float *row = x.data + i / 4 * 5;
        double square = 0, sum = b.data[i % 4];
        for (int l = 0; l < 5; l++)
            square += (double)row[l] * row[l];
        for (int l = 0; l < 5; l++)
            sum += row[l] / sqrt(square / 5 + 0.5) * g.data[l] * w.data[i % 4 * 5 + l];
        near(out.data[i] / 4, sum / 4); /* sums of up to 30 */
    }
    khub_value wrong[6];
    memcpy(wrong, args, sizeof(wrong));
    wrong[2] = args[5];
    fails("RMSNormLinear", wrong, 6, "RMSNormLinear: norm_weight is (4), (5) is expected");
    memcpy(wrong, args, sizeof(wrong));
    wrong[4] = args[1];
    fails("RMSNormLinear", wrong, 6, "RMSNormLinear: out is (3, 4), (3, 3) is expected");
    fails("RMSNormLinear", args, 4, "RMSNormLinear");
}
END_TEST

/* Attention with t queries over s keys, h query heads on g key heads. */
static void check_attention(int t, int s, int h, int g, int causal, int window, const int32_t *lengths)
{
    enum { B = 2, D = 4 };
    box out, q, k, v;
    int64_t shape[1] = {B};
    khub_tensor len =
        khub_tensor_over((void *)(uintptr_t)lengths, khub_dtype_of(KHUB_DTYPE_INT, 32), 1, shape);
    const khub_value args[] = {FILL(&out, B, t, h, D),
                               FILL(&q, B, t, h, D),
                               FILL(&k, B, s, g, D),
                               FILL(&v, B, s, g, D),
                               lengths ? khub_arg_tensor(&len) : khub_arg_none(),
                               khub_arg_float(0.5),
                               khub_arg_bool(causal),
                               window < 0 ? khub_arg_none() : khub_arg_int(window)};
    call("Attention", args, 8);
    for (int b = 0; b < B; b++)
        for (int i = 0; i < t; i++)
            for (int a = 0; a < h; a++) {
                double weight[16], sum = 0;
                for (int j = 0; j < s; j++) {
                    double score = 0;
                    for (int l = 0; l < D; l++)
                        score += (double)q.data[((b * t + i) * h + a) * D + l] *
                                 k.data[((b * s + j) * g + a / (h / g)) * D + l];
                    int seen = j < (lengths ? lengths[b] : s) && (!causal || j <= i + s - t) &&
                               (window <= 0 || abs(i + s - t - j) < window);
                    sum += weight[j] = seen ? exp(0.5 * score) : 0;
                }
                for (int l = 0; l < D; l++) {
                    double want = 0;
                    for (int j = 0; j < s; j++)
                        if (sum > 0)
                            want += weight[j] / sum * v.data[((b * s + j) * g + a / (h / g)) * D + l];
                    near(out.data[((b * t + i) * h + a) * D + l], want);
                }
            }
}

START_TEST(attention)
{
    check_attention(3, 3, 2, 2, 0, -1, NULL);
    check_attention(3, 5, 4, 2, 1, 0, NULL);
    check_attention(5, 3, 2, 1, 1, -1, NULL); /* the first queries see nothing */
    check_attention(4, 4, 2, 2, 0, -1, (const int32_t[]){4, 2});
    check_attention(4, 4, 2, 2, 1, -1, (const int32_t[]){0, 3});
    check_attention(4, 7, 2, 2, 0, 2, NULL);
    check_attention(4, 7, 2, 1, 1, 3, (const int32_t[]){7, 5});
    check_attention(2, 7, 2, 1, 0, 1, (const int32_t[]){6, 5}); /* nothing is left of some windows */
    check_attention(3, 3, 2, 1, 1, 100, NULL);
}
END_TEST

START_TEST(bfloat16_is_rounded_once)
{
    /* 1 + 2^-8 lies between 1 and 1 + 2^-7, a tie: to even, 1; 1 + 3 * 2^-8 is a tie that goes up to 1 + 2^-6
     */
    float exact[2] = {1.00390625f, 1.01171875f};
    uint16_t x[4] = {0x3f80, 0x3b80, 0x3f80, 0x3c40}, out[2] = {7, 7},
             w[4] = {0x3f80, 0x3f80, 0x3f80, 0x3f80};
    int64_t xs[2] = {2, 2}, os[2] = {2, 1}, ws[2] = {1, 2};
    khub_dtype bf = khub_dtype_of(KHUB_DTYPE_BFLOAT, 16);
    khub_tensor tx = khub_tensor_over(x, bf, 2, xs), to = khub_tensor_over(out, bf, 2, os),
                tw = khub_tensor_over(w, bf, 2, ws);
    call("Linear",
         (const khub_value[]){khub_arg_tensor(&to), khub_arg_tensor(&tx), khub_arg_tensor(&tw),
                              khub_arg_none()},
         4);
    ck_assert_float_eq(exact[0], 1 + 0.00390625f);
    ck_assert_uint_eq(out[0], 0x3f80);
    ck_assert_uint_eq(out[1], 0x3f82);
}
END_TEST

/* AddLayerNorm in bfloat16 gives the bits of LayerNorm on the sum that it keeps, kept or not. */
START_TEST(the_sum_that_is_kept_is_normalized)
{
    enum { N = 64 };
    uint16_t x[N], residual[N], w[N], sum[N], out[N], alone[N], without[N];
    const int64_t shape[2] = {4, N / 4}, width[1] = {N / 4};
    for (int i = 0; i < N; i++) {
        float values[3] = {next_value(), next_value(), next_value()};
        uint32_t bits[3];
        memcpy(bits, values, sizeof(bits));
        x[i] = (uint16_t)(bits[0] >> 16), residual[i] = (uint16_t)(bits[1] >> 16),
        w[i] = (uint16_t)(bits[2] >> 16);
    }
    const khub_dtype bf = khub_dtype_of(KHUB_DTYPE_BFLOAT, 16);
    khub_tensor t[] = {khub_tensor_over(x, bf, 2, shape),     khub_tensor_over(residual, bf, 2, shape),
                       khub_tensor_over(sum, bf, 2, shape),   khub_tensor_over(out, bf, 2, shape),
                       khub_tensor_over(alone, bf, 2, shape), khub_tensor_over(without, bf, 2, shape),
                       khub_tensor_over(w, bf, 1, width)};
    const khub_value eps = khub_arg_float(1e-5), none = khub_arg_none(), weight = khub_arg_tensor(&t[6]);
    const khub_value in = khub_arg_tensor(&t[0]), res = khub_arg_tensor(&t[1]), kept = khub_arg_tensor(&t[2]);
    call("AddLayerNorm", (const khub_value[]){khub_arg_tensor(&t[3]), kept, in, res, weight, none, eps}, 7);
    call("AddLayerNorm", (const khub_value[]){khub_arg_tensor(&t[5]), none, in, res, weight, none, eps}, 7);
    call("LayerNorm", (const khub_value[]){khub_arg_tensor(&t[4]), kept, weight, none, eps}, 5);
    ck_assert_mem_eq(out, alone, sizeof(out));
    ck_assert_mem_eq(out, without, sizeof(out));
}
END_TEST

START_TEST(no_such_layer)
{
    khub_error err = {0};
    khub_function f;
    ck_khub_fails(khub_standard(&f, "Nope", &err), &err, KHUB_E_NOTFOUND, "Nope");
}
END_TEST

UNIT("ops", activations, add, gated, norms, embedding, softmax_and_rotary, linear, a_norm_before_linear,
     attention, bfloat16_is_rounded_once, the_sum_that_is_kept_is_normalized, no_such_layer)
