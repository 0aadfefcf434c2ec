/* khub/bfloat16 where no instruction multiplies pairs: right by the formula in double, the same bits for
 * every instruction set, batch, split and layout. AVX512-BF16 and AMX are tried where their instructions are
 * emulated (tests/oracle/paths). */
#include "kernels.h"

enum { OUT, X, WEIGHT, BIAS, ARGS };

/* One call's tensors, the weight as it is and packed. */
typedef struct arguments {
    guarded *out, *x, *weight, *bias, *packed;
} arguments;

static guarded *pack(const library *l, guarded *weight)
{
    khub_tensor size = {0};
    int64_t shape[8];
    size.shape = shape;
    ck_kernel_ok(l, "linear_dot_pack", khub_arg_tensor(&size), khub_arg_tensor(&weight->t));
    ck_assert_int_eq(size.ndim, 3);
    ck_assert(is_bf16(size.dtype) && size.dtype.bits == 16);
    guarded *packed = guarded_new(bf16, 3, shape, 0, 0);
    ck_kernel_ok(l, "linear_dot_pack", khub_arg_tensor(&packed->t), khub_arg_tensor(&weight->t));
    ck_assert(guards_hold(packed));
    return packed;
}

static arguments arguments_new(const library *l, khub_dtype dtype, int64_t m, int64_t n, int64_t k,
                               int64_t gap)
{
    const int64_t out[2] = {m, n}, x[2] = {m, k}, weight[2] = {n, k};
    arguments a = {guarded_new(dtype, 2, out, gap, 0), guarded_new(dtype, 2, x, gap, 0),
                   guarded_new(dtype, 2, weight, gap, 0), guarded_new(dtype, 1, &n, 0, 0), NULL};
    guarded_fill(a.x, random_normal);
    guarded_fill(a.weight, random_normal);
    guarded_fill(a.bias, random_normal);
    a.packed = pack(l, a.weight);
    return a;
}

static void arguments_free(arguments *a)
{
    guarded *const all[] = {a->out, a->x, a->weight, a->bias, a->packed};
    for (int i = 0; i < 5; i++)
        guarded_free(all[i]);
}

static void call(const library *l, const char *name, const arguments *a, int with_bias)
{
    ck_kernel_ok(l, name, khub_arg_tensor(&a->out->t), khub_arg_tensor(&a->x->t),
                 khub_arg_tensor(&a->packed->t), with_bias ? khub_arg_tensor(&a->bias->t) : khub_arg_none());
    ck_assert(guards_hold(a->out));
}

static double same(double x)
{
    return x;
}
static double gelu(double x)
{
    return x / 2 * erfc(-x / sqrt(2));
}
static double gelu_tanh(double x)
{
    return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}
static double silu(double x)
{
    return x / (1 + exp(-x));
}
static double relu(double x)
{
    return x > 0 ? x : 0;
}
static const struct {
    const char *name;
    double (*apply)(double x);
    double steep; /* the most that it is */
} functions[] = {{"linear_dot", same, 1},
                 {"linear_dot_gelu", gelu, 1.13},
                 {"linear_dot_gelu_tanh", gelu_tanh, 1.13},
                 {"linear_dot_silu", silu, 1.1},
                 {"linear_dot_relu", relu, 1}};

/* A chain of 128 and one of chains: each addition rounds to 24 bits what isn't larger than the sum of the
 * sizes; the products are exact. What x and the weight lose when they are rounded isn't an error here. */
static void check(const arguments *a, size_t f, int with_bias)
{
    int64_t m = a->x->shape[0], n = a->weight->shape[0], k = a->x->shape[1];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = with_bias ? guarded_get(a->bias, j) : 0, size = fabs(sum);
            for (int64_t l = 0; l < k; l++) {
                double term =
                    round_bf16(guarded_get(a->x, i * k + l)) * round_bf16(guarded_get(a->weight, j * k + l));
                sum += term, size += fabs(term);
            }
            double out = functions[f].apply(sum), got = guarded_get(a->out, i * n + j);
            double off = functions[f].steep * size * 0x1p-24 * (double)(128 + k / 128 + 1);
            off += 8 * 0x1p-24 * fabs(out) + 0x1p-149; /* the activation's own */
            off += stored_within(a->out->t.dtype) * (fabs(out) + off);
            ck_assert_msg(fabs(got - out) <= off, "%s: (%lld, %lld) is %a, %a expected", functions[f].name,
                          (long long)i, (long long)j, got, out);
        }
}

/* Rows, columns and elements: none, one, beside multiples of tiles, panels, chains and blocks. */
static const int64_t shapes[][3] = {{1, 1, 1},     {1, 16, 2}, {3, 17, 33},  {7, 48, 31},
                                    {1, 130, 129}, {2, 33, 0}, {97, 20, 65}, {13, 400, 40},
                                    {6, 65, 300},  {5, 0, 3},  {0, 16, 16}};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes), FUNCTIONS = sizeof(functions) / sizeof(*functions) };

START_TEST(right_by_the_formula)
{
    library l = library_open("bfloat16", all_isas[0]);
    for (int s = 0; s < SHAPES; s++)
        for (int half = 0; half < 2; half++) {
            arguments a =
                arguments_new(&l, half ? bf16 : f32, shapes[s][0], shapes[s][1], shapes[s][2], s % 3);
            for (size_t f = 0; f < FUNCTIONS; f++)
                for (int with_bias = 0; with_bias < 2; with_bias++) {
                    call(&l, functions[f].name, &a, with_bias);
                    check(&a, f, with_bias);
                }
            arguments_free(&a);
        }
}
END_TEST

/* What has to be in the packed weight, written out once more. */
START_TEST(packed_in_pairs)
{
    enum { N = 19, K = 35 };
    library l = library_open("bfloat16", NULL);
    for (int half = 0; half < 2; half++) {
        arguments a = arguments_new(&l, half ? bf16 : f32, 1, N, K, 3);
        ck_assert_int_eq(a.packed->shape[0], 2);
        ck_assert_int_eq(a.packed->shape[1], 32);
        ck_assert_int_eq(a.packed->shape[2], 32);
        for (int64_t at = 0; at < a.packed->count; at++) {
            int64_t p = at / 1024, i = at / 32 % 32, j = at % 32 / 2, n = 16 * p + j, k = 2 * i + !(at & 1);
            double want = n < N && k < K ? round_bf16(guarded_get(a.weight, n * K + k)) : 0;
            ck_assert_msg(guarded_get(a.packed, at) == want, "element %lld", (long long)at);
        }
        arguments_free(&a);
    }
}
END_TEST

START_TEST(same_bits_for_every_instruction_set)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int s = 0; s < SHAPES; s++)
        for (int half = 0; half < 2; half++) {
            library first = library_open("bfloat16", isas[0]);
            arguments a =
                arguments_new(&first, half ? bf16 : f32, shapes[s][0], shapes[s][1], shapes[s][2], 0);
            arguments b = a;
            if (a.x->count) guarded_set(a.x, 0, NAN);
            if (a.x->count > 2) guarded_set(a.x, a.x->count - 1, 0x1.fp-130);
            b.out = guarded_new(a.out->t.dtype, 2, shapes[s], 5, 4);
            call(&first, "linear_dot_gelu", &a, 1);
            for (int k = 1; k < count; k++) {
                library l = library_open("bfloat16", isas[k]);
                call(&l, "linear_dot_gelu", &b, 1);
                ck_assert_msg(guarded_equal(a.out, b.out), "%s, shape %d", isas[k], s);
            }
            guarded_free(b.out);
            arguments_free(&a);
        }
}
END_TEST

/* Rows alone, and columns from a panel on, by whatever the processor has. */
START_TEST(same_bits_for_every_split)
{
    enum { M = 69, N = 100, K = 200 };
    library l = library_open("bfloat16", NULL);
    for (int half = 0; half < 2; half++) {
        arguments a = arguments_new(&l, half ? bf16 : f32, M, N, K, 0), b = a;
        const int64_t shape[2] = {M, N};
        b.out = guarded_new(a.out->t.dtype, 2, shape, 0, 0);
        call(&l, "linear_dot_silu", &a, 1);
        uint64_t size = a.out->t.dtype.bits / 8;
        for (int64_t i = 0; i < M; i += 1 + i % 3)
            for (int64_t j = 0; j < N; j += 48) {
                int64_t rows = i + 1 + i % 3 > M ? M - i : 1 + i % 3, columns = j + 48 > N ? N - j : 48;
                int64_t out[2] = {rows, columns}, x[2] = {rows, K},
                        packed[3] = {(columns + 15) / 16, a.packed->shape[1], 32};
                khub_tensor t[ARGS] = {b.out->t, b.x->t, b.packed->t, b.bias->t};
                t[OUT].shape = out, t[X].shape = x, t[WEIGHT].shape = packed, t[BIAS].shape = out + 1;
                t[OUT].byte_offset += (uint64_t)(i * N + j) * size;
                t[X].byte_offset += (uint64_t)(i * K) * size;
                t[WEIGHT].byte_offset += (uint64_t)(j / 16 * a.packed->strides[0] * 2);
                t[BIAS].byte_offset += (uint64_t)j * size;
                ck_kernel_ok(&l, "linear_dot_silu", khub_arg_tensor(&t[OUT]), khub_arg_tensor(&t[X]),
                             khub_arg_tensor(&t[WEIGHT]), khub_arg_tensor(&t[BIAS]));
            }
        ck_assert(guarded_equal(a.out, b.out) && guards_hold(b.out));
        guarded_free(b.out);
        arguments_free(&a);
    }
}
END_TEST

START_TEST(arguments_that_do_not_fit)
{
    library l = library_open("bfloat16", NULL);
    arguments a = arguments_new(&l, f32, 2, 20, 40, 0);
    ck_kernel_fails("TypeError: linear_dot: weight is float32, bfloat16 is expected", &l, "linear_dot",
                    khub_arg_tensor(&a.out->t), khub_arg_tensor(&a.x->t), khub_arg_tensor(&a.weight->t),
                    khub_arg_tensor(&a.bias->t));
    a.packed->shape[1] = 16;
    ck_kernel_fails(
        "ValueError: linear_dot: weight has shape (2, 16, 32), (2, 32, 32) is expected for 20 by 40", &l,
        "linear_dot", khub_arg_tensor(&a.out->t), khub_arg_tensor(&a.x->t), khub_arg_tensor(&a.packed->t),
        khub_arg_none());
    a.packed->shape[1] = 32, a.packed->strides[0] = 1056;
    ck_kernel_fails("ValueError: linear_dot: weight has gaps between its rows or panels", &l, "linear_dot",
                    khub_arg_tensor(&a.out->t), khub_arg_tensor(&a.x->t), khub_arg_tensor(&a.packed->t),
                    khub_arg_none());
    arguments_free(&a);
}
END_TEST

UNIT("kernels_bfloat16", right_by_the_formula, packed_in_pairs, same_bits_for_every_instruction_set,
     same_bits_for_every_split, arguments_that_do_not_fit)
