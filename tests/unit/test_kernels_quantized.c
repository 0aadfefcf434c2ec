/* khub/quantized: the bits of the definition in quantized_blocks.c and quantized_pack.c, worked out element
 * by element; the same for every instruction set, layout, split and company; nothing written beside the
 * output; the prepare protocol; what it refuses. */
#include "kernels.h"

enum { PANEL = 16, GROUP = 32 };

static const khub_dtype u8 = {KHUB_DTYPE_UINT, 8, 1};
static const khub_dtype *const dtypes[] = {&f32, &bf16};

typedef struct form {
    const char *name;
    int x_bits, weight_bits;
} form;
static const form forms[] = {{"linear_int8", 8, 8},
                             {"linear_int4", 8, 4},
                             {"linear_int8_weight", 16, 8},
                             {"linear_int4_weight", 16, 4}};

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to;
}

/* What docs/kernels.md says of a packed weight's size. */
static int64_t record_bytes(int bits, int64_t k)
{
    return bits == 8 ? up(k, GROUP) * 512 + 128 : up(k, GROUP) * 256 + up(up(k, GROUP), 2) * 64;
}

typedef struct problem {
    int64_t m, n, k;
    guarded *out, *x, *weight, *packed[2], *bias; /* of 8, of 4 bits */
} problem;

static problem problem_new(khub_dtype dtype, int64_t m, int64_t n, int64_t k, int64_t gap, size_t shift,
                           double (*value)(void))
{
    problem p = {.m = m, .n = n, .k = k};
    p.out = guarded_new(dtype, 2, (int64_t[]){m, n}, gap, shift);
    p.x = guarded_new(dtype, 2, (int64_t[]){m, k}, gap, shift);
    p.weight = guarded_new(dtype, 2, (int64_t[]){n, k}, gap, shift);
    for (int b = 0; b < 2; b++)
        p.packed[b] =
            guarded_new(u8, 2, (int64_t[]){up(n, PANEL), record_bytes(b ? 4 : 8, k)}, gap * 3, shift);
    p.bias = guarded_new(dtype, 1, &n, 0, shift);
    guarded_fill(p.x, value);
    guarded_fill(p.weight, value);
    guarded_fill(p.bias, random_normal);
    return p;
}

static void problem_free(problem *p)
{
    guarded *const all[] = {p->out, p->x, p->weight, p->packed[0], p->packed[1], p->bias};
    for (int i = 0; i < 6; i++)
        guarded_free(all[i]);
}

static void pack(const library *l, problem *p)
{
    for (int b = 0; b < 2; b++) {
        ck_kernel_ok(l, b ? "quantize_int4" : "quantize_int8", khub_arg_tensor(&p->packed[b]->t),
                     khub_arg_tensor(&p->weight->t));
        ck_assert(guards_hold(p->packed[b]));
    }
}

static void call(const library *l, problem *p, const char *name, int with_bias)
{
    memset(p->out->base, FILL, p->out->bytes);
    ck_kernel_ok(l, name, khub_arg_tensor(&p->out->t), khub_arg_tensor(&p->x->t),
                 khub_arg_tensor(&p->packed[strstr(name, "int4") != NULL]->t),
                 with_bias ? khub_arg_tensor(&p->bias->t) : khub_arg_none());
    ck_assert_msg(guards_hold(p->out), "%s wrote beside out", name);
}

/* ---- the definition ---- */

/* Numbers as integers of a scale. */
typedef struct integers {
    float scale[64]; /* of each group, or all the same */
    int32_t q[2048];
} integers;

/* count numbers from `from` on, a row of x or of the weight, to -most … most. */
static void quantize(integers *out, const guarded *g, int64_t from, int64_t count, int32_t most)
{
    float largest = 0;
    int odd = 0;
    for (int64_t i = 0; i < count; i++) {
        float v = guarded_get(g, from + i);
        odd |= !isfinite(v);
        if (fabsf(v) > largest) largest = fabsf(v);
    }
    int zeros = odd || largest <= 0x1p-100f;
    *out->scale = odd ? NAN : zeros ? 0 : largest / (float)most;
    for (int64_t i = 0; i < count; i++)
        out->q[i] = zeros ? 0 : (int32_t)nearbyintf(guarded_get(g, from + i) * ((float)most / largest));
}

/* A group of a weight to -8 … 7: what is furthest from 0 becomes -8, of two with both signs the negative one.
 */
static void quantize_4(integers *out, const guarded *g, int64_t from, int64_t count)
{
    float furthest = 0;
    int odd = 0;
    for (int64_t i = 0; i < count; i++) {
        float v = guarded_get(g, from + i);
        odd |= !isfinite(v);
        if (fabsf(v) > fabsf(furthest) || (v < 0 && -v == furthest)) furthest = v;
    }
    int zeros = odd || fabsf(furthest) <= 0x1p-100f;
    float scale = (float)round_bf16(furthest / -8);
    *out->scale = odd ? NAN : zeros ? 0 : scale;
    for (int64_t i = 0; i < count; i++) {
        float v = zeros ? 0 : guarded_get(g, from + i) * (1 / scale);
        out->q[i] = (int32_t)nearbyintf(v < 7 ? v : 7);
    }
}

/* The row of `count` numbers from `from` on in groups of `group`. */
static void in_groups(integers *out, const guarded *g, int64_t from, int64_t count, int64_t group, int bits)
{
    for (int64_t i = 0; i * group < count; i++) {
        static integers one;
        int64_t here = count - i * group < group ? count - i * group : group;
        if (bits == 4)
            quantize_4(&one, g, from + i * group, here);
        else
            quantize(&one, g, from + i * group, here, bits == 8 ? 127 : 32767);
        out->scale[i] = one.scale[0];
        memcpy(out->q + i * group, one.q, (size_t)here * sizeof(*one.q));
    }
}

static float defined(const problem *p, const form *f, int64_t i, int64_t j, int with_bias)
{
    static integers x, w; /* of a row of nothing: scales of 0 */
    int x_grouped = f->x_bits == 16, w_grouped = f->weight_bits == 4;
    int64_t all = p->k ? p->k : 1;
    x.scale[0] = w.scale[0] = 0;
    in_groups(&x, p->x, i * p->k, p->k, x_grouped ? GROUP : all, f->x_bits);
    in_groups(&w, p->weight, j * p->k, p->k, w_grouped ? GROUP : all, f->weight_bits);
    float total = 0;
    int64_t group = x_grouped || w_grouped ? GROUP : all;
    for (int64_t g = 0; g * group < p->k; g++) {
        int64_t sum = 0;
        for (int64_t k = g * group; k < p->k && k < (g + 1) * group; k++)
            sum += (int64_t)x.q[k] * w.q[k];
        float s = w.scale[w_grouped ? g : 0];
        if (x_grouped)
            total = fmaf((float)sum, x.scale[g] * s, total);
        else
            total = w_grouped ? fmaf((float)sum, s, total) : (float)sum * (x.scale[0] * s);
    }
    if (w_grouped && !x_grouped) total *= x.scale[0];
    return with_bias ? total + guarded_get(p->bias, j) : total;
}

static void check_result(const problem *p, const form *f, const char *isa, int with_bias)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float got = guarded_get(p->out, i * p->n + j), expected = defined(p, f, i, j, with_bias);
            if (p->out->t.dtype.bits == 16) expected = (float)round_bf16(expected);
            ck_assert_msg(got == expected || (isnan(got) && isnan(expected)),
                          "%s by %s (m %d n %d k %d): element %d, %d is %a, %a expected", f->name,
                          isa ? isa : "the best", (int)p->m, (int)p->n, (int)p->k, (int)i, (int)j,
                          (double)got, (double)expected);
        }
}

/* Each path, and what is taken when nobody names one: that may use VNNI. */
static int paths_here(const char *paths[ISAS + 1])
{
    int count = isas_here(paths);
    paths[count] = NULL;
    return count + 1;
}

static void check_all(const library *l, problem *p)
{
    pack(l, p);
    for (int f = 0; f < 4; f++)
        for (int with_bias = 0; with_bias < 2; with_bias++) {
            call(l, p, forms[f].name, with_bias);
            check_result(p, &forms[f], l->isa, with_bias);
        }
}

/* Remainders of rows (tiles of up to 6 or 12 in blocks of 24), columns (panels of 16, tiles of up to 4 in
 * blocks of 16), k (groups of 32, what a block of these rows holds). */
static const int64_t sizes[][3] = {
    {1, 1, 1},   {1, 16, 4},    {2, 17, 3},   {3, 15, 31}, {4, 33, 32},   {5, 31, 33},   {6, 48, 64},
    {7, 64, 5},  {1, 129, 17},  {8, 20, 255}, {12, 5, 96}, {13, 16, 127}, {17, 2, 1},    {1, 290, 7},
    {2, 70, 65}, {24, 18, 520}, {25, 9, 6},   {49, 3, 34}, {1, 3, 2000},  {23, 1, 1100},
};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

START_TEST(bits_of_the_definition)
{
    const char *paths[ISAS + 1];
    int count = paths_here(paths);
    for (int a = 0; a < count; a++) {
        library l = library_open("quantized", paths[a]);
        for (int s = 0; s < SIZES; s++) {
            problem p = problem_new(*dtypes[s % 2], sizes[s][0], sizes[s][1], sizes[s][2], s % 3,
                                    (size_t)(s % 4) * 4, random_normal);
            check_all(&l, &p);
            problem_free(&p);
        }
    }
}
END_TEST

/* NaN, infinities, zeros, subnormal numbers, the largest: some in each row. */
static double special(void)
{
    static const double all[] = {NAN, INFINITY, -INFINITY, 3e38, -1e38, 0x1p-140, 1e25, -0.0};
    uint32_t r = random_bits();
    return r % 128 ? random_normal() : all[r >> 8 & 7];
}
static double large(void)
{
    return random_normal() * 0x1p124;
}
/* About where all counts as zeros. */
static double tiny(void)
{
    return ldexp(random_normal(), -99 - (int)(random_bits() % 8));
}
static double subnormal(void)
{
    return ldexp(random_normal(), -140);
}
/* Halves, and the two largest of a group of two signs. */
static double tie(void)
{
    return ((int)(random_bits() % 255) - 127) / 2.0;
}
static double zero(void)
{
    return 0;
}

START_TEST(numbers_that_are_none_too_large_too_small)
{
    static double (*const values[])(void) = {special, large, tiny, subnormal, tie, zero};
    const char *paths[ISAS + 1];
    int count = paths_here(paths);
    for (int a = 0; a < count; a++) {
        library l = library_open("quantized", paths[a]);
        for (int v = 0; v < 6; v++) {
            problem p = problem_new(*dtypes[v % 2], 7, 37, 70, 0, 0, values[v]);
            check_all(&l, &p);
            problem_free(&p);
        }
    }
}
END_TEST

/* A row that holds NaN or an infinity is NaN, whatever the form; its neighbours are what they would be. */
START_TEST(what_is_not_finite_stays_in_its_row)
{
    library l = library_open("quantized", NULL);
    problem p = problem_new(f32, 3, 5, 40, 0, 0, random_normal);
    guarded_set(p.x, 1 * 40 + 33, INFINITY);
    pack(&l, &p);
    for (int f = 0; f < 4; f++) {
        call(&l, &p, forms[f].name, 1);
        for (int64_t i = 0; i < 15; i++)
            ck_assert_int_eq(isnan(guarded_get(p.out, i)) != 0, i / 5 == 1);
    }
    problem_free(&p);
}
END_TEST

/* The fused activations are khub/activation's of the result without one. */
START_TEST(activations)
{
    static const char *const names[] = {"gelu", "gelu_tanh", "silu", "relu"};
    library l = library_open("quantized", NULL), activation = library_open("activation", NULL);
    problem p = problem_new(f32, 7, 35, 40, 1, 0, random_normal);
    guarded *expected = guarded_new(f32, 2, (int64_t[]){7, 35}, 0, 0);
    pack(&l, &p);
    for (int f = 0; f < 4; f++)
        for (int a = 0; a < 4; a++) {
            char name[64];
            call(&l, &p, forms[f].name, 1);
            ck_kernel_ok(&activation, names[a], khub_arg_tensor(&expected->t), khub_arg_tensor(&p.out->t));
            snprintf(name, sizeof(name), "%s_%s", forms[f].name, names[a]);
            call(&l, &p, name, 1);
            ck_assert_msg(guarded_equal(p.out, expected), "%s", name);
        }
    guarded_free(expected);
    problem_free(&p);
}
END_TEST

/* Part of a tensor: `count` from `from` on of axis `dim`. */
static khub_tensor part_of(const guarded *g, int64_t shape[2], int dim, int64_t from, int64_t count)
{
    khub_tensor t = g->t;
    memcpy(shape, g->shape, 2 * sizeof(*shape));
    shape[dim] = count;
    t.shape = shape;
    t.byte_offset += (uint64_t)(from * g->strides[dim] * (g->t.dtype.bits / 8));
    return t;
}

START_TEST(same_bits_however_it_is_cut)
{
    static const int64_t columns[] = {16, 16, 112, 32, 34}, rows[] = {1, 2, 7, 12, 18}; /* 210, 40 */
    library l = library_open("quantized", NULL);
    for (int f = 0; f < 4; f++) {
        problem p = problem_new(*dtypes[f % 2], 40, 210, 150, 3, 0, random_normal);
        pack(&l, &p);
        call(&l, &p, forms[f].name, 1);
        guarded *whole = p.out, *packed = p.packed[forms[f].weight_bits == 4];
        p.out = guarded_new(*dtypes[f % 2], 2, (int64_t[]){40, 210}, 3, 0);
        for (int64_t i = 0, at = 0; i < 5; at += rows[i++])
            for (int64_t j = 0, n = 0; j < 5; n += columns[j++]) {
                int64_t shape[4][2];
                khub_tensor out = part_of(p.out, shape[0], 0, at, rows[i]),
                            x = part_of(p.x, shape[1], 0, at, rows[i]),
                            weight =
                                part_of(packed, shape[2], 0, n / PANEL, (columns[j] + PANEL - 1) / PANEL),
                            bias = part_of(p.bias, shape[3], 0, n, columns[j]);
                shape[0][1] = columns[j];
                out.byte_offset += (uint64_t)(n * (dtypes[f % 2]->bits / 8));
                ck_kernel_ok(&l, forms[f].name, khub_arg_tensor(&out), khub_arg_tensor(&x),
                             khub_arg_tensor(&weight), khub_arg_tensor(&bias));
            }
        ck_assert(guards_hold(p.out));
        ck_assert(guarded_equal(p.out, whole));
        guarded_free(whole);
        problem_free(&p);
    }
}
END_TEST

START_TEST(packing)
{
    library l = library_open("quantized", NULL);
    static const int64_t shapes[][2] = {{1, 1}, {17, 33}, {47, 64}, {0, 4}, {4, 0}};
    for (int s = 0; s < 5; s++)
        for (int b = 0; b < 2; b++) {
            int64_t room[8] = {9, 9, 9, 9, 9, 9, 9, 9};
            guarded *weight = guarded_new(*dtypes[s % 2], 2, shapes[s], 2, 4);
            khub_tensor prepared = {.shape = room, .ndim = 8};
            ck_kernel_ok(&l, b ? "quantize_int4" : "quantize_int8", khub_arg_tensor(&prepared),
                         khub_arg_tensor(&weight->t));
            ck_assert_int_eq(prepared.ndim, 2);
            ck_assert_mem_eq(&prepared.dtype, &u8, sizeof(u8));
            ck_assert_int_eq(room[0], up(shapes[s][0], PANEL));
            ck_assert_int_eq(room[1], record_bytes(b ? 4 : 8, shapes[s][1]));
            ck_assert_int_eq(room[2], 9); /* nothing else is touched */
            ck_assert(prepared.data == NULL && prepared.strides == NULL && prepared.byte_offset == 0);
            guarded_free(weight);
        }
}
END_TEST

START_TEST(nothing_to_do)
{
    static const int64_t empty[][3] = {{0, 5, 3}, {5, 0, 3}, {3, 5, 0}, {0, 0, 0}};
    const char *paths[ISAS + 1];
    int count = paths_here(paths);
    for (int a = 0; a < count; a++) {
        library l = library_open("quantized", paths[a]);
        for (int s = 0; s < 4; s++) {
            problem p = problem_new(f32, empty[s][0], empty[s][1], empty[s][2], 0, 0, random_normal);
            check_all(&l, &p); /* k = 0: the bias, or 0 */
            problem_free(&p);
        }
    }
}
END_TEST

START_TEST(what_it_refuses)
{
    library l = library_open("quantized", NULL);
    problem p = problem_new(f32, 2, 20, 3, 0, 0, random_normal);
    const khub_value out = khub_arg_tensor(&p.out->t), x = khub_arg_tensor(&p.x->t),
                     eight = khub_arg_tensor(&p.packed[0]->t), four = khub_arg_tensor(&p.packed[1]->t),
                     bias = khub_arg_tensor(&p.bias->t), weight = khub_arg_tensor(&p.weight->t);
    ck_kernel_fails("TypeError: linear_int8: weight is float32, uint8 is expected", &l, "linear_int8", out, x,
                    weight, bias);
    ck_kernel_fails(
        "ValueError: linear_int8: weight has shape (2, 320), (2, 640) is what 8 bits take for 20 by 3", &l,
        "linear_int8", out, x, four, bias);
    ck_kernel_fails("ValueError: linear_int4_weight_gelu: weight has shape (2, 640), (2, 320) is what 4 bits "
                    "take for 20 by 3",
                    &l, "linear_int4_weight_gelu", out, x, eight, bias);
    ck_kernel_fails(
        "ValueError: quantize_int4: prepared has shape (2, 640), (2, 320) is what 4 bits take for 20 by 3",
        &l, "quantize_int4", eight, weight);
    int64_t wide[2] = {2, 131073}, record[2] = {2, 4097 * 512 + 128};
    float *numbers = calloc(2 * 131073, sizeof(*numbers));
    unsigned char *packed = calloc(2, (size_t)record[1]);
    khub_tensor rows = khub_tensor_f32(numbers, 2, wide), bytes = khub_tensor_over(packed, u8, 2, record);
    ck_kernel_fails("ValueError: linear_int8: x has rows of 131073 elements, at most 131072 are handled", &l,
                    "linear_int8", out, khub_arg_tensor(&rows), khub_arg_tensor(&bytes), bias);
    free(numbers), free(packed);
    problem_free(&p);
}
END_TEST

/* Sums of products as large as they get: the 131072nd element of a row still fits. */
START_TEST(the_longest_row)
{
    library l = library_open("quantized", NULL);
    int64_t k = 131072, x_shape[2] = {1, k}, out_shape[2] = {1, 1}, record[2] = {1, k * 16 + 128};
    float *ones = malloc((size_t)k * sizeof(*ones)), result = 0;
    unsigned char *packed = calloc(1, (size_t)record[1]);
    for (int64_t i = 0; i < k; i++)
        ones[i] = 1;
    khub_tensor x = khub_tensor_f32(ones, 2, x_shape), out = khub_tensor_f32(&result, 2, out_shape),
                bytes = khub_tensor_over(packed, u8, 2, record);
    ck_kernel_ok(&l, "quantize_int8", khub_arg_tensor(&bytes), khub_arg_tensor(&x));
    ck_kernel_ok(&l, "linear_int8", khub_arg_tensor(&out), khub_arg_tensor(&x), khub_arg_tensor(&bytes),
                 khub_arg_none());
    float scale = 1 / 127.0f;
    ck_assert(result == (float)(k * 127 * 127) * (scale * scale));
    free(ones), free(packed);
}
END_TEST

UNIT("kernels_quantized", bits_of_the_definition, numbers_that_are_none_too_large_too_small,
     what_is_not_finite_stays_in_its_row, activations, same_bits_however_it_is_cut, packing, nothing_to_do,
     what_it_refuses, the_longest_row)
