/* The built-in kernels that work row by row (khub/norm, activation, softmax): right by the formula in double,
 * the same bits for every instruction set, every split, every layout, in place or not, and nothing written
 * beside the output. */
#include "kernels.h"

/* What rounding costs at most, relative: 24 bits of precision; where those of 16 bits are stored, with the
 * smallest number's half. */
static const double u32 = 0x1p-24;
static double stored(khub_dtype dtype, double size)
{
    if (dtype.bits == 32) return 0;
    return size * stored_within(dtype) + (is_bf16(dtype) ? 0x1p-134 : 0x1p-25);
}
static double round_in(khub_dtype dtype, double v)
{
    return dtype.bits == 32 ? v : is_bf16(dtype) ? round_bf16(v) : round_f16(v);
}

/* What a reference gets and gives: rows of double, `off` the error that float32 arithmetic may make (reasons
 * below). */
typedef struct row {
    double *out, *off;
    const double *x, *residual, *weight, *bias;
    double eps;
    int64_t n;
} row;

typedef void reference(const row *r);

/* One function: its arguments by letter: o out, s sum, x x, X x of 2n, r residual, w weight, b bias, e eps.
 */
typedef struct function {
    const char *repository, *name, *args;
    reference *exact;
} function;

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

/* A sum of n terms in 16 chains and a tree of 4 is off by (n/16 + 4) half ULPs of the sum of sizes at most;
 * mean, difference, square root, quotient and the two products by one each. The factor 2 is for what the
 * first order leaves out. */
static void norm(const row *r, int centered)
{
    double mean = 0, size = 0, variance = 0, chain = 2 * ((double)r->n / 16 + 5) * u32;
    for (int64_t i = 0; i < r->n; i++)
        mean += r->x[i] / (double)r->n, size += fabs(r->x[i]) / (double)r->n;
    if (!centered) mean = size = 0;
    for (int64_t i = 0; i < r->n; i++)
        variance += (r->x[i] - mean) * (r->x[i] - mean) / (double)r->n;
    double scale = 1 / sqrt(variance + r->eps);
    for (int64_t i = 0; i < r->n; i++) {
        double bias = r->bias ? r->bias[i] : 0, weight = scale * fabs(r->weight[i]), d = r->x[i] - mean;
        r->out[i] = d * scale * r->weight[i] + bias;
        /* the mean's error moves the row; d's rounding and the variance's error stretch it */
        r->off[i] = chain * size * weight * (1 + fabs(d) * scale) + (chain + 12 * u32) * fabs(d) * weight +
                    u32 * fabs(r->out[i]) + 2 * u32 * fabs(bias);
    }
}
static void rms_norm(const row *r)
{
    norm(r, 0);
}
static void layer_norm(const row *r)
{
    norm(r, 1);
}

/* x - max is rounded (u32 of itself, which exp turns into a relative error), exp is within 2 ULP (4 u32 where
 * the mantissa is small), the sum is a chain, the quotient is rounded; below the normal numbers, a unit of
 * those. */
static void softmax(const row *r)
{
    double most = -INFINITY, total = 0, chain = 2 * ((double)r->n / 16 + 5) * u32;
    for (int64_t i = 0; i < r->n; i++)
        most = fmax(most, r->x[i]);
    for (int64_t i = 0; i < r->n; i++)
        total += exp(r->x[i] - most);
    for (int64_t i = 0; i < r->n; i++) {
        r->out[i] = exp(r->x[i] - most) / total;
        r->off[i] = r->out[i] * (fabs(r->x[i] - most) * u32 + 16 * u32 + chain) + 0x1p-148;
    }
}

/* x · sigmoid(t): within 4 units of 2 u32, and of the smallest number. */
static void times_sigmoid(const row *r, double (*t_of)(double))
{
    for (int64_t i = 0; i < r->n; i++) {
        r->out[i] = r->x[i] * sigmoid(t_of(r->x[i]));
        r->off[i] = fabs(r->out[i]) * 8 * u32 + 0x1p-149;
    }
}
static double same(double x)
{
    return x;
}
static double quick(double x)
{
    return 1.702 * x;
}
static double twice_tanh_argument(double x)
{
    return 2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
}
static void silu(const row *r)
{
    times_sigmoid(r, same);
}
static void quick_gelu(const row *r)
{
    times_sigmoid(r, quick);
}
/* x/2 (1 + tanh(u)) = x sigmoid(2u), which double can tell from 0 for all x */
static void gelu_tanh(const row *r)
{
    times_sigmoid(r, twice_tanh_argument);
}

/* erfc keeps its digits where Φ is nearly 0. */
static void gelu(const row *r)
{
    for (int64_t i = 0; i < r->n; i++) {
        double x = r->x[i];
        r->out[i] = x * 0.5 * erfc(-x / sqrt(2));
        r->off[i] = fabs(r->out[i]) * 12 * u32 + 0x1p-149;
    }
}
static void relu(const row *r)
{
    for (int64_t i = 0; i < r->n; i++)
        r->out[i] = r->x[i] > 0 ? r->x[i] : 0, r->off[i] = 0;
}

/* The second half of x, of 2n, times the reference of the first. */
static void gated(const row *r, reference *first)
{
    first(r);
    for (int64_t i = 0; i < r->n; i++) {
        double gate = r->x[r->n + i];
        r->off[i] = r->off[i] * fabs(gate) + u32 * fabs(r->out[i] * gate) + 0x1p-148;
        r->out[i] *= gate;
    }
}
static void silu_and_mul(const row *r)
{
    gated(r, silu);
}
static void gelu_and_mul(const row *r)
{
    gated(r, gelu);
}

static const function functions[] = {
    {"norm", "rms_norm", "oxwe", rms_norm},
    {"norm", "add_rms_norm", "osxrwe", rms_norm},
    {"norm", "layer_norm", "oxwbe", layer_norm},
    {"norm", "add_layer_norm", "osxrwbe", layer_norm},
    {"softmax", "softmax", "ox", softmax},
    {"activation", "gelu", "ox", gelu},
    {"activation", "gelu_tanh", "ox", gelu_tanh},
    {"activation", "silu", "ox", silu},
    {"activation", "quick_gelu", "ox", quick_gelu},
    {"activation", "relu", "ox", relu},
    {"activation", "silu_and_mul", "oX", silu_and_mul},
    {"activation", "gelu_and_mul", "oX", gelu_and_mul},
};
enum { FUNCTIONS = sizeof(functions) / sizeof(*functions), ARGS = 7 };

/* ---- a call ---- */

/* The arguments of one call, in the function's order; NULL where there is no tensor. */
typedef struct arguments {
    const function *f;
    guarded *tensor[ARGS];
    double eps;
} arguments;

/* How the rows lie. */
typedef struct layout {
    int64_t gap;
    size_t shift;
} layout;

static int position(const function *f, char letter)
{
    const char *at = strchr(f->args, letter);
    return at ? (int)(at - f->args) : -1;
}

static guarded *tensor_of(const arguments *a, char letter)
{
    int at = position(a->f, letter);
    if (letter == 'x' && at < 0) at = position(a->f, 'X');
    return at < 0 ? NULL : a->tensor[at];
}

/* Tensors of leading axes `lead` and rows of n, filled by `value`; weight about 1. */
static arguments arguments_new(const function *f, khub_dtype dtype, int32_t leading, const int64_t *lead,
                               int64_t n, layout how, double (*value)(void))
{
    arguments a = {.f = f, .eps = 1e-5};
    int64_t shape[8];
    for (int32_t i = 0; i < leading; i++)
        shape[i] = lead[i];
    for (int i = 0; f->args[i]; i++) {
        char letter = f->args[i];
        if (letter == 'e') continue;
        shape[leading] = letter == 'X' ? 2 * n : n;
        if (letter == 'w' || letter == 'b')
            a.tensor[i] = guarded_new(dtype, 1, shape + leading, 0, how.shift);
        else
            a.tensor[i] = guarded_new(dtype, leading + 1, shape, how.gap, how.shift);
        if (!strchr("os", letter))
            guarded_fill(a.tensor[i], letter == 'w' || letter == 'b' ? random_normal : value);
    }
    return a;
}

static void arguments_free(arguments *a)
{
    for (int i = 0; i < ARGS; i++)
        guarded_free(a->tensor[i]);
}

/* Calls with some tensors replaced: `instead[i]` not NULL stands for argument i; `none` is a letter that is
 * None. */
static void call(const library *l, const arguments *a, guarded *const instead[ARGS], char none)
{
    khub_value args[ARGS];
    char words[1024];
    int n = (int)strlen(a->f->args);
    for (int i = 0; i < n; i++) {
        guarded *g = instead && instead[i] ? instead[i] : a->tensor[i];
        args[i] = a->f->args[i] == 'e'    ? khub_arg_float(a->eps)
                  : a->f->args[i] == none ? khub_arg_none()
                                          : khub_arg_tensor(&g->t);
    }
    int rc = call_kernel(l, a->f->name, args, n, words);
    ck_assert_msg(rc == 0, "%s", words);
    for (int i = 0; i < n; i++) {
        const guarded *g = instead && instead[i] ? instead[i] : a->tensor[i];
        ck_assert_msg(!g || guards_hold(g), "%s wrote outside argument %d", a->f->name, i);
    }
}

/* Every test below, for each function and type. */
typedef void each(const function *f, khub_dtype dtype);
static const char
    *looked_at; /* by tests of one library; NULL: the path that is taken where nothing is said */
static void for_each(each *test)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        if (looked_at == emulated && !is_emulated(functions[i].repository)) continue;
        test(&functions[i], f32);
        test(&functions[i], bf16);
        if (looked_at == emulated) test(&functions[i], f16);
    }
}

/* And for the kernels for CUDA. */
static void for_both(each *test)
{
    for_each(test);
    looked_at = emulated;
    for_each(test);
}

/* ---- the numbers ---- */

static void check_row(const arguments *a, int64_t at, int64_t n, const char *isa)
{
    const function *f = a->f;
    const guarded *x = tensor_of(a, 'x'), *residual = tensor_of(a, 'r'), *w = tensor_of(a, 'w'),
                  *b = tensor_of(a, 'b');
    const guarded *out = tensor_of(a, 'o'), *sum = tensor_of(a, 's');
    int64_t width = strchr(f->args, 'X') ? 2 * n : n;
    khub_dtype dtype = out->t.dtype;
    double *memory = calloc((size_t)(6 * n), sizeof(double)), *xs = memory + 2 * n;
    row r = {memory, memory + n, xs, NULL, memory + 4 * n, b ? memory + 5 * n : NULL, (float)a->eps, n};
    for (int64_t i = 0; i < width; i++) {
        xs[i] = guarded_get(x, at * width + i);
        if (residual) xs[i] = round_in(dtype, (float)(xs[i] + guarded_get(residual, at * n + i)));
        if (sum && guarded_get(sum, at * n + i) != xs[i]) ck_abort_msg("%s: sum %lld", f->name, (long long)i);
    }
    for (int64_t i = 0; i < n; i++) {
        memory[4 * n + i] = w ? guarded_get(w, i) : 0;
        memory[5 * n + i] = b ? guarded_get(b, i) : 0;
    }
    f->exact(&r);
    for (int64_t i = 0; i < n; i++) {
        double got = guarded_get(out, at * n + i), off = r.off[i] + stored(dtype, fabs(r.out[i]) + r.off[i]);
        if (!(fabs(got - r.out[i]) <= off))
            ck_abort_msg("%s by %s: element %lld of %lld is %a, %a expected, off by %g of %g", f->name, isa,
                         (long long)i, (long long)n, got, r.out[i], fabs(got - r.out[i]), off);
    }
    free(memory);
}

static double wide(void)
{
    return random_normal() * 4;
}
static double off_center(void)
{
    return random_normal() + 30;
}
/* From far below 1 to where a square still is a float. */
static double all_sizes(void)
{
    return random_normal() * ldexp(1, (int)(random_bits() % 80) - 40);
}

static const int64_t widths[] = {1, 2, 15, 16, 17, 31, 33, 100, 384, 1000, 4099};
enum { WIDTHS = sizeof(widths) / sizeof(*widths) };

static void right_by(const char *isa, const function *f, khub_dtype dtype)
{
    double (*const values[])(void) = {random_normal, wide, off_center, all_sizes};
    int kinds = dtype.bits == 32 || is_bf16(dtype) ? 4 : 3; /* of which float16 hasn't the last's numbers */
    library l = library_open(f->repository, isa);
    for (size_t s = 0; s < WIDTHS; s++)
        for (int v = 0; v < kinds; v++) {
            int64_t lead = 3;
            arguments a = arguments_new(f, dtype, 1, &lead, widths[s], (layout){0, 0}, values[v]);
            call(&l, &a, NULL, 0);
            for (int64_t at = 0; at < lead; at++)
                check_row(&a, at, widths[s], isa);
            arguments_free(&a);
        }
    dlclose(l.handle);
}
/* The others have the portable path's bits, as same_for_isas shows for these widths. */
static void right(const function *f, khub_dtype dtype)
{
    right_by(all_isas[0], f, dtype);
}
START_TEST(right_by_the_formula)
{
    for_each(right);
}
END_TEST

/* On GPUs alone. */
START_TEST(right_in_float16)
{
    for (int i = 0; i < FUNCTIONS; i++)
        if (is_emulated(functions[i].repository)) right_by(emulated, &functions[i], f16);
}
END_TEST

/* ---- the same bits ---- */

/* Any bits: NaN, infinities, subnormal numbers, huge ones. */
static double any(void)
{
    float v = float_of_bits(random_bits());
    return random_bits() % 4 ? random_normal() : v;
}
/* As `any`, and finite, so that rows don't drown in NaN. */
static double tame(void)
{
    double v = any();
    return isfinite(v) ? v : 1;
}

static void same_for_isas(const function *f, khub_dtype dtype)
{
    double (*const values[])(void) = {any, tame, wide, off_center, all_sizes};
    const char *isas[ISAS];
    int count = isas_of(isas, f->repository);
    library l[ISAS];
    for (int k = 0; k < count; k++)
        l[k] = library_open(f->repository, isas[k]);
    for (int s = 0; s < WIDTHS; s++)
        for (int v = 0; v < 5; v++) {
            int64_t lead = 5, shape[2] = {lead, widths[s]};
            arguments a = arguments_new(f, dtype, 1, &lead, widths[s], (layout){0, 0}, values[v]);
            call(&l[0], &a, NULL, 0);
            for (int k = 1; k < count; k++) {
                if (isas[k] == emulated && v != s % 2 && v != 2 + s % 3) continue; /* it takes long */
                guarded *instead[ARGS] = {NULL};
                for (int i = 0; i < ARGS && f->args[i]; i++)
                    if (strchr("os", f->args[i])) instead[i] = guarded_new(dtype, 2, shape, 0, 0);
                call(&l[k], &a, instead, 0);
                for (int i = 0; i < ARGS; i++) {
                    ck_assert_msg(!instead[i] || guarded_equal(a.tensor[i], instead[i]), "%s, %s: n = %lld",
                                  f->name, isas[k], (long long)widths[s]);
                    guarded_free(instead[i]);
                }
            }
            arguments_free(&a);
        }
    for (int k = 0; k < count; k++)
        dlclose(l[k].handle);
}
START_TEST(same_bits_for_every_instruction_set)
{
    for_each(same_for_isas);
}
END_TEST

/* Longer than what a block of a GPU keeps of a row at a time. */
START_TEST(same_bits_of_long_rows)
{
    enum { N = 8209 };
    for (int i = 0; i < 5; i++)
        for (int half = 0; half < 2; half++) {
            const function *f = &functions[i];
            library cpu = library_open(f->repository, NULL), gpu = library_open(f->repository, emulated);
            int64_t lead = 1, shape[2] = {1, N};
            arguments a = arguments_new(f, half ? bf16 : f32, 1, &lead, N, (layout){0, 0}, tame);
            guarded *instead[ARGS] = {NULL};
            for (int k = 0; f->args[k]; k++)
                if (strchr("os", f->args[k])) instead[k] = guarded_new(half ? bf16 : f32, 2, shape, 0, 0);
            call(&cpu, &a, NULL, 0);
            call(&gpu, &a, instead, 0);
            for (int k = 0; k < ARGS; k++) {
                ck_assert_msg(!instead[k] || guarded_equal(a.tensor[k], instead[k]), "%s", f->name);
                guarded_free(instead[k]);
            }
            arguments_free(&a);
        }
}
END_TEST

/* Makes `view` the rows from … of another tensor's first axis. Borrows its memory. */
static void view_rows(guarded *view, const guarded *g, int64_t from, int64_t count)
{
    *view = *g;
    view->t.shape = view->shape;
    view->t.strides = view->strides;
    view->t.byte_offset += (uint64_t)(from * g->strides[0] * (g->t.dtype.bits / 8));
    view->shape[0] = count;
}

static void same_for_splits(const function *f, khub_dtype dtype)
{
    static const int64_t pieces[] = {1, 2, 7, 8};
    library l = library_open(f->repository, looked_at);
    int64_t lead = 17, n = 37, shape[2] = {lead, n};
    arguments a = arguments_new(f, dtype, 1, &lead, n, (layout){0, 0}, any);
    call(&l, &a, NULL, 0);
    for (int p = 0; p < 4; p++) {
        guarded *out = guarded_new(dtype, 2, shape, 0, 0);
        for (int64_t from = 0; from < lead; from += pieces[p]) {
            int64_t count = lead - from < pieces[p] ? lead - from : pieces[p];
            khub_value args[ARGS];
            guarded views[ARGS];
            char words[1024];
            for (int i = 0; f->args[i]; i++) {
                const guarded *g = i == 0 ? out : a.tensor[i];
                int whole = strchr("wb", f->args[i]) != NULL;
                if (g) view_rows(&views[i], g, whole ? 0 : from, whole ? g->shape[0] : count);
                args[i] = g ? khub_arg_tensor(&views[i].t) : khub_arg_float(a.eps);
                if (f->args[i] == 's') args[i] = khub_arg_none();
            }
            int rc = call_kernel(&l, f->name, args, (int32_t)strlen(f->args), words);
            ck_assert_msg(rc == 0, "%s", words);
        }
        ck_assert_msg(guarded_equal(out, a.tensor[0]), "%s in pieces of %lld", f->name, (long long)pieces[p]);
        guarded_free(out);
    }
    arguments_free(&a);
}
START_TEST(same_bits_for_every_split)
{
    for_both(same_for_splits);
}
END_TEST

/* Copies elements, whatever the layouts. */
static void copy(guarded *to, const guarded *from)
{
    for (int64_t i = 0; i < to->count; i++)
        guarded_set(to, i, guarded_get(from, i));
}

static void same_for_layouts(const function *f, khub_dtype dtype)
{
    static const int64_t lead[3] = {2, 3, 4};
    static const layout layouts[] = {{5, 0}, {0, 4}, {3, 2}, {1, 1}, {13, 60}};
    library l = library_open(f->repository, looked_at);
    arguments a = arguments_new(f, dtype, 3, lead, 21, (layout){0, 0}, wide);
    call(&l, &a, NULL, 0);
    for (int k = 0; k < 5; k++) {
        if (looked_at == emulated && layouts[k].shift % (dtype.bits / 8)) continue; /* which it refuses */
        arguments b = arguments_new(f, dtype, 3, lead, 21, layouts[k], wide);
        for (int i = 0; f->args[i]; i++)
            if (b.tensor[i] && !strchr("os", f->args[i])) copy(b.tensor[i], a.tensor[i]);
        call(&l, &b, NULL, 0);
        ck_assert_msg(guarded_equal(a.tensor[0], b.tensor[0]), "%s, layout %d", f->name, k);
        if (tensor_of(&a, 's')) ck_assert(guarded_equal(tensor_of(&a, 's'), tensor_of(&b, 's')));
        arguments_free(&b);
    }
    arguments_free(&a);
}
START_TEST(same_bits_for_every_layout)
{
    for_both(same_for_layouts);
}
END_TEST

/* Swaps the first two of three leading axes, in the shape and in the memory's order. */
static void transpose(guarded *g)
{
    int64_t extent = g->shape[0], stride = g->strides[0];
    g->shape[0] = g->shape[1], g->shape[1] = extent;
    g->strides[0] = g->strides[1], g->strides[1] = stride;
}

static void transposed(const function *f, khub_dtype dtype)
{
    static const int64_t lead[2] = {3, 4};
    library l = library_open(f->repository, looked_at);
    arguments a = arguments_new(f, dtype, 2, lead, 21, (layout){2, 0}, wide);
    call(&l, &a, NULL, 0);
    /* x (4, 3, n) in the order of (3, 4, n), out compact */
    int64_t shape[3] = {4, 3, 21};
    guarded *instead[ARGS] = {guarded_new(dtype, 3, shape, 0, 0)};
    for (int i = 1; f->args[i]; i++)
        if (a.tensor[i] && !strchr("wb", f->args[i])) transpose(a.tensor[i]);
    call(&l, &a, instead, 's');
    transpose(instead[0]); /* back, so that both are read in one order */
    ck_assert_msg(guarded_equal(a.tensor[0], instead[0]), "%s", f->name);
    guarded_free(instead[0]);
    arguments_free(&a);
}
START_TEST(same_bits_for_axes_in_any_order)
{
    for_both(transposed);
}
END_TEST

static void in_place(const function *f, khub_dtype dtype)
{
    if (strchr(f->args, 'X')) return; /* gated: out is smaller than x */
    library l = library_open(f->repository, looked_at);
    int64_t lead = 5;
    arguments a = arguments_new(f, dtype, 1, &lead, 53, (layout){0, 0}, wide);
    call(&l, &a, NULL, 0);
    guarded *x = tensor_of(&a, 'x'), *residual = tensor_of(&a, 'r');
    int64_t shape[2] = {lead, 53};
    guarded *both = guarded_new(dtype, 2, shape, 0, 0), *sum = guarded_new(dtype, 2, shape, 0, 0);
    guarded *instead[ARGS] = {both};
    copy(both, x);
    instead[position(f, 'x')] = both;
    if (residual) {
        copy(sum, residual);
        instead[position(f, 's')] = instead[position(f, 'r')] = sum;
    }
    call(&l, &a, instead, 0);
    ck_assert_msg(guarded_equal(both, a.tensor[0]), "%s", f->name);
    if (residual) {
        ck_assert(guarded_equal(sum, tensor_of(&a, 's')));
        copy(both, x); /* out is x, no sum wanted */
        instead[position(f, 's')] = instead[position(f, 'r')] = NULL;
        call(&l, &a, instead, 's');
        ck_assert(guarded_equal(both, a.tensor[0]));
    }
    guarded_free(both);
    guarded_free(sum);
    arguments_free(&a);
}
START_TEST(same_bits_in_place)
{
    for_both(in_place);
}
END_TEST

/* A result of 8 MiB is stored past the caches; row by row, as nothing else here, it isn't. */
START_TEST(same_bits_past_the_caches)
{
    static const int which[] = {1, 2, 4, 5, 10};
    enum { N = 1008, LEAD = 2100 }; /* rows of a multiple of 64 bytes */
    for (size_t k = 0; k < sizeof(which) / sizeof(*which); k++) {
        const function *f = &functions[which[k]];
        library l = library_open(f->repository, NULL);
        int64_t lead = LEAD, few = 7, shape[2] = {LEAD, N};
        arguments a = arguments_new(f, f32, 1, &few, N, (layout){0, 0}, wide);
        call(&l, &a, NULL, 0);
        guarded *all[ARGS] = {NULL};
        for (int i = 0; f->args[i]; i++) { /* the same few rows, over and over */
            if (!a.tensor[i] || strchr("wb", f->args[i])) continue;
            shape[1] = a.tensor[i]->shape[1];
            all[i] = guarded_new(f32, 2, shape, 0, 0);
            for (int64_t at = 0; at < lead; at++)
                memcpy(element_at(all[i], at * shape[1]), element_at(a.tensor[i], at % few * shape[1]),
                       (size_t)shape[1] * 4);
        }
        memset(element_at(all[0], 0), 0, (size_t)LEAD * N * 4);
        khub_value args[ARGS];
        char words[1024];
        for (int i = 0; f->args[i]; i++)
            args[i] =
                a.tensor[i] ? khub_arg_tensor(&(all[i] ? all[i] : a.tensor[i])->t) : khub_arg_float(a.eps);
        ck_assert_msg(call_kernel(&l, f->name, args, (int32_t)strlen(f->args), words) == 0, "%s", words);
        for (int64_t at = 0; at < lead; at++)
            if (memcmp(element_at(all[0], at * N), element_at(a.tensor[0], at % few * N), N * 4) != 0)
                ck_abort_msg("%s: row %lld", f->name, (long long)at);
        for (int i = 0; i < ARGS; i++)
            guarded_free(all[i]);
        arguments_free(&a);
    }
}
END_TEST

/* add_NORM(x, residual) is NORM of the sum that it stores. */
START_TEST(adding_first_is_adding_apart)
{
    library l = library_open("norm", NULL);
    for (int i = 1; i < 4; i += 2)
        for (int half = 0; half < 2; half++) {
            int64_t lead = 4;
            khub_dtype dtype = half ? bf16 : f32;
            arguments a = arguments_new(&functions[i], dtype, 1, &lead, 70, (layout){0, 0}, wide);
            call(&l, &a, NULL, 0);
            arguments b = arguments_new(&functions[i - 1], dtype, 1, &lead, 70, (layout){0, 0}, wide);
            copy(tensor_of(&b, 'x'), tensor_of(&a, 's'));
            copy(tensor_of(&b, 'w'), tensor_of(&a, 'w'));
            if (tensor_of(&b, 'b')) copy(tensor_of(&b, 'b'), tensor_of(&a, 'b'));
            call(&l, &b, NULL, 0);
            ck_assert(guarded_equal(a.tensor[0], b.tensor[0]));
            arguments_free(&a);
            arguments_free(&b);
        }
}
END_TEST

/* ---- edges ---- */

/* A bias that is None is a bias of zeros, but for the sign of zero, which random numbers don't meet. */
START_TEST(no_bias_is_a_bias_of_zeros)
{
    library l = library_open("norm", NULL);
    for (int i = 2; i < 4; i++) {
        int64_t shape[2] = {3, 50};
        arguments a = arguments_new(&functions[i], f32, 1, shape, 50, (layout){0, 0}, random_normal);
        for (int64_t k = 0; k < 50; k++)
            guarded_set(tensor_of(&a, 'b'), k, 0);
        call(&l, &a, NULL, 0);
        guarded *instead[ARGS] = {guarded_new(f32, 2, shape, 0, 0)};
        call(&l, &a, instead, 'b');
        ck_assert(guarded_equal(a.tensor[0], instead[0]));
        guarded_free(instead[0]);
        arguments_free(&a);
    }
}
END_TEST

static void no_rows(const function *f, khub_dtype dtype)
{
    library l = library_open(f->repository, looked_at);
    int64_t lead[2] = {3, 0};
    arguments a = arguments_new(f, dtype, 2, lead, 8, (layout){0, 0}, wide);
    for (int i = 0; f->args[i]; i++)
        if (a.tensor[i] && !strchr("wb", f->args[i])) a.tensor[i]->t.data = NULL;
    call(&l, &a, NULL, 0);
    arguments_free(&a);
}
START_TEST(no_rows_are_no_work)
{
    for_both(no_rows);
}
END_TEST

START_TEST(activations_take_any_number_of_axes)
{
    library l = library_open("activation", NULL);
    float x = -1, out = 7, many[256], results[256];
    khub_tensor tx = khub_tensor_f32(&x, 0, NULL), to = khub_tensor_f32(&out, 0, NULL);
    ck_kernel_ok(&l, "relu", khub_arg_tensor(&to), khub_arg_tensor(&tx));
    ck_assert(out == 0);
    int64_t twos[8] = {2, 2, 2, 2, 2, 2, 2, 2};
    for (int i = 0; i < 256; i++)
        many[i] = (float)(i - 128);
    tx = khub_tensor_f32(many, 8, twos);
    to = khub_tensor_f32(results, 8, twos);
    ck_kernel_ok(&l, "relu", khub_arg_tensor(&to), khub_arg_tensor(&tx));
    for (int i = 0; i < 256; i++)
        ck_assert(results[i] == (i < 128 ? 0 : i - 128));
}
END_TEST

/* One float in, one out. */
static float once(const library *l, const char *name, float x)
{
    int64_t one = 1;
    float out = 0;
    khub_tensor tx = khub_tensor_f32(&x, 1, &one), to = khub_tensor_f32(&out, 1, &one);
    ck_kernel_ok(l, name, khub_arg_tensor(&to), khub_arg_tensor(&tx));
    return out;
}

/* By the formulas: infinities where they have limits, 0 · infinity where they don't, NaN everywhere. */
START_TEST(activations_of_the_unusual)
{
    static const struct {
        const char *name;
        float x, out;
    } table[] = {
        {"relu", NAN, NAN},
        {"relu", -INFINITY, 0},
        {"relu", INFINITY, INFINITY},
        {"relu", 0x1p-149f, 0x1p-149f},
        {"gelu", NAN, NAN},
        {"gelu", INFINITY, INFINITY},
        {"gelu", -INFINITY, NAN},
        {"gelu", 0x1p-148f, 0x1p-149f},
        {"silu", NAN, NAN},
        {"silu", INFINITY, INFINITY},
        {"silu", -INFINITY, NAN},
        {"silu", -200, -0.0f},
        {"quick_gelu", NAN, NAN},
        {"quick_gelu", 1e38f, 1e38f},
        {"quick_gelu", -3e38f, -0.0f},
        {"gelu_tanh", NAN, NAN},
        {"gelu_tanh", 3e38f, 3e38f},
        {"gelu_tanh", -3e38f, -0.0f},
        {"gelu", 3e38f, 3e38f},
        {"gelu", -3e38f, -0.0f},
        {"silu", 3e38f, 3e38f},
        {"softmax", NAN, NAN},
        {"softmax", -INFINITY, NAN},
        {"softmax", INFINITY, NAN},
        {"softmax", 3e38f, 1},
        {"softmax", -3e38f, 1},
    };
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int k = 0; k < count; k++) {
        library activation = library_open("activation", isas[k]),
                softmax_library = library_open("softmax", isas[k]);
        for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
            const library *l = strcmp(table[i].name, "softmax") == 0 ? &softmax_library : &activation;
            float got = once(l, table[i].name, table[i].x);
            ck_assert_msg(got == table[i].out || (isnan(got) && isnan(table[i].out)), "%s(%a) is %a, not %a",
                          table[i].name, table[i].x, got, table[i].out);
        }
    }
}
END_TEST

/* Where a number is far from 0, a kernel may go another way with all that is beside it: nobody else's result
 * may show it, and its own is that of the same number alone. */
START_TEST(far_numbers_leave_their_neighbours_alone)
{
    static const char *const names[] = {"gelu",       "gelu_tanh",    "silu",
                                        "quick_gelu", "silu_and_mul", "gelu_and_mul"};
    static const float far[] = {4, -5, -9.5f, 48, -80, -3e38f, INFINITY, NAN};
    enum { N = 64, NAMES = sizeof(names) / sizeof(*names), FARS = sizeof(far) / sizeof(*far) };
    const char *isas[ISAS];
    int count = isas_here(isas);
    for (int i = 0; i < count * NAMES * FARS; i++) {
        const char *name = names[i % NAMES];
        int64_t one = N, two = 2 * N, pair = 2, at = i * 7 % N;
        library l = library_open("activation", isas[i / NAMES / FARS]);
        float x[2 * N], out[2][N], alone[2] = {far[i / NAMES % FARS], 3}, result;
        int gated = strstr(name, "and_mul") != NULL;
        for (int k = 0; k < 2 * N; k++)
            x[k] = k < N ? (float)(k - N / 2) / 9 : 3;
        khub_tensor tx = khub_tensor_f32(x, 1, gated ? &two : &one);
        for (int k = 0; k < 2; k++) {
            khub_tensor to = khub_tensor_f32(out[k], 1, &one);
            ck_kernel_ok(&l, name, khub_arg_tensor(&to), khub_arg_tensor(&tx));
            x[at] = alone[0];
        }
        one = 1;
        khub_tensor ta = khub_tensor_f32(alone, 1, gated ? &pair : &one),
                    tr = khub_tensor_f32(&result, 1, &one);
        ck_kernel_ok(&l, name, khub_arg_tensor(&tr), khub_arg_tensor(&ta));
        ck_assert_msg(out[1][at] == result || (isnan(result) && isnan(out[1][at])), "%s(%a)", name, alone[0]);
        out[1][at] = out[0][at];
        ck_assert_mem_eq(out[0], out[1], sizeof(out[0]));
    }
}
END_TEST

/* Distance of `got` from the exact value, in units in the last place of a float of that size. */
static long double ulps(float got, long double exact)
{
    int exponent;
    if (exact == 0 || fabsl(exact) >= 0x1.ffffffp127L) return got == (float)exact ? 0 : INFINITY;
    frexpl(exact, &exponent);
    return fabsl(got - exact) / ldexpl(1, (exponent < -125 ? -125 : exponent) - 24);
}

static long double exact_gelu(long double x)
{
    return x / 2 * erfcl(-x / sqrtl(2));
}
static long double exact_gelu_tanh(long double x)
{
    return x / (1 + expl(-2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)));
}
static long double exact_silu(long double x)
{
    return x / (1 + expl(-x));
}
static long double exact_quick_gelu(long double x)
{
    return x / (1 + expl(-1.702L * x));
}

/* All the way down to where results underflow, by the C library's long double; gates of any size. */
START_TEST(activations_keep_their_digits)
{
    static const struct {
        const char *name;
        long double (*exact)(long double x);
        float low; /* the result of what is below is 0 */
        double ulp;
        float worst; /* of all float32 (docs/kernels.md) */
    } table[] = {{"gelu", exact_gelu, -14.5f, 2.56, -0x1.81c042p+1f},
                 {"gelu_tanh", exact_gelu_tanh, -11, 2.37, -0x1.3fa7cap+2f},
                 {"silu", exact_silu, -110, 2.39, -0x1.0ade56p+4f},
                 {"quick_gelu", exact_quick_gelu, -64, 2.41, -0x1.3ce51ap+3f},
                 {"gelu_and_mul", exact_gelu, -20.5f, 4, -0x1.81c042p+1f},
                 {"silu_and_mul", exact_silu, -210, 4, -0x1.0ade56p+4f}};
    enum { N = 20000 };
    static float x[2 * N], out[N];
    library l = library_open("activation", NULL);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        int64_t one = N, two = 2 * N;
        int gated = strstr(table[i].name, "and_mul") != NULL;
        for (int64_t k = 0; k < N; k++) {
            double at = (double)k / N;
            x[k] = (float)(k % 2 ? table[i].low * at : k % 4 ? 8 * at : ldexp(at - 0.5, -(int)(k % 120)));
            if (k % 100 == 6) x[k] = (float)(-3e38 * at);
            if (k % 100 == 7) x[k] = table[i].worst;
            x[N + k] =
                (float)ldexp(k % 3 ? 1 + at : -1 - at, gated && k % 2 ? 126 - (int)(k % 7) : (int)(k % 9));
        }
        khub_tensor tx = khub_tensor_f32(x, 1, gated ? &two : &one), to = khub_tensor_f32(out, 1, &one);
        ck_kernel_ok(&l, table[i].name, khub_arg_tensor(&to), khub_arg_tensor(&tx));
        for (int64_t k = 0; k < N; k++) {
            long double exact = table[i].exact(x[k]) * (gated ? x[N + k] : 1);
            if (!(ulps(out[k], exact) <= table[i].ulp))
                ck_abort_msg("%s(%a) is %a, not %La", table[i].name, x[k], out[k], exact);
        }
    }
}
END_TEST

/* Rows whose squares have no sum in float32, with small numbers among the huge ones. */
START_TEST(norms_of_huge_rows)
{
    enum { N = 37 };
    for (int i = 0; i < 4; i++) {
        library l = library_open("norm", NULL);
        int64_t lead = 2;
        arguments a = arguments_new(&functions[i], f32, 1, &lead, N, (layout){0, 0}, random_normal);
        guarded *x = tensor_of(&a, 'x'), *residual = tensor_of(&a, 'r');
        long double mean = 0, square = 0;
        double at[N];
        for (int64_t k = 0; k < N; k++) {
            at[k] = guarded_get(x, k) * (k % 5 ? 0x1p125 : 1);
            guarded_set(x, k, at[k]);
            if (residual) guarded_set(residual, k, 0);
            mean += guarded_get(x, k) / (long double)N;
        }
        int centered = strchr(functions[i].args, 'b') != NULL;
        for (int64_t k = 0; k < N; k++) {
            long double v = guarded_get(x, k) - (centered ? mean : 0);
            square += v * v / N;
        }
        for (int64_t k = 0; k < N; k++)
            at[k] = guarded_get(x, k);
        call(&l, &a, NULL, 0);
        for (int64_t k = 0; k < 2 * N; k++)
            ck_assert_msg(isfinite(guarded_get(a.tensor[0], k)), "%s[%lld]", functions[i].name, (long long)k);
        for (int64_t k = 0; k < N; k++) {
            long double weight = guarded_get(tensor_of(&a, 'w'), k), root = sqrtl(square),
                        bias = centered ? guarded_get(tensor_of(&a, 'b'), k) : 0,
                        out = (at[k] - (centered ? mean : 0)) / root * weight + bias,
                        size = centered ? (fabsl(at[k]) + root) / root * fabsl(weight) + fabsl(bias)
                                        : fabsl(out);
            if (!(fabsl(guarded_get(a.tensor[0], k) - out) <= 16 * u32 * size))
                ck_abort_msg("%s[%lld] is %a, not %La", functions[i].name, (long long)k,
                             guarded_get(a.tensor[0], k), out);
        }
        arguments_free(&a);
    }
}
END_TEST

/* One NaN spoils its row, in whichever lane and whichever part, and no other row. */
START_TEST(nan_stays_in_its_row)
{
    static const int rows_of_nan[] = {0, 1, 2, 3, 4};
    for (int i = 0; i < 5; i++) {
        const function *f = &functions[rows_of_nan[i]];
        library l = library_open(f->repository, NULL);
        for (int64_t at = 0; at < 37; at++) {
            int64_t lead = 3;
            arguments a = arguments_new(f, f32, 1, &lead, 37, (layout){0, 0}, random_normal);
            guarded_set(tensor_of(&a, 'x'), 37 + at, NAN);
            call(&l, &a, NULL, 0);
            for (int64_t k = 0; k < 3 * 37; k++)
                if (isnan(guarded_get(a.tensor[0], k)) != (k / 37 == 1))
                    ck_abort_msg("%s: NaN at %lld", f->name, (long long)at);
            arguments_free(&a);
        }
    }
}
END_TEST

/* Half of a row -infinity, as masks make it: those are exactly 0, the others share 1. */
START_TEST(softmax_of_a_masked_row)
{
    library l = library_open("softmax", NULL);
    int64_t n = 40;
    float x[40], out[40];
    for (int i = 0; i < 40; i++)
        x[i] = i % 4 ? -INFINITY : 5;
    khub_tensor tx = khub_tensor_f32(x, 1, &n), to = khub_tensor_f32(out, 1, &n);
    ck_kernel_ok(&l, "softmax", khub_arg_tensor(&to), khub_arg_tensor(&tx));
    for (int i = 0; i < 40; i++)
        ck_assert(out[i] == (i % 4 ? 0 : 0.1f));
}
END_TEST

/* Constant rows: the variance is 0, eps keeps the quotient finite; 3e-23² underflows, eps = 0 divides by it.
 */
START_TEST(norms_of_the_unusual)
{
    library l = library_open("norm", NULL);
    for (int i = 0; i < 3; i += 2) {
        int64_t lead = 1;
        arguments a = arguments_new(&functions[i], f32, 1, &lead, 20, (layout){0, 0}, random_normal);
        for (int64_t k = 0; k < 20; k++)
            guarded_set(tensor_of(&a, 'x'), k, 4);
        call(&l, &a, NULL, 0);
        for (int64_t k = 0; k < 20; k++) {
            float w = guarded_get(tensor_of(&a, 'w'), k), got = guarded_get(a.tensor[0], k);
            if (i == 2)
                ck_assert(got == guarded_get(tensor_of(&a, 'b'), k));
            else
                ck_assert(fabs(got - w * 4 / sqrt(16 + 1e-5)) <= 4 * u32 * fabs(w));
        }
        a.eps = 0;
        for (int64_t k = 0; k < 20; k++)
            guarded_set(tensor_of(&a, 'x'), k, k ? 0x1p-80 : 0x1p-79);
        call(&l, &a, NULL, 0);
        for (int64_t k = 0; k < 20; k++)
            ck_assert(isinf(guarded_get(a.tensor[0], k)));
        arguments_free(&a);
    }
}
END_TEST

UNIT("kernels_rows", right_by_the_formula, right_in_float16, same_bits_of_long_rows,
     same_bits_for_every_instruction_set, same_bits_for_every_split, same_bits_for_every_layout,
     same_bits_for_axes_in_any_order, same_bits_in_place, same_bits_past_the_caches,
     adding_first_is_adding_apart, no_bias_is_a_bias_of_zeros, no_rows_are_no_work,
     activations_take_any_number_of_axes, activations_of_the_unusual,
     far_numbers_leave_their_neighbours_alone, activations_keep_their_digits, norms_of_huge_rows,
     nan_stays_in_its_row, softmax_of_a_masked_row, norms_of_the_unusual)
