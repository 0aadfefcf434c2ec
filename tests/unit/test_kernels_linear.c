/* khub/linear: the bits of the order that linear_blocks.c promises, worked out with fmaf; near the float64
 * result; the same for every instruction set, layout, split and company; nothing written beside the output;
 * the prepare protocol; what it refuses. */
#include "kernels.h"

static const double u32 = 0x1p-24, u16 = 0x1p-8;

enum { CHAIN = 128, PANEL = 16 };

/* One problem: tensors with gaps after each row, first elements `shift` bytes off 64. */
typedef struct problem {
    int64_t m, n, k;
    khub_dtype dtype;
    guarded *out, *x, *weight, *packed, *bias;
} problem;

static double normal_tenth(void)
{
    return random_normal() / 10;
}

static problem problem_new(khub_dtype dtype, int64_t m, int64_t n, int64_t k, int64_t gap, size_t shift,
                           double (*value)(void))
{
    problem p = {.m = m, .n = n, .k = k, .dtype = dtype};
    p.out = guarded_new(dtype, 2, (int64_t[]){m, n}, gap, shift);
    p.x = guarded_new(dtype, 2, (int64_t[]){m, k}, gap, shift);
    p.weight = guarded_new(dtype, 2, (int64_t[]){n, k}, gap, shift);
    p.packed = guarded_new(dtype, 3, (int64_t[]){(n + PANEL - 1) / PANEL, k, PANEL}, 0, shift);
    p.bias = guarded_new(dtype, 1, &n, 0, shift);
    guarded_fill(p.x, value);
    guarded_fill(p.weight, value);
    guarded_fill(p.bias, random_normal);
    return p;
}

static void problem_free(problem *p)
{
    guarded_free(p->out);
    guarded_free(p->x);
    guarded_free(p->weight);
    guarded_free(p->packed);
    guarded_free(p->bias);
}

static void pack(const library *l, problem *p)
{
    ck_kernel_ok(l, "linear_pack", khub_arg_tensor(&p->packed->t), khub_arg_tensor(&p->weight->t));
    ck_assert(guards_hold(p->packed));
}

/* Calls `name` on the packed weight when its name says so. */
static void call(const library *l, problem *p, const char *name, int with_bias)
{
    guarded *weight = strstr(name, "packed") ? p->packed : p->weight;
    memset(p->out->base, FILL, p->out->bytes);
    ck_kernel_ok(l, name, khub_arg_tensor(&p->out->t), khub_arg_tensor(&p->x->t), khub_arg_tensor(&weight->t),
                 with_bias ? khub_arg_tensor(&p->bias->t) : khub_arg_none());
    ck_assert_msg(guards_hold(p->out), "%s wrote beside out", name);
}

/* What linear gives before it is rounded to the type: chains of 128 fused multiply-adds, added in order, and
 * the bias. */
static float exact_bits(const problem *p, int64_t i, int64_t j, int with_bias)
{
    float sum = 0;
    for (int64_t k0 = 0; k0 < p->k; k0 += CHAIN) {
        float chain = 0;
        for (int64_t k = k0; k < p->k && k < k0 + CHAIN; k++)
            chain = fmaf(guarded_get(p->x, i * p->k + k), guarded_get(p->weight, j * p->k + k), chain);
        sum = k0 ? sum + chain : chain;
    }
    return with_bias ? sum + guarded_get(p->bias, j) : sum;
}

/* The sum in double, and what rounding it may cost: each step of a chain, each chain and the bias half a unit
 * of what is summed so far, which is at most the sum of sizes. */
static double exact(const problem *p, int64_t i, int64_t j, int with_bias, double *off)
{
    double sum = with_bias ? guarded_get(p->bias, j) : 0, size = fabs(sum);
    for (int64_t k = 0; k < p->k; k++) {
        double product = (double)guarded_get(p->x, i * p->k + k) * guarded_get(p->weight, j * p->k + k);
        sum += product;
        size += fabs(product);
    }
    double steps = (double)(p->k < CHAIN ? p->k : CHAIN) + (double)p->k / CHAIN + 2;
    *off = size < 0x1p127 ? steps * (u32 * size * 1.0001 + 0x1p-149)
                          : INFINITY; /* or it may overflow on the way */
    return sum;
}

static void check_result(const problem *p, const char *name, const char *isa, int with_bias)
{
    int half = p->dtype.bits == 16;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float got = guarded_get(p->out, i * p->n + j), bits = exact_bits(p, i, j, with_bias);
            float expected = half ? (float)round_bf16(bits) : bits;
            double off, near = exact(p, i, j, with_bias, &off);
            if (half) off += u16 * (fabs(near) + off);
            ck_assert_msg(got == expected || (isnan(got) && isnan(expected)),
                          "%s by %s (m %d n %d k %d): element %d, %d is %a, %a expected", name, isa,
                          (int)p->m, (int)p->n, (int)p->k, (int)i, (int)j, (double)got, (double)expected);
            if (isfinite(near) && isfinite(off))
                ck_assert_msg(fabs(got - near) <= off, "%s by %s: element %d, %d is %g, %g expected", name,
                              isa, (int)i, (int)j, (double)got, near);
        }
}

static const khub_dtype *const dtypes[] = {&f32, &bf16};

/* Every remainder of rows (tiles of 6 or 12 in blocks of 96), columns (panels of 16 in groups of 24, of 4 for
 * one row) and k (chains of 128). */
static const int64_t sizes[][3] = {
    {1, 1, 1},    {1, 16, 16},  {2, 17, 3},    {3, 15, 127}, {4, 33, 128},  {5, 31, 129},
    {6, 48, 130}, {7, 64, 5},   {8, 1, 384},   {9, 129, 17}, {10, 16, 255}, {11, 40, 256},
    {12, 384, 7}, {13, 5, 257}, {14, 100, 31}, {17, 2, 1},   {1, 260, 33},  {2, 390, 300},
    {3, 80, 64},  {23, 18, 2},  {24, 20, 4},   {25, 35, 6},  {98, 19, 130}, {1, 1, 1000},
};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

START_TEST(bits_of_the_written_order)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int a = 0; a < count; a++) {
        library l = library_open("linear", isas[a]);
        for (int s = 0; s < SIZES; s++)
            for (int t = 0; t < 2; t++) {
                int64_t gap = s % 3;
                problem p = problem_new(*dtypes[t], sizes[s][0], sizes[s][1], sizes[s][2], gap,
                                        (size_t)(s % 4) * 4, random_normal);
                pack(&l, &p);
                for (int with_bias = 0; with_bias < 2; with_bias++) {
                    call(&l, &p, "linear", with_bias);
                    check_result(&p, "linear", isas[a], with_bias);
                    call(&l, &p, "linear_packed", with_bias);
                    check_result(&p, "linear_packed", isas[a], with_bias);
                }
                problem_free(&p);
            }
    }
}
END_TEST

/* Any bits: NaN, infinities, subnormal numbers. */
static double any(void)
{
    float v = float_of_bits(random_bits());
    return random_bits() % 8 ? random_normal() : v;
}

START_TEST(nan_and_infinities_go_where_they_belong)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int a = 0; a < count; a++) {
        library l = library_open("linear", isas[a]);
        for (int t = 0; t < 2; t++)
            for (int round = 0; round < 4; round++) {
                problem p = problem_new(*dtypes[t], 9, 37, 3, 0, 0, any);
                pack(&l, &p);
                call(&l, &p, "linear_packed", 1);
                check_result(&p, "linear_packed", isas[a], 1);
                call(&l, &p, "linear", 1);
                check_result(&p, "linear", isas[a], 1);
                problem_free(&p);
            }
    }
}
END_TEST

/* Activations of a float32 that is known to the bit, within 4 units of 2 u32, GeLU's within 6. */
static double gelu(double x, double *off)
{
    double y = x * 0.5 * erfc(-x / sqrt(2));
    *off = fabs(y) * 12 * u32;
    return y;
}
static double times_sigmoid(double x, double t, double *off)
{
    double y = x / (1 + exp(-t));
    *off = fabs(y) * 8 * u32;
    return y;
}
static double gelu_tanh(double x, double *off)
{
    return times_sigmoid(x, 2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x), off);
}
static double silu(double x, double *off)
{
    return times_sigmoid(x, x, off);
}
static double relu(double x, double *off)
{
    *off = 0;
    return x > 0 ? x : 0;
}

START_TEST(activations)
{
    static const struct {
        const char *plain, *packed;
        double (*exact)(double x, double *off);
    } table[] = {{"linear_gelu", "linear_packed_gelu", gelu},
                 {"linear_gelu_tanh", "linear_packed_gelu_tanh", gelu_tanh},
                 {"linear_silu", "linear_packed_silu", silu},
                 {"linear_relu", "linear_packed_relu", relu}};
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int a = 0; a < count; a++) {
        library l = library_open("linear", isas[a]);
        for (int f = 0; f < 8; f++)
            for (int t = 0; t < 2; t++) {
                const char *name = f < 4 ? table[f].plain : table[f - 4].packed;
                problem p = problem_new(*dtypes[t], 7, 35, 20, 1, 0, random_normal);
                pack(&l, &p);
                call(&l, &p, name, 1);
                for (int64_t i = 0; i < p.m * p.n; i++) {
                    double off, x = exact_bits(&p, i / p.n, i % p.n, 1),
                                expected = table[f % 4].exact(x, &off);
                    if (t == 1) off += u16 * (fabs(expected) + off);
                    double got = guarded_get(p.out, i);
                    ck_assert_msg(fabs(got - expected) <= off + 0x1p-134, "%s by %s at %g: %a, %a expected",
                                  name, isas[a], x, got, expected);
                }
                problem_free(&p);
            }
    }
}
END_TEST

/* Added to Linear's float32 before it is rounded; once to another memory, once to the residual's own. */
START_TEST(a_residual_behind_it)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int a = 0; a < count; a++) {
        library l = library_open("linear", isas[a]);
        for (int s = 0; s < SIZES; s += 2)
            for (int t = 0; t < 2; t++) {
                const int64_t *size = sizes[s], gap = s % 3;
                problem p = problem_new(*dtypes[t], size[0], size[1], size[2], gap, 4, random_normal);
                guarded *residual = guarded_new(*dtypes[t], 2, size, gap, 8);
                float *expected = malloc((size_t)(p.m * p.n) * sizeof(float));
                const int packed = s / 2 % 2, with_bias = s / 4 % 2;
                guarded_fill(residual, random_normal);
                pack(&l, &p);
                for (int64_t i = 0; i < p.m * p.n; i++) {
                    float sum = exact_bits(&p, i / p.n, i % p.n, with_bias) + guarded_get(residual, i);
                    expected[i] = t ? (float)round_bf16(sum) : sum;
                }
                guarded *const outs[] = {p.out, residual};
                for (int o = 0; o < 2; o++) {
                    ck_kernel_ok(&l, packed ? "linear_packed_add" : "linear_add",
                                 khub_arg_tensor(&outs[o]->t), khub_arg_tensor(&p.x->t),
                                 khub_arg_tensor(packed ? &p.packed->t : &p.weight->t),
                                 with_bias ? khub_arg_tensor(&p.bias->t) : khub_arg_none(),
                                 khub_arg_tensor(&residual->t));
                    ck_assert(guards_hold(outs[o]));
                    for (int64_t i = 0; i < p.m * p.n; i++)
                        ck_assert_msg(guarded_get(outs[o], i) == expected[i], "%s, m %d n %d k %d: %a, %a",
                                      isas[a], (int)p.m, (int)p.n, (int)p.k, (double)guarded_get(outs[o], i),
                                      (double)expected[i]);
                }
                free(expected);
                guarded_free(residual);
                problem_free(&p);
            }
    }
}
END_TEST

/* A view on rows i … i + count of axis `dim`. */
typedef struct view {
    khub_tensor t;
    int64_t shape[3];
} view;
static void view_of(view *v, const guarded *g, int dim, int64_t from, int64_t count)
{
    v->t = g->t;
    memcpy(v->shape, g->shape, sizeof(v->shape));
    v->shape[dim] = count;
    v->t.shape = v->shape;
    v->t.byte_offset += (uint64_t)(from * g->strides[dim] * (g->t.dtype.bits / 8));
}

START_TEST(same_bits_however_it_is_cut)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    static const int64_t columns[] = {16, 16, 112, 32, 34}, rows[] = {1, 2, 7, 12, 18}; /* 210, 40 */
    for (int a = 0; a < count; a++) {
        library l = library_open("linear", isas[a]);
        for (int t = 0; t < 2; t++) {
            problem p = problem_new(*dtypes[t], 40, 210, 150, 3, 0, normal_tenth);
            pack(&l, &p);
            call(&l, &p, "linear_packed_gelu", 1);
            guarded *whole = p.out;
            p.out = guarded_new(*dtypes[t], 2, (int64_t[]){40, 210}, 3, 0);
            for (int64_t i = 0, at = 0; i < 5; at += rows[i++])
                for (int64_t j = 0, n = 0; j < 5; n += columns[j++]) {
                    view out_rows, out, x, weight, bias;
                    view_of(&out_rows, p.out, 0, at, rows[i]);
                    out = out_rows;
                    out.t.shape = out.shape;
                    out.shape[1] = columns[j];
                    out.t.byte_offset += (uint64_t)(n * (dtypes[t]->bits / 8));
                    view_of(&x, p.x, 0, at, rows[i]);
                    view_of(&weight, p.packed, 0, n / PANEL, (columns[j] + PANEL - 1) / PANEL);
                    view_of(&bias, p.bias, 0, n, columns[j]);
                    ck_kernel_ok(&l, "linear_packed_gelu", khub_arg_tensor(&out.t), khub_arg_tensor(&x.t),
                                 khub_arg_tensor(&weight.t), khub_arg_tensor(&bias.t));
                }
            ck_assert(guards_hold(p.out));
            ck_assert(guarded_equal(p.out, whole));
            guarded_free(whole);
            problem_free(&p);
        }
    }
}
END_TEST

START_TEST(packing)
{
    library l = library_open("linear", NULL);
    static const int64_t shapes[][2] = {{1, 1}, {16, 70}, {17, 3}, {47, 65}, {0, 4}, {4, 0}};
    for (int s = 0; s < 6; s++)
        for (int t = 0; t < 2; t++) {
            int64_t n = shapes[s][0], k = shapes[s][1], room[8] = {9, 9, 9, 9, 9, 9, 9, 9};
            problem p = problem_new(*dtypes[t], 1, n, k, 2, 4, random_normal);
            khub_tensor prepared = {.shape = room, .ndim = 8};
            ck_kernel_ok(&l, "linear_pack", khub_arg_tensor(&prepared), khub_arg_tensor(&p.weight->t));
            ck_assert_int_eq(prepared.ndim, 3);
            ck_assert_mem_eq(&prepared.dtype, dtypes[t], sizeof(khub_dtype));
            ck_assert_int_eq(room[0], (n + 15) / 16);
            ck_assert_int_eq(room[1], k);
            ck_assert_int_eq(room[2], 16);
            ck_assert_int_eq(room[3], 9); /* nothing else is touched */
            ck_assert(prepared.data == NULL && prepared.strides == NULL && prepared.byte_offset == 0);
            pack(&l, &p);
            for (int64_t i = 0; i < p.packed->count; i++) {
                int64_t row = i / (k * PANEL) * PANEL + i % PANEL, column = i / PANEL % k;
                float expected = row < n ? guarded_get(p.weight, row * k + column) : 0;
                ck_assert(bits_of_float(guarded_get(p.packed, i)) == bits_of_float(expected));
            }
            problem_free(&p);
        }
}
END_TEST

static double normal_or_special(void)
{
    uint32_t r = random_bits();
    const double special[] = {NAN, INFINITY, -INFINITY, 3e38, -1e38, 2e38, 0x1p-140, 1e25};
    return r % 64 ? random_normal() : special[r >> 8 & 7];
}

/* RMSNorm and Linear in one: the bits that khub/norm and linear give one after the other. */
START_TEST(a_norm_before_it)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int a = 0; a < count; a++) {
        library l = library_open("linear", isas[a]), norm = library_open("norm", isas[a]);
        for (int s = 0; s < 2 * SIZES; s++)
            for (int t = 0; t < 2; t++) {
                const int64_t *size = sizes[s % SIZES], gap = s % 3;
                double (*value)(void) = s < SIZES ? random_normal : normal_or_special;
                problem p =
                    problem_new(*dtypes[t], size[0], size[1], size[2], gap, (size_t)(s % 4) * 4, value);
                guarded *normed = guarded_new(*dtypes[t], 2, (int64_t[]){size[0], size[2]}, gap, 0),
                        *norm_weight = guarded_new(*dtypes[t], 1, &size[2], 0, 0),
                        *expected = guarded_new(*dtypes[t], 2, (int64_t[]){size[0], size[1]}, gap, 0),
                        *x = p.x;
                guarded_fill(norm_weight, random_normal);
                pack(&l, &p);
                const khub_value eps = khub_arg_float(s % 2 ? 1e-5 : 0.25),
                                 bias = s % 2 ? khub_arg_tensor(&p.bias->t) : khub_arg_none();
                ck_kernel_ok(&norm, "rms_norm", khub_arg_tensor(&normed->t), khub_arg_tensor(&x->t),
                             khub_arg_tensor(&norm_weight->t), eps);
                ck_kernel_ok(&l, "linear", khub_arg_tensor(&expected->t), khub_arg_tensor(&normed->t),
                             khub_arg_tensor(&p.weight->t), bias);
                for (int packed = 0; packed < 2; packed++) {
                    memset(p.out->base, FILL, p.out->bytes);
                    ck_kernel_ok(&l, packed ? "rms_norm_linear_packed" : "rms_norm_linear",
                                 khub_arg_tensor(&p.out->t), khub_arg_tensor(&x->t),
                                 khub_arg_tensor(&norm_weight->t), eps,
                                 khub_arg_tensor(packed ? &p.packed->t : &p.weight->t), bias);
                    ck_assert(guards_hold(p.out));
                    ck_assert_msg(guarded_equal(p.out, expected), "%s, m %d n %d k %d, %s, %s", isas[a],
                                  (int)size[0], (int)size[1], (int)size[2], packed ? "packed" : "plain",
                                  t ? "bfloat16" : "float32");
                }
                guarded_free(normed), guarded_free(norm_weight), guarded_free(expected);
                problem_free(&p);
            }
    }
}
END_TEST

START_TEST(nothing_to_do)
{
    const char *isas[ISAS];
    int count = isas_here(isas);
    static const int64_t empty[][3] = {{0, 5, 3}, {5, 0, 3}, {3, 5, 0}, {0, 0, 0}};
    for (int a = 0; a < count; a++) {
        library l = library_open("linear", isas[a]);
        for (int s = 0; s < 4; s++)
            for (int with_bias = 0; with_bias < 2; with_bias++) {
                problem p = problem_new(f32, empty[s][0], empty[s][1], empty[s][2], 0, 0, random_normal);
                pack(&l, &p);
                call(&l, &p, "linear", with_bias);
                check_result(&p, "linear", isas[a], with_bias); /* k = 0: the bias, or 0 */
                call(&l, &p, "linear_packed", with_bias);
                check_result(&p, "linear_packed", isas[a], with_bias);
                problem_free(&p);
            }
    }
}
END_TEST

START_TEST(what_it_refuses)
{
    library l = library_open("linear", NULL);
    problem p = problem_new(f32, 2, 20, 3, 0, 0, random_normal),
            q = problem_new(bf16, 2, 40, 3, 0, 0, random_normal);
    const khub_value out = khub_arg_tensor(&p.out->t), x = khub_arg_tensor(&p.x->t),
                     w = khub_arg_tensor(&p.weight->t), packed = khub_arg_tensor(&p.packed->t),
                     bias = khub_arg_tensor(&p.bias->t), other = khub_arg_tensor(&q.weight->t),
                     wide = khub_arg_tensor(&q.packed->t);
    ck_kernel_fails("TypeError: linear: weight is bfloat16, out is float32", &l, "linear", out, x, other,
                    bias);
    ck_kernel_fails("ValueError: linear: weight has shape (2, 3), (n, k) is expected with n = 20", &l,
                    "linear", out, x, x, bias);
    ck_kernel_fails("ValueError: linear_packed: weight has shape (20, 3), (p, k, w) is expected", &l,
                    "linear_packed", out, x, w, bias);
    ck_kernel_fails("TypeError: linear_packed: 3 arguments given, 4 expected: out, x, weight, bias", &l,
                    "linear_packed", out, x, packed);
    ck_kernel_fails("TypeError: linear_packed_gelu: weight is None, a tensor is expected", &l,
                    "linear_packed_gelu", out, x, khub_arg_none(), bias);
    /* three panels for 20 outputs */
    int64_t shape[3] = {3, 3, 16};
    khub_tensor three = khub_tensor_f32((float *)(void *)(q.packed->base + GUARD), 3, shape);
    ck_kernel_fails(
        "ValueError: linear_packed: weight has shape (3, 3, 16), (2, 3, 16) is expected for 20 outputs", &l,
        "linear_packed", out, x, khub_arg_tensor(&three), bias);
    shape[0] = 2;
    shape[2] = 8;
    ck_kernel_fails(
        "ValueError: linear_packed: weight has shape (2, 3, 8), (2, 3, 16) is expected for 20 outputs", &l,
        "linear_packed", out, x, khub_arg_tensor(&three), bias);
    shape[2] = 16;
    int64_t strides[3] = {64, 16, 1};
    three.strides = strides;
    ck_kernel_fails("ValueError: linear_packed: weight has gaps between its rows or panels", &l,
                    "linear_packed", out, x, khub_arg_tensor(&three), bias);
    ck_kernel_fails("TypeError: linear_pack: weight is bfloat16, prepared is float32", &l, "linear_pack",
                    packed, other);
    ck_kernel_fails(
        "ValueError: linear_pack: prepared has shape (3, 3, 16), (2, 3, 16) is expected for 20 outputs", &l,
        "linear_pack", (three.strides = NULL, shape[0] = 3, khub_arg_tensor(&three)), w);
    ck_kernel_fails("TypeError: linear_pack: 1 arguments given, 2 expected: prepared, weight", &l,
                    "linear_pack", packed);
    khub_tensor sizeless = {.shape = shape};
    ck_kernel_fails("TypeError: linear_pack: weight is None, a tensor is expected", &l, "linear_pack",
                    khub_arg_tensor(&sizeless), khub_arg_none());
    ck_kernel_fails("ValueError: linear_pack: weight has shape (3, 3, 16), (n, k) is expected", &l,
                    "linear_pack", khub_arg_tensor(&sizeless), wide);
    const khub_value eps = khub_arg_float(1), row = khub_arg_tensor(&q.bias->t);
    ck_kernel_fails("TypeError: rms_norm_linear: norm_weight is bfloat16, out is float32", &l,
                    "rms_norm_linear", out, x, row, eps, w, bias);
    ck_kernel_fails("ValueError: rms_norm_linear: norm_weight has shape (20), (k) is expected with k = 3", &l,
                    "rms_norm_linear", out, x, bias, eps, w, bias);
    ck_kernel_fails(
        "TypeError: rms_norm_linear_packed: 4 arguments given, 6 expected: out, x, norm_weight, eps, "
        "weight, bias",
        &l, "rms_norm_linear_packed", out, x, w, bias);
    shape[0] = 3, shape[1] = 0;
    khub_tensor empty = khub_tensor_f32(NULL, 2, shape), none = khub_tensor_f32(NULL, 1, &shape[1]);
    ck_kernel_fails("ValueError: rms_norm_linear: x has shape (3, 0), (m, k) is expected, none of them 0", &l,
                    "rms_norm_linear", khub_arg_tensor(&empty), khub_arg_tensor(&empty),
                    khub_arg_tensor(&none), eps, khub_arg_tensor(&empty), khub_arg_none());
    problem_free(&p);
    problem_free(&q);
}
END_TEST

UNIT("kernels_linear", bits_of_the_written_order, nan_and_infinities_go_where_they_belong, activations,
     a_residual_behind_it, a_norm_before_it, same_bits_however_it_is_cut, packing, nothing_to_do,
     what_it_refuses)
