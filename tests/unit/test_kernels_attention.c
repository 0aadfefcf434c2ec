/* khub/attention: near the formula in double; the same bits for every instruction set, layout, split and
 * company; blind to keys that aren't seen, NaN or not; nothing written beside the output; what it refuses. */
#include "kernels.h"

static const double u32 = 0x1p-24;

enum { BLOCK = 64 }; /* attention_blocks.c: keys of a block, dims of a chain */

typedef struct problem {
    int64_t b, t, s, h, g, d;
    khub_dtype dtype;
    double scale;
    int causal;
    int64_t window; /* 0: None */
    guarded *out, *q, *k, *v;
    int32_t lengths[4];
    int has_lengths;
    int64_t b_shape[1];
    khub_tensor lengths_tensor;
} problem;

static problem problem_new(khub_dtype dtype, const int64_t shape[6], int causal, int64_t gap, size_t shift)
{
    problem p = {shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], dtype, .causal = causal};
    p.scale = 1.5 / sqrt(p.d ? (double)p.d : 1);
    p.out = guarded_new(dtype, 4, (int64_t[]){p.b, p.t, p.h, p.d}, gap, shift);
    p.q = guarded_new(dtype, 4, (int64_t[]){p.b, p.t, p.h, p.d}, gap, shift);
    p.k = guarded_new(dtype, 4, (int64_t[]){p.b, p.s, p.g, p.d}, gap, shift);
    p.v = guarded_new(dtype, 4, (int64_t[]){p.b, p.s, p.g, p.d}, gap, shift);
    guarded_fill(p.q, random_normal);
    guarded_fill(p.k, random_normal);
    guarded_fill(p.v, random_normal);
    return p;
}

static void problem_free(problem *p)
{
    guarded_free(p->out);
    guarded_free(p->q);
    guarded_free(p->k);
    guarded_free(p->v);
}

static khub_value lengths_of(problem *p)
{
    if (!p->has_lengths) return khub_arg_none();
    p->b_shape[0] = p->b;
    p->lengths_tensor = khub_tensor_over(p->lengths, khub_dtype_of(KHUB_DTYPE_INT, 32), 1, p->b_shape);
    return khub_arg_tensor(&p->lengths_tensor);
}

static void call(const library *l, problem *p)
{
    memset(p->out->base, FILL, p->out->bytes);
    ck_kernel_ok(l, "attention", khub_arg_tensor(&p->out->t), khub_arg_tensor(&p->q->t),
                 khub_arg_tensor(&p->k->t), khub_arg_tensor(&p->v->t), lengths_of(p),
                 khub_arg_float(p->scale), khub_arg_bool(p->causal),
                 p->window ? khub_arg_int(p->window) : khub_arg_none());
    ck_assert(guards_hold(p->out));
}

static int sees(const problem *p, int64_t b, int64_t i, int64_t j)
{
    int64_t place = i + p->s - p->t, away = place < j ? j - place : place - j;
    return j < (p->has_lengths ? p->lengths[b] : p->s) && (!p->causal || j <= place) &&
           (!p->window || away < p->window);
}

/* The keys that a query sees: keys from … until - 1; 0 and 0 when there are none. */
typedef struct keys {
    int64_t from, until;
} keys;
static keys seen_by(const problem *p, int64_t b, int64_t i)
{
    keys seen = {0, 0};
    for (int64_t j = p->s - 1; j >= 0; j--)
        if (sees(p, b, i, j)) seen.from = j, seen.until = seen.until ? seen.until : j + 1;
    return seen;
}

static float at4(const guarded *x, int64_t b, int64_t i, int64_t h, int64_t d)
{
    return guarded_get(x, ((b * x->shape[1] + i) * x->shape[2] + h) * x->shape[3] + d);
}

/* Weights of one query in double, their sum in *total; the result is how far float32 may be off, relative: a
 * score is chains of 64 steps and their sum, each off by half a unit of the sum of sizes, then scaled; the
 * difference to the largest is rounded, exp is within 2 ULP. */
static double weights(double *w, double *total, const problem *p, int64_t b, int64_t i, int64_t h, keys seen)
{
    double most = -INFINITY, worst = 0, scale = (float)p->scale;
    for (int64_t j = seen.from; j < seen.until; j++) {
        double size = 0;
        w[j] = 0;
        for (int64_t d = 0; d < p->d; d++) {
            double product = (double)at4(p->q, b, i, h, d) * at4(p->k, b, j, h / (p->h / p->g), d);
            w[j] += product;
            size += fabs(product);
        }
        w[j] *= scale;
        worst = fmax(worst, (BLOCK + (double)p->d / BLOCK + 3) * u32 * size * fabs(scale));
        most = fmax(most, w[j]);
    }
    *total = 0;
    for (int64_t j = seen.from; j < seen.until; j++) {
        worst =
            fmax(worst, 2 * u32 * (most - w[j])); /* to the largest so far, and from there to the largest */
        w[j] = exp(w[j] - most);
        *total += w[j];
    }
    return 2 * worst + 8 * u32;
}

/* All elements of one query. Weights are off in numerator and denominator; sums of a block are chains of 64;
 * each block scales (exp, 4 u32 more) and adds. */
static void check_query(const problem *p, const char *isa, int64_t b, int64_t i, int64_t h)
{
    keys seen = seen_by(p, b, i);
    double *w = calloc((size_t)seen.until + 1, sizeof(double)), total;
    double off = 2 * weights(w, &total, p, b, i, h, seen);
    off += (2 * BLOCK + 12 * ((double)(seen.until - seen.from) / BLOCK + 2)) * u32;
    for (int64_t d = 0; d < p->d; d++) {
        double sum = 0, size = 0, got = at4(p->out, b, i, h, d);
        for (int64_t j = seen.from; j < seen.until; j++) {
            double v = w[j] / total * at4(p->v, b, j, h / (p->h / p->g), d);
            sum += v, size += fabs(v);
        }
        double most = off * size;
        most += stored_within(p->dtype) * (fabs(sum) + most) + (p->dtype.bits == 16 ? 0x1p-25 : 0);
        ck_assert_msg(fabs(got - sum) <= most,
                      "%s (b %d t %d s %d h %d d %d): %d scale %g caus %d win %d bf %d query %d head %d is "
                      "%g, %g expected, off %g of %g",
                      isa, (int)p->b, (int)p->t, (int)p->s, (int)p->h, (int)p->d, (int)b, p->scale, p->causal,
                      (int)p->window, p->dtype.bits, (int)i, (int)h, got, sum, fabs(got - sum), most);
        if (!seen.until) ck_assert(bits_of_float((float)got) == 0);
    }
    free(w);
}

static void check(const problem *p, const char *isa)
{
    for (int64_t b = 0; b < p->b; b++)
        for (int64_t i = 0; i < p->t; i++)
            for (int64_t h = 0; h < p->h; h++)
                check_query(p, isa, b, i, h);
}

static const khub_dtype *const dtypes[] = {&f32, &bf16, &f16};

/* 128 rows of 64 dims at a time, blocks of 64 keys, chains of 64 dims, 512 dims at a time, grouped heads; one
 * query of heads side by side. */
static const int64_t shapes[][6] = {
    /* b t s h g d */
    {1, 1, 1, 1, 1, 1},    {2, 5, 5, 2, 2, 32},    {1, 12, 12, 3, 3, 32}, {2, 17, 33, 2, 1, 7},
    {1, 33, 64, 1, 1, 16}, {1, 40, 130, 1, 1, 64}, {1, 7, 65, 6, 2, 80},  {2, 1, 129, 8, 2, 24},
    {1, 3, 9, 2, 2, 530},  {1, 50, 3, 1, 1, 9},    {3, 2, 70, 1, 1, 257}, {1, 67, 66, 4, 2, 3},
    {2, 1, 150, 3, 3, 80}, {1, 1, 66, 2, 2, 19},   {1, 1, 40, 70, 70, 5},
};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

enum { VARIANTS = 6 };

/* The problems of the table: causal or not; with and without lengths, and, with them, with a window, too. */
static problem problem_of(int s, int t, int variant)
{
    problem p = problem_new(*dtypes[t], shapes[s], variant % 2, s % 3, (size_t)(s % 4) * 4);
    static const int64_t windows[4] = {1, 20, 64, 1000};
    if (variant >= 4) p.window = windows[(s + t) % 4], p.scale *= s % 3 - 1; /* backward, none, as usual */
    static const int32_t lengths[3][4] = {{1000, 2, 0, 0}, {3, 1, 70, 0}, {0, -4, 65, 0}};
    p.has_lengths = variant >= 2;
    memcpy(p.lengths, lengths[s % 3], sizeof(p.lengths));
    return p;
}

/* On the portable path; the others have its bits, as the next test shows for these problems. */
START_TEST(near_the_formula)
{
    const char *isas[ISAS];
    isas_here(isas);
    library l = library_open("attention", isas[0]);
    for (int s = 0; s < SHAPES; s++)
        for (int t = 0; t < 2; t++)
            for (int variant = 0; variant < VARIANTS; variant++) {
                problem p = problem_of(s, t, variant);
                call(&l, &p);
                check(&p, isas[0]);
                problem_free(&p);
            }
}
END_TEST

/* On GPUs alone. */
START_TEST(near_the_formula_in_float16)
{
    library l = library_open("attention", emulated);
    for (int s = 0; s < SHAPES; s++) {
        problem p = problem_of(s, 2, s % VARIANTS);
        call(&l, &p);
        check(&p, emulated);
        problem_free(&p);
    }
}
END_TEST

START_TEST(same_bits_for_every_instruction_set)
{
    const char *isas[ISAS];
    int count = isas_of(isas, "attention");
    library l[ISAS];
    for (int a = 0; a < count; a++)
        l[a] = library_open("attention", isas[a]);
    for (int s = 0; s < SHAPES; s++)
        for (int variant = 0; variant < 2 * VARIANTS; variant++) {
            problem p = problem_of(s, variant / VARIANTS, variant % VARIANTS);
            call(&l[0], &p);
            for (int a = 1; a < count; a++) {
                guarded *portable = p.out;
                p.out = guarded_new(p.dtype, 4, portable->shape, 0, 0);
                call(&l[a], &p);
                ck_assert_msg(guarded_equal(p.out, portable), "%s, shape %d", isas[a], s);
                guarded_free(p.out);
                p.out = portable;
            }
            problem_free(&p);
        }
}
END_TEST

/* `count` from `from` on along `dim`. */
typedef struct view {
    khub_tensor t;
    int64_t shape[4];
} view;
static khub_value cut(view *v, const khub_tensor *from, int dim, int64_t at, int64_t count)
{
    khub_tensor t = *from;
    memcpy(v->shape, from->shape, sizeof(v->shape));
    v->shape[dim] = count;
    t.shape = v->shape;
    t.byte_offset += (uint64_t)(at * t.strides[dim] * (t.dtype.bits / 8));
    v->t = t;
    return khub_arg_tensor(&v->t);
}

/* Every query of every head of every sequence, computed alone, against all together. Alone it gets the keys
 * that it sees and no more, from the start of the first one's block on: that far a window's rest is given. */
START_TEST(same_bits_in_any_company)
{
    const char *isas[ISAS];
    int count = isas_of(isas, "attention");
    static const int64_t shape[6] = {2, 36, 177, 4, 2, 33};
    for (int a = 0; a < count; a++) {
        library l = library_open("attention", isas[a]);
        for (int variant = 0; variant < 4; variant++) {
            problem p = problem_new(*dtypes[variant / 2], shape, variant % 2, 1, 0);
            p.window = variant % 2 ? 100 : 0;
            call(&l, &p);
            guarded *alone = guarded_new(p.dtype, 4, p.out->shape, 0, 0);
            int64_t step = isas[a] == emulated ? 13 : 1; /* it takes long */
            for (int64_t i = 0; i < p.out->count && step > 1; i++)
                guarded_set(alone, i, guarded_get(p.out, i));
            for (int64_t i = 0; i < p.b * p.t * p.h; i += step) {
                int64_t b = i / p.h / p.t, query = i / p.h % p.t, h = i % p.h;
                keys seen = seen_by(&p, b, query);
                int64_t from = seen.from / BLOCK * BLOCK;
                view o[3], q[3], k[3], v[3];
                cut(&o[0], &alone->t, 0, b, 1), cut(&o[1], &o[0].t, 1, query, 1);
                cut(&q[0], &p.q->t, 0, b, 1), cut(&q[1], &q[0].t, 1, query, 1);
                cut(&k[0], &p.k->t, 0, b, 1), cut(&k[1], &k[0].t, 1, from, seen.until - from);
                cut(&v[0], &p.v->t, 0, b, 1), cut(&v[1], &v[0].t, 1, from, seen.until - from);
                ck_kernel_ok(&l, "attention", cut(&o[2], &o[1].t, 2, h, 1), cut(&q[2], &q[1].t, 2, h, 1),
                             cut(&k[2], &k[1].t, 2, h / 2, 1), cut(&v[2], &v[1].t, 2, h / 2, 1),
                             khub_arg_none(), khub_arg_float(p.scale), khub_arg_bool(p.causal),
                             khub_arg_int(p.window));
            }
            ck_assert_msg(guarded_equal(alone, p.out), "%s, variant %d", isas[a], variant);
            guarded_free(alone);
            problem_free(&p);
        }
    }
}
END_TEST

/* Keys and values that a query doesn't see are NaN, and nothing changes. */
START_TEST(blind_to_what_isnt_seen)
{
    const char *isas[ISAS];
    int count = isas_of(isas, "attention");
    static const int64_t shape[6] = {2, 70, 150, 2, 1, 24};
    for (int a = 0; a < count; a++) {
        library l = library_open("attention", isas[a]);
        for (int variant = 0; variant < 3; variant++) {
            int causal = variant > 0;
            problem p = problem_new(f32, shape, causal, 0, 0);
            p.window = variant == 2 ? 40 : 0;
            p.has_lengths = 1;
            p.lengths[0] = 67, p.lengths[1] = 150;
            call(&l, &p);
            guarded *before = p.out;
            p.out = guarded_new(f32, 4, before->shape, 0, 0);
            int64_t from[2] = {67,
                               causal ? 100 : 150}; /* queries up to 19 see less than 100 keys when causal */
            for (int64_t b = 0; b < 2; b++)
                for (int64_t i = from[b] * 24; i < 150 * 24; i++) {
                    guarded_set(p.k, b * 150 * 24 + i, NAN);
                    guarded_set(p.v, b * 150 * 24 + i, i % 2 ? NAN : INFINITY);
                }
            int64_t before_all[2] = {p.window ? 30 : 0,
                                     p.window ? 60 : 0}; /* and the first ones of a window */
            for (int64_t b = 0; b < 2; b++)
                for (int64_t i = 0; i < before_all[b] * 24; i++) {
                    guarded_set(p.k, b * 150 * 24 + i, NAN);
                    guarded_set(p.v, b * 150 * 24 + i, i % 2 ? NAN : INFINITY);
                }
            call(&l, &p);
            for (int64_t i = 0; i < p.out->count; i++) {
                int64_t b = i / (70 * 48), query = i / 48 % 70;
                keys seen = seen_by(&p, b, query);
                int sees_nan = seen.until > from[b] || (seen.until && seen.from < before_all[b]);
                float x = guarded_get(p.out, i), y = guarded_get(before, i);
                ck_assert_msg(sees_nan ? isnan(x) : bits_of_float(x) == bits_of_float(y),
                              "%s: query %d of %d is %g", isas[a], (int)query, (int)b, (double)x);
            }
            guarded_free(before);
            problem_free(&p);
        }
    }
}
END_TEST

/* One query on three keys with scores chosen by hand. */
START_TEST(scores_without_end)
{
    static const struct {
        float q, k[3], expected; /* values are 1, 2 and 4 */
    } table[] = {
        {1, {0, 0, 0}, 7.0f / 3},
        {1, {-INFINITY, 0, 0}, 3},
        {1, {-INFINITY, -INFINITY, 5}, 4},
        {1, {-INFINITY, -INFINITY, -INFINITY}, NAN},
        {1, {INFINITY, 0, 0}, NAN},
        {NAN, {0, 0, 0}, NAN},
        {1, {0, NAN, 0}, NAN},
        {1, {1000, 0, 0}, 1},
        {1, {-3e38f, 0, 3e38f}, 4},
    };
    const char *isas[ISAS];
    int count = isas_of(isas, "attention");
    for (int a = 0; a < count; a++) {
        library l = library_open("attention", isas[a]);
        for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
            problem p = problem_new(f32, (int64_t[]){1, 1, 3, 1, 1, 1}, 0, 0, 0);
            p.scale = 1;
            guarded_set(p.q, 0, table[i].q);
            for (int j = 0; j < 3; j++)
                guarded_set(p.k, j, table[i].k[j]), guarded_set(p.v, j, 1 << j);
            call(&l, &p);
            float got = guarded_get(p.out, 0), expected = table[i].expected;
            ck_assert_msg(isnan(expected) ? isnan(got) : fabsf(got - expected) <= 4 * (float)u32 * expected,
                          "%s, row %d: %g", isas[a], (int)i, (double)got);
            problem_free(&p);
        }
    }
}
END_TEST

START_TEST(nothing_to_do)
{
    library l = library_open("attention", NULL);
    static const int64_t empty[][6] = {{0, 2, 2, 2, 2, 4}, {2, 0, 2, 2, 2, 4}, {2, 2, 2, 0, 1, 4},
                                       {2, 2, 2, 0, 0, 4}, {2, 2, 2, 2, 2, 0}, {2, 2, 0, 2, 2, 4}};
    for (int s = 0; s < 6; s++)
        for (int causal = 0; causal < 2; causal++) {
            problem p = problem_new(f32, empty[s], causal, 0, 0);
            call(&l, &p);
            for (int64_t i = 0; i < p.out->count; i++) /* no keys: zeros */
                ck_assert(bits_of_float(guarded_get(p.out, i)) == 0);
            problem_free(&p);
        }
}
END_TEST

START_TEST(what_it_refuses)
{
    library l = library_open("attention", NULL);
    problem p = problem_new(f32, (int64_t[]){2, 3, 5, 4, 2, 8}, 0, 0, 0);
    problem q = problem_new(f32, (int64_t[]){2, 3, 5, 3, 2, 8}, 0, 0, 0);
    problem r = problem_new(bf16, (int64_t[]){2, 3, 5, 4, 2, 8}, 0, 0, 0);
    const khub_value none = khub_arg_none(), scale = khub_arg_float(1), causal = khub_arg_bool(0);
    const khub_value out = khub_arg_tensor(&p.out->t), tq = khub_arg_tensor(&p.q->t),
                     k = khub_arg_tensor(&p.k->t), v = khub_arg_tensor(&p.v->t),
                     odd_out = khub_arg_tensor(&q.out->t), odd_q = khub_arg_tensor(&q.q->t);
    ck_kernel_fails("ValueError: attention: q has 3 heads, not a multiple of k's 2", &l, "attention", odd_out,
                    odd_q, k, v, none, scale, causal, none);
    ck_kernel_fails("ValueError: attention: q has shape (2, 3, 3, 8), (b, t, h, d) is expected with h = 4",
                    &l, "attention", out, odd_q, k, v, none, scale, causal, none);
    ck_kernel_fails("TypeError: attention: v is bfloat16, out is float32", &l, "attention", out, tq, k,
                    khub_arg_tensor(&r.v->t), none, scale, causal, none);
    ck_kernel_fails("TypeError: attention: scale is None, a float is expected", &l, "attention", out, tq, k,
                    v, none, none, causal, none);
    ck_kernel_fails(
        "TypeError: attention: 3 arguments given, 8 expected: out, q, k, v, lengths, scale, causal, window",
        &l, "attention", out, tq, k);
    ck_kernel_fails("ValueError: attention: window is negative", &l, "attention", out, tq, k, v, none, scale,
                    causal, khub_arg_int(-1));
    ck_kernel_fails("TypeError: attention: window is a bool, an integer or None is expected", &l, "attention",
                    out, tq, k, v, none, scale, causal, causal);
    p.has_lengths = 1;
    khub_value lengths = lengths_of(&p);
    p.b_shape[0] = 3;
    ck_kernel_fails("ValueError: attention: lengths has shape (3), (b) is expected with b = 2", &l,
                    "attention", out, tq, k, v, lengths, scale, causal, none);
    p.b_shape[0] = 2;
    p.lengths_tensor.dtype.bits = 64;
    ck_kernel_fails("TypeError: attention: lengths is int64, int32 is expected", &l, "attention", out, tq, k,
                    v, lengths, scale, causal, none);
    problem_free(&p);
    problem_free(&q);
    problem_free(&r);
}
END_TEST

UNIT("kernels_attention", near_the_formula, near_the_formula_in_float16, same_bits_for_every_instruction_set,
     same_bits_in_any_company, blind_to_what_isnt_seen, scores_without_end, nothing_to_do, what_it_refuses)
