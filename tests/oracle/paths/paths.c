/* Runs the loops of the built-in kernels of one path on fixed numbers and prints a hash of each result: the
 * same for all paths and processors. Built for another processor and run under an emulator by
 * test_kernels_paths.py. */
#include "activation/activation_path.h"
#include "attention/attention.h"
#include "bfloat16/dot.h"
#include "embedding/embedding.h"
#include "linear/linear.h"
#include "norm/norm.h"
#include "probe/probe.h"
#include "quantized/quantized.h"
#include "rotary/rotary.h"
#include "softmax/softmax.h"

#include "vec.h"

#include <math.h>
#include <stdio.h>

extern const norm_path PATH(norm);
extern const activation_path PATH(activation);
extern const dot_path PATH(dot);
extern const embedding_path PATH(embedding);
extern const softmax_path PATH(softmax);
extern const linear_path PATH(linear);
extern const attention_path PATH(attention);
extern const rotary_path PATH(rotary);
extern const probe_path PATH(probe);
extern const quantized_path PATH(quantized);
extern const quantized_packers PATH(quantized_packers);

enum { ROWS = 20, N = 77 };
static _Alignas(64) char out[8 * ROWS * N];
static char sum[4 * ROWS * N], x[8 * ROWS * N], residual[4 * ROWS * N], weight[8 * N], bias[4 * N];

static uint32_t state = 1;
static uint32_t next(void)
{
    state = state * 1664525 + 1013904223; /* Numerical Recipes */
    return state;
}

/* Numbers about 1, and one in `any` with any bits. */
static void fill(char *to, size_t count, int type, uint32_t any)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t u = next() >> 9;
        float f = (float)u / 1048576.0f - 4;
        if (any && next() >> 8 < (1u << 24) / any) f = float_of(next());
        uint16_t half = narrow(f);
        if (type == BF16)
            memcpy(to + 2 * i, &half, 2);
        else
            memcpy(to + 4 * i, &f, 4);
    }
}

/* FNV-1a; every NaN counts as the same. */
static void print(const char *name, const char *data, size_t count, int type)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, data + i * (size_t)ELEMENT_BYTES(type), (size_t)ELEMENT_BYTES(type));
        if (type == BF16) bits <<= 16;
        if (float_of(bits) != float_of(bits)) bits = UINT32_C(0x7fc00000);
        for (int k = 0; k < 4; k++)
            hash = (hash ^ (bits >> 8 * k & 255)) * UINT64_C(0x100000001b3);
    }
    printf("%s %s %016llx\n", name, type == BF16 ? "bfloat16" : "float32", (unsigned long long)hash);
}

static khub__rows rows_of(int type, int wide, int added)
{
    khub__rows rows = {
        .data = {out, added ? sum : NULL, x, added ? residual : NULL}, .count = ROWS, .stream = 1};
    for (int i = 0; i < 4; i++)
        rows.step[i] = N * ELEMENT_BYTES(type);
    if (wide) rows.data[1] = x, rows.step[1] = wide * N * ELEMENT_BYTES(type);
    return rows;
}

static void run_norm(const char *name, norm_function *const functions[2], int added)
{
    for (int type = F32; type <= BF16; type++) {
        fill(x, ROWS * N, type, 100), fill(residual, ROWS * N, type, 0), fill(weight, N, type, 0),
            fill(bias, N, type, 0);
        khub__rows rows = rows_of(type, 0, added);
        norm_params params = {N, weight, bias, 1e-5f};
        functions[type](&rows, &params);
        print(name, out, ROWS * N, type);
        if (added) print("sum", sum, ROWS * N, type);
    }
}

static void run_embedding(void)
{
    static const int32_t ids[ROWS] = {3, 0, 19, 7, 7}; /* the others 0 */
    for (int type = F32; type <= BF16; type++) {
        int64_t step = N * ELEMENT_BYTES(type);
        fill(x, ROWS * N, type, 100), fill(residual, N, type, 0), fill(sum, ROWS * N, type, 0);
        fill(weight, N, type, 0), fill(bias, N, type, 0);
        khub__rows rows = {.data = {out, (char *)(uintptr_t)ids, NULL, (char *)(uintptr_t)(ids + 1)},
                           .step = {step, 4, 0, 4},
                           .count = ROWS - 1};
        embedding_params params = {
            {N, weight, bias, 1e-5f}, {x, residual, sum}, {step, step, step}, {4, 0, 4}};
        PATH(embedding).layer_norm[type](&rows, &params);
        print("embedding", out, (ROWS - 1) * N, type);
    }
}

static void run_activation(const char *name, activation_function *const functions[2], int wide)
{
    for (int type = F32; type <= BF16; type++) {
        fill(x, (size_t)wide * ROWS * N, type, 4);
        khub__rows rows = rows_of(type, wide, 0);
        functions[type](&rows, N);
        print(name, out, ROWS * N, type);
    }
}

static void run_rotary(rotary_function *const functions[2])
{
    for (int type = F32; type <= BF16; type++) {
        int64_t half = 38, element = ELEMENT_BYTES(type);
        fill(x, ROWS * N, type, 10), fill(weight, (size_t)half, type, 0), fill(bias, (size_t)half, type, 0);
        memset(out, 0, sizeof(out));
        rotary_job job = {
            out,         x, weight, bias, 4, 5, half, 5 * N * element, N * element, 5 * N * element,
            N * element, 0, 0};
        functions[type](&job);
        print("rotary", out, ROWS * N, type);
    }
}

static void run_probe(const char *name, probe_function *function, size_t results, int type)
{
    const float *const in[3] = {(const float *)(const void *)x, (const float *)(const void *)residual,
                                (const float *)(const void *)sum};
    fill(x, ROWS * N, F32, 2), fill(residual, ROWS * N, F32, 2), fill(sum, ROWS * N, F32, 2);
    function(out, in, 16 * N);
    print(name, out, results, type);
}

/* Reduced, and yet more than one chain (k), more than a panel with some columns of the last (n), and rows (m)
 * for tiles of more and of fewer rows. The memory that holds a plain weight (n, k) is read as packed, too. */
static void run_linear(activation_kind activation)
{
    enum { MOST = 14, LINEAR_N = 67, K = 131, PANELS = 5 };
    const int64_t m = activation == ACTIVATION_RELU ? 1 : MOST; /* a row alone has a tile of its own */
    static char weights[4 * PANELS * LINEAR_PANEL * K];
    for (int type = F32; type <= BF16; type++) {
        int64_t element = ELEMENT_BYTES(type);
        fill(x, MOST * K, type, 0), fill(weights, PANELS * LINEAR_PANEL * K, type, 0);
        fill(bias, LINEAR_N, type, 0), fill(residual, MOST * LINEAR_N, type, 0);
        linear_call call = {.out = out,
                            .x = x,
                            .weight = weights,
                            .bias = activation == ACTIVATION_NONE ? NULL : bias,
                            .residual = activation == ACTIVATION_NONE ? residual : NULL,
                            .out_step = LINEAR_N * element,
                            .x_step = K * element,
                            .residual_step = LINEAR_N * element,
                            .weight_step = K * element,
                            .m = m,
                            .n = LINEAR_N,
                            .k = K,
                            .activation = activation};
        PATH(linear).plain[type](&call);
        print("linear", out, (size_t)(m * LINEAR_N), type);
        PATH(linear).packed[type](&call);
        print("linear, packed", out, (size_t)(m * LINEAR_N), type);
    }
}

/* Blocks of rows, of panels, chains, each with a rest: the numbers of the widened engine are the same
 * everywhere; AVX512-BF16 has its bits, since there are no subnormal numbers here; AMX is near the sum in
 * double and gives a row and a column the same bits, alone or with others. */
enum { DOT_M = 99, DOT_N = 41, DOT_K = 555, DOT_PANELS = 3, DOT_GROUPS = 18 };
static char dot_x[4 * DOT_M * DOT_K], dot_bias[4 * DOT_N],
    dot_weight[DOT_PANELS * DOT_GROUPS * DOT_GROUP_BYTES];
static char dot_out[2][4 * DOT_M * DOT_N];

static float number_at(const char *from, int64_t i, int type)
{
    uint16_t half;
    float whole;
    memcpy(&half, from + 2 * i, 2);
    if (type == BF16) return widen(half);
    memcpy(&whole, from + 4 * i, 4);
    return whole;
}

static uint16_t weight_at(int64_t n, int64_t k)
{
    uint16_t half;
    memcpy(&half, dot_weight + (n / 16 * DOT_GROUPS * 16 + k / 2) * DOT_ROW + n % 16 * 4 + (k % 2 ? 0 : 2),
           2);
    return half;
}

static void put_weights(void)
{
    memset(dot_weight, 0, sizeof(dot_weight));
    for (int64_t n = 0; n < DOT_N; n++)
        for (int64_t k = 0; k < DOT_K; k++) {
            uint16_t half = narrow((float)(next() >> 9) / 1048576.0f - 4);
            char *pair = dot_weight + (n / 16 * DOT_GROUPS * 16 + k / 2) * DOT_ROW + n % 16 * 4;
            memcpy(pair + (k % 2 ? 0 : 2), &half, 2);
        }
}

static linear_call dot_call(char *to, int type, int64_t m, int64_t n)
{
    int64_t element = ELEMENT_BYTES(type);
    return (linear_call){.out = to,
                         .x = dot_x,
                         .weight = dot_weight,
                         .bias = dot_bias,
                         .out_step = DOT_N * element,
                         .x_step = DOT_K * element,
                         .m = m,
                         .n = n,
                         .k = DOT_K,
                         .activation = ACTIVATION_NONE};
}

/* Each of the (k / 32 + 33) additions of a sum rounds to 24 bits what isn't larger than the sizes of all. */
static void check_tiles(int type)
{
    for (int64_t m = 0; m < DOT_M; m++)
        for (int64_t n = 0; n < DOT_N; n++) {
            double sum = number_at(dot_bias, n, type), size = fabs(sum);
            for (int64_t k = 0; k < DOT_K; k++) {
                double term =
                    (double)widen(narrow(number_at(dot_x, m * DOT_K + k, type))) * widen(weight_at(n, k));
                sum += term, size += fabs(term);
            }
            double got = number_at(dot_out[0], m * DOT_N + n, type), off = size * 0x1p-24 * (DOT_K / 32 + 33);
            if (type == BF16) off += 0x1p-8 * (fabs(sum) + off);
            if (!(fabs(got - sum) <= off)) puts("AMX is off");
        }
}

/* Rows one by one, and columns from the second panel on, have the bits that they have in the whole. */
static void check_split(dot_engine engine, int type)
{
    int64_t element = ELEMENT_BYTES(type), row = DOT_N * element;
    memset(dot_out[1], 0, sizeof(dot_out[1]));
    for (int64_t m = 0, rows; m < DOT_M; m += rows) {
        rows = m < 4 ? 1 : m < 50 ? 17 : DOT_M - m < 33 ? DOT_M - m : 33;
        for (int half = 0; half < 2; half++) {
            linear_call call =
                dot_call(dot_out[1] + m * row + half * 16 * element, type, rows, half ? DOT_N - 16 : 16);
            call.x += m * call.x_step;
            call.bias += half * 16 * element;
            call.weight += half * DOT_GROUPS * DOT_GROUP_BYTES;
            PATH(dot).linear[engine][type](&call);
        }
    }
    if (memcmp(dot_out[0], dot_out[1], sizeof(dot_out[0])) != 0) puts("a split has other bits");
}

static void run_dot(void)
{
    for (int type = F32; type <= BF16; type++) {
        fill(dot_x, DOT_M * DOT_K, type, 0), fill(dot_bias, DOT_N, type, 0);
        put_weights();
        linear_call call = dot_call(dot_out[0], type, DOT_M, DOT_N);
        memset(dot_out, 0, sizeof(dot_out));
        PATH(dot).linear[DOT_WIDENED][type](&call);
        print("dot", dot_out[0], DOT_M * DOT_N, type);
        if (!PATH(dot).linear[DOT_PAIRS][type]) continue;
        call.out = dot_out[1];
        PATH(dot).linear[DOT_PAIRS][type](&call);
        if (memcmp(dot_out[0], dot_out[1], sizeof(dot_out[0])) != 0) puts("AVX512-BF16 gives other bits");
        check_split(DOT_PAIRS, type);
        call.out = dot_out[0];
        PATH(dot).linear[DOT_TILES][type](&call);
        check_tiles(type);
        check_split(DOT_TILES, type);
    }
}

/* Two blocks of rows of more than one tile, the last of a panel's columns, the last of a group; and the same
 * by VNNI where the path can have it. */
static void run_quantized(quantized_form form)
{
    enum { M = 26, QUANTIZED_N = 35, K = 45, PANELS = 3, RECORD = 1152 };
    static char numbers[4 * QUANTIZED_N * K], records[PANELS * RECORD];
    int bits = form == QUANTIZED_INT4 || form == QUANTIZED_INT4_WEIGHT ? 4 : 8;
    for (int type = F32; type <= BF16; type++) {
        int64_t element = ELEMENT_BYTES(type);
        size_t bytes = (size_t)(M * QUANTIZED_N * element);
        fill(x, M * K, type, 400), fill(numbers, QUANTIZED_N * K, type, 400),
            fill(bias, QUANTIZED_N, type, 0);
        quantized_pack pack = {records, numbers, RECORD, K * element, QUANTIZED_N, K};
        (bits == 8 ? PATH(quantized_packers).int8 : PATH(quantized_packers).int4)[type](&pack);
        linear_call call = {.out = out,
                            .x = x,
                            .weight = records,
                            .bias = bias,
                            .out_step = QUANTIZED_N * element,
                            .x_step = K * element,
                            .weight_step = RECORD,
                            .m = M,
                            .n = QUANTIZED_N,
                            .k = K,
                            .activation = ACTIVATION_NONE};
        PATH(quantized).linear[form][type](&call);
        print("quantized", out, M * QUANTIZED_N, type);
        if (form >= QUANTIZED_INT8_WEIGHT || !PATH(quantized).vnni[form][type]) continue;
        call.out = sum;
        PATH(quantized).vnni[form][type](&call);
        if (memcmp(out, sum, bytes) != 0) puts("VNNI gives other bits");
    }
}

/* Bytes by AMX, which are integers everywhere: one tile of rows, two, and more than a block; an odd number of
 * panels, of groups, and more of them than a block has. */
static void compare_tiles(int64_t m, int64_t n, int64_t k, int type)
{
    enum { MOST_M = 33, MOST_N = 40, MOST_K = 1100 };
    static char numbers[4 * MOST_N * MOST_K], rows[4 * MOST_M * MOST_K], records[3 * 18048],
        results[2][4 * MOST_M * MOST_N];
    int64_t element = ELEMENT_BYTES(type), record = quantized_record(8, k);
    if (!PATH(quantized).tiles[type]) return;
    fill(rows, (size_t)(m * k), type, 400), fill(numbers, (size_t)(n * k), type, 400);
    fill(bias, (size_t)n, type, 0);
    quantized_pack pack = {records, numbers, record, k * element, n, k};
    PATH(quantized_packers).int8[type](&pack);
    memset(results, 0, sizeof(results));
    for (int tiles = 0; tiles < 2; tiles++) {
        linear_call call = {.out = results[tiles],
                            .x = rows,
                            .weight = records,
                            .bias = bias,
                            .out_step = n * element,
                            .x_step = k * element,
                            .weight_step = record,
                            .m = m,
                            .n = n,
                            .k = k,
                            .activation = ACTIVATION_GELU};
        (tiles ? PATH(quantized).tiles[type] : PATH(quantized).linear[QUANTIZED_INT8][type])(&call);
    }
    if (memcmp(results[0], results[1], sizeof(results[0])) != 0) puts("AMX gives other bits");
}

static void run_tiles(void)
{
    for (int type = F32; type <= BF16; type++) {
        compare_tiles(26, 35, 45, type);
        compare_tiles(9, 20, 77, type);
        compare_tiles(1, 16, 64, type);
        compare_tiles(33, 40, 1100, type);
        compare_tiles(2, 17, 0, type);
    }
}

/* Queries for more than two tiles, keys for more than one block, heads as wide as no vector is. */
static void run_attention(int causal, int window)
{
    enum { QUERIES = 9, HEADS = 4, DIMS = 19, KEYS = 70, WIDE = HEADS * DIMS };
    for (int type = F32; type <= BF16; type++) {
        int64_t element = ELEMENT_BYTES(type);
        fill(x, QUERIES * WIDE, type, 0), fill(residual, KEYS * DIMS, type, 0),
            fill(sum, KEYS * DIMS, type, 0);
        attention_call call = {.out = out,
                               .q = x,
                               .k = residual,
                               .v = sum,
                               .out_step = WIDE * element,
                               .out_head = DIMS * element,
                               .q_step = WIDE * element,
                               .q_head = DIMS * element,
                               .k_step = DIMS * element,
                               .v_step = DIMS * element,
                               .queries = QUERIES,
                               .heads = HEADS,
                               .key_heads = 1,
                               .dims = DIMS,
                               .keys = KEYS,
                               .from = window ? 57 : -ATTENTION_FAR,
                               .until = causal ? 63 : ATTENTION_FAR, /* an edge in each of two blocks */
                               .scale = 0.1f};
        PATH(attention).attend[type](&call);
        print("attention", out, QUERIES * WIDE, type);
    }
}

int main(void)
{
    run_probe("exp", PATH(probe).exp, 16 * N, F32);
    run_probe("tanh", PATH(probe).tanh, 16 * N, F32);
    run_probe("erf", PATH(probe).erf, 16 * N, F32);
    run_probe("normal_tail", PATH(probe).normal_tail, 16 * N, F32);
    run_probe("fma", PATH(probe).fma, 16 * N, F32);
    run_probe("sum", PATH(probe).sum, N, F32);
    run_probe("largest", PATH(probe).largest, N, F32);
    run_probe("narrow", PATH(probe).narrow, 16 * N, BF16);
    run_norm("rms_norm", PATH(norm).rms, 0);
    run_norm("add_rms_norm", PATH(norm).add_rms, 1);
    run_norm("layer_norm", PATH(norm).layer, 0);
    run_norm("add_layer_norm", PATH(norm).add_layer, 1);
    run_embedding();
    run_activation("gelu", PATH(activation).gelu, 1);
    run_activation("gelu_tanh", PATH(activation).gelu_tanh, 1);
    run_activation("silu", PATH(activation).silu, 1);
    run_activation("quick_gelu", PATH(activation).quick_gelu, 1);
    run_activation("relu", PATH(activation).relu, 1);
    run_activation("silu_and_mul", PATH(activation).silu_and_mul, 2);
    run_activation("gelu_and_mul", PATH(activation).gelu_and_mul, 2);
    run_activation("softmax", PATH(softmax).softmax, 1);
    run_rotary(PATH(rotary).rotary);
    for (activation_kind a = ACTIVATION_NONE; a <= ACTIVATION_RELU; a++)
        run_linear(a);
    run_dot();
    for (quantized_form f = QUANTIZED_INT8; f < QUANTIZED_FORMS; f++)
        run_quantized(f);
    run_tiles();
    run_attention(0, 0);
    run_attention(1, 0);
    run_attention(1, 1);
    return 0;
}
