/* Calls cut into pieces: every element once, right, along the axis that makes sense, whatever the number of
 * threads. */
#include "unit.h"

#include "layer/slot.h"
#include "model/cut.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { PANEL = 16 };

/* What the fake kernels were called with. */
static atomic_int calls, fewest_rows, fewest_columns;

static void least(atomic_int *to, int64_t value)
{
    int now = atomic_load(to);
    while (value < now && !atomic_compare_exchange_weak(to, &now, (int)value))
        ;
}

static void forget(void)
{
    atomic_store(&calls, 0);
    atomic_store(&fewest_rows, 1 << 30);
    atomic_store(&fewest_columns, 1 << 30);
}

/* out (m, n) = x (m, k) weight (panels, k, 16) + bias (n), the weight packed as a kernel would; sums in
 * order, so that the result is the same bits however the call was cut. */
static int linear(void *self, const khub_value *args, int32_t count, khub_value *result)
{
    (void)self, (void)result;
    const khub_tensor *out = args[0].as.tensor, *x = args[1].as.tensor, *w = args[2].as.tensor;
    const khub_tensor *b = khub_value_tensor(&args[3]);
    int64_t m = out->shape[0], n = out->shape[1], k = x->shape[1];
    ck_assert_int_eq(count, 4);
    ck_assert_int_eq(x->shape[0], m);
    ck_assert_int_eq(w->shape[0], (n + PANEL - 1) / PANEL);
    if (b) ck_assert_int_eq(b->shape[0], n);
    atomic_fetch_add(&calls, 1);
    least(&fewest_rows, m);
    least(&fewest_columns, n);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            float sum = b ? ((float *)b->data)[j] : 0;
            const float *panel = (float *)w->data + j / PANEL * w->strides[0] + j % PANEL;
            for (int64_t l = 0; l < k; l++)
                sum += ((float *)x->data)[i * x->strides[0] + l] * panel[l * PANEL];
            ((float *)out->data)[i * out->strides[0] + j * out->strides[1]] = sum;
        }
    }
    return 0;
}

static int failing(void *self, const khub_value *args, int32_t count, khub_value *result)
{
    (void)self, (void)args, (void)count, (void)result;
    return khub_raise("ValueError", "no luck");
}

static const khub_slot_axis rows_and_columns[2] = {{"rows", {{0, 0, 1}, {1, 0, 1}}, 2},
                                                   {"columns", {{0, 1, 1}, {2, 0, PANEL}, {3, 0, 1}}, 3}};

/* A slot as kernelize leaves it: a function that declares rows and columns and wants its weight packed. */
static khub_slot *fill(khub_layers *layers, const char *path, khub_call_fn call, int axes)
{
    khub_slot *slot;
    khub_error err = {0};
    khub_function standard = {failing, NULL};
    ck_khub_ok(khub_layers_add(layers, path, "Linear", standard, NULL, &slot, &err), &err);
    khub_filling *f = calloc(1, sizeof(*f));
    f->function.call = call;
    f->in_order = 1;
    f->prepared_arg = f->returned_arg = -1;
    khub__filling_complete(f, khub__layer_find("Linear"));
    f->axis_count = (size_t)axes;
    f->axes = rows_and_columns;
    f->uses = 1;
    khub__slot_fill(layers, slot, f);
    return slot;
}

struct problem {
    int64_t m, n, k, x_shape[2], w_shape[3], out_shape[2], b_shape[1], w_strides[3], x_strides[2],
        out_strides[2];
    float *x, *w, *b, *out, *expected;
    khub_tensor tx, tw, tb, tout;
};

static float number(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (1 << 24) - 0.5f;
}

static void make(struct problem *p, int64_t m, int64_t n, int64_t k)
{
    int64_t panels = (n + PANEL - 1) / PANEL;
    unsigned seed = 7;
    *p = (struct problem){.m = m, .n = n, .k = k};
    p->x = calloc((size_t)(m * k), sizeof(float));
    p->w = calloc((size_t)(panels * k * PANEL), sizeof(float));
    p->b = calloc((size_t)n, sizeof(float));
    p->out = calloc((size_t)(m * n), sizeof(float));
    p->expected = calloc((size_t)(m * n), sizeof(float));
    for (int64_t i = 0; i < m * k; i++)
        p->x[i] = number(&seed);
    for (int64_t i = 0; i < panels * k * PANEL; i++)
        p->w[i] = number(&seed);
    for (int64_t i = 0; i < n; i++)
        p->b[i] = number(&seed);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            float sum = p->b[j];
            for (int64_t l = 0; l < k; l++)
                sum += p->x[i * k + l] * p->w[(j / PANEL * k + l) * PANEL + j % PANEL];
            p->expected[i * n + j] = sum;
        }
    }
    memcpy(p->x_shape, (int64_t[]){m, k}, sizeof(p->x_shape));
    memcpy(p->w_shape, (int64_t[]){panels, k, PANEL}, sizeof(p->w_shape));
    memcpy(p->out_shape, (int64_t[]){m, n}, sizeof(p->out_shape));
    p->b_shape[0] = n;
    p->tx = khub_tensor_f32(p->x, 2, p->x_shape);
    p->tw = khub_tensor_f32(p->w, 3, p->w_shape);
    p->tb = khub_tensor_f32(p->b, 1, p->b_shape);
    p->tout = khub_tensor_f32(p->out, 2, p->out_shape);
    /* the fake kernel reads strides, which an uncut call must have too */
    memcpy(p->x_strides, (int64_t[]){k, 1}, sizeof(p->x_strides));
    memcpy(p->w_strides, (int64_t[]){k * PANEL, PANEL, 1}, sizeof(p->w_strides));
    memcpy(p->out_strides, (int64_t[]){n, 1}, sizeof(p->out_strides));
    p->tx.strides = p->x_strides;
    p->tw.strides = p->w_strides;
    p->tout.strides = p->out_strides;
}

static void unmake(struct problem *p)
{
    free(p->x);
    free(p->w);
    free(p->b);
    free(p->out);
    free(p->expected);
}

static void add(khub__calls *list, khub_slot *slot, struct problem *p, double work)
{
    khub_error err = {0};
    const khub_value args[] = {khub_arg_tensor(&p->tout), khub_arg_tensor(&p->tx), khub_arg_tensor(&p->tw),
                               khub_arg_tensor(&p->tb)};
    ck_khub_ok(khub__calls_add(list, slot, args, 4, work, &err), &err);
}

static void check_and_wipe(struct problem *p)
{
    size_t bytes = (size_t)(p->m * p->n) * sizeof(float);
    ck_assert_int_eq(memcmp(p->out, p->expected, bytes), 0);
    memset(p->out, 0xff, bytes);
}

struct setup {
    khub_layers *layers;
    khub__threads *threads;
    khub__calls list;
};

static struct setup set_up(unsigned threads)
{
    struct setup s = {0};
    khub_error err = {0};
    ck_khub_ok(khub_layers_new(&s.layers, &err), &err);
    ck_khub_ok(khub__threads_new(&s.threads, threads, &err), &err);
    forget();
    return s;
}

static void tear_down(struct setup *s)
{
    khub__calls_free(&s->list);
    khub__threads_free(s->threads);
    khub_layers_free(s->layers);
}

START_TEST(where_cuts_fall)
{
    static const int64_t table[][4] = {
        /* extent, unit, pieces, then where the second piece starts, by hand */
        {384, 16, 2, 192}, {40, 16, 3, 16}, {40, 16, 2, 16}, {7, 1, 2, 3}, {33, 32, 2, 32}, {5, 1, 5, 1},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const int64_t *t = table[i];
        ck_assert_int_eq(khub__cut_at(t[0], t[1], t[2], 0), 0);
        ck_assert_int_eq(khub__cut_at(t[0], t[1], t[2], 1), t[3]);
        ck_assert_int_eq(khub__cut_at(t[0], t[1], t[2], t[2]), t[0]);
        for (int64_t k = 1; k < t[2]; k++) {
            int64_t at = khub__cut_at(t[0], t[1], t[2], k);
            ck_assert_int_eq(at % t[1], 0);
            ck_assert_int_gt(at, khub__cut_at(t[0], t[1], t[2], k - 1));
            ck_assert_int_lt(at, t[0]);
        }
    }
}
END_TEST

START_TEST(same_bits_however_cut)
{
    static const int64_t sizes[][3] = {{1, 1, 1},     {1, 100, 5},  {5, 16, 3},
                                       {12, 384, 64}, {100, 17, 9}, {33, 40, 20}};
    for (unsigned threads = 1; threads <= 5; threads++) {
        struct setup s = set_up(threads);
        khub_error err = {0};
        khub_slot *slot = fill(s.layers, "a", linear, 2);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            struct problem p;
            make(&p, sizes[i][0], sizes[i][1], sizes[i][2]);
            add(&s.list, slot, &p, 1e9); /* as if it were worth every cut */
            ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
            check_and_wipe(&p);
            unmake(&p);
        }
        tear_down(&s);
    }
}
END_TEST

START_TEST(axis_that_makes_sense)
{
    struct setup s = set_up(2);
    khub_error err = {0};
    khub_slot *slot = fill(s.layers, "a", linear, 2);
    struct problem few, many;
    make(&few, 12, 384,
         16); /* x is smaller than the weight: each thread reads its own columns of the weight */
    add(&s.list, slot, &few, 1e9);
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    check_and_wipe(&few);
    ck_assert_int_gt(atomic_load(&calls), 1);
    ck_assert_int_eq(atomic_load(&fewest_rows), 12);
    ck_assert_int_lt(atomic_load(&fewest_columns), 384);
    forget();
    make(&many, 500, 32, 16); /* the other way round */
    add(&s.list, slot, &many, 1e9);
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    check_and_wipe(&many);
    ck_assert_int_gt(atomic_load(&calls), 1);
    ck_assert_int_eq(atomic_load(&fewest_columns), 32);
    ck_assert_int_lt(atomic_load(&fewest_rows), 500);
    unmake(&few);
    unmake(&many);
    tear_down(&s);
}
END_TEST

START_TEST(not_cut_when_it_cant_or_shouldnt_be)
{
    struct setup s = set_up(4);
    khub_error err = {0};
    khub_slot *plain = fill(s.layers, "no axes", linear, 0), *slot = fill(s.layers, "axes", linear, 2);
    struct problem p;
    make(&p, 12, 64, 16);
    add(&s.list, plain, &p, 1e9);
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    check_and_wipe(&p);
    ck_assert_int_eq(atomic_load(&calls), 1);
    add(&s.list, slot, &p, 1000); /* a microsecond's worth */
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    check_and_wipe(&p);
    ck_assert_int_eq(atomic_load(&calls), 2);
    unmake(&p);
    tear_down(&s);
}
END_TEST

static int counting(void *self, const khub_value *args, int32_t count, khub_value *result)
{
    (void)self, (void)args, (void)count, (void)result;
    atomic_fetch_add(&calls, 1);
    return 0;
}

START_TEST(not_cut_when_extents_disagree)
{
    struct setup s = set_up(2);
    khub_error err = {0};
    khub_slot *slot = fill(s.layers, "a", counting, 2);
    struct problem p;
    make(&p, 1, 64, 16); /* one row: columns are all there is to cut */
    add(&s.list, slot, &p, 1e9);
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    ck_assert_int_gt(atomic_load(&calls), 1);
    forget();
    p.b_shape[0] = 16;
    add(&s.list, slot, &p, 1e9);
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    ck_assert_int_eq(atomic_load(&calls), 1);
    unmake(&p);
    tear_down(&s);
}
END_TEST

/* out (4 m, n): rows 4 i … 4 i + 3 are row i of x (m, n), as the heads of grouped queries go with those of
 * the keys. */
static int four_of_each(void *self, const khub_value *args, int32_t count, khub_value *result)
{
    (void)self, (void)result, (void)count;
    const khub_tensor *out = args[0].as.tensor, *x = args[1].as.tensor;
    ck_assert_int_eq(out->shape[0], 4 * x->shape[0]);
    atomic_fetch_add(&calls, 1);
    for (int64_t i = 0; i < out->shape[0]; i++)
        memcpy((float *)out->data + i * out->strides[0], (float *)x->data + i / 4 * x->strides[0],
               (size_t)x->shape[1] * sizeof(float));
    return 0;
}

START_TEST(multiples_are_cut_in_proportion)
{
    enum { M = 6, N = 3 };
    struct setup s = set_up(2);
    khub_error err = {0};
    khub_slot *slot = fill(s.layers, "a", four_of_each, 1);
    struct problem p;
    make(&p, M, 16, N);
    float out[4 * M][N];
    p.tout = khub_tensor_f32(out[0], 2, (int64_t[]){4 * M, N});
    p.tout.strides = (int64_t[]){N, 1};
    add(&s.list, slot, &p, 1e9);
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    ck_assert_int_gt(atomic_load(&calls), 1);
    for (int64_t i = 0; i < 4 * M; i++)
        ck_assert_mem_eq(out[i], p.x + i / 4 * N, sizeof(out[i]));
    unmake(&p);
    tear_down(&s);
}
END_TEST

START_TEST(several_calls_in_one_go)
{
    struct setup s = set_up(3);
    khub_error err = {0};
    struct problem p[5];
    khub_slot *slot = fill(s.layers, "a", linear, 2), *bad = fill(s.layers, "b", failing, 2),
              *worse = fill(s.layers, "c", failing, 0);
    for (int i = 0; i < 5; i++) {
        make(&p[i], 3 + i, 20 * (i + 1), 8);
        add(&s.list, slot, &p[i], i % 2 ? 1e9 : 1);
    }
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    for (int i = 0; i < 5; i++)
        check_and_wipe(&p[i]);
    add(&s.list, slot, &p[0], 1);
    add(&s.list, bad, &p[1], 1e9);
    add(&s.list, worse, &p[2], 1);
    ck_khub_fails(khub__calls_run(&s.list, s.threads, &err), &err, KHUB_E_KERNEL, "b (");
    add(&s.list, slot, &p[0], 1); /* nothing of a failure stays */
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    check_and_wipe(&p[0]);
    for (int i = 0; i < 5; i++)
        unmake(&p[i]);
    tear_down(&s);
}
END_TEST

static pthread_t caller;
static atomic_int strangers;
static int of_one_thread(void *self, const khub_value *args, int32_t count, khub_value *result)
{
    if (!pthread_equal(pthread_self(), caller)) atomic_fetch_add(&strangers, 1);
    usleep(1000); /* so that another thread would come to the next call */
    return linear(self, args, count, result);
}

/* What declares no axes may have threads of its own, for each thread that calls it. */
START_TEST(uncut_calls_are_the_callers_own)
{
    struct setup s = set_up(3);
    khub_error err = {0};
    struct problem p[12];
    khub_slot *cut = fill(s.layers, "a", linear, 2), *whole = fill(s.layers, "b", of_one_thread, 0);
    caller = pthread_self();
    for (int i = 0; i < 12; i++) {
        make(&p[i], 3 + i, 20, 8);
        add(&s.list, i % 4 ? whole : cut, &p[i], 1e9);
    }
    ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
    ck_assert_int_eq(atomic_load(&strangers), 0);
    for (int i = 0; i < 12; i++) {
        check_and_wipe(&p[i]);
        unmake(&p[i]);
    }
    tear_down(&s);
}
END_TEST

/* A kernel that fails in one piece, after it has spoilt its output. */
static atomic_int pieces_called;
static int failing_once(void *self, const khub_value *args, int32_t count, khub_value *result)
{
    khub_tensor *out = args[0].as.tensor;
    ((float *)out->data)[0] = -1;
    return atomic_fetch_add(&pieces_called, 1) == 1 ? failing(self, args, count, result) : 0;
}

/* The standard function does the whole call again, with the weight that isn't prepared. */
START_TEST(done_again_as_a_whole)
{
    struct setup s = set_up(3);
    khub_error err = {0};
    struct problem p[2];
    khub_slot *good = fill(s.layers, "good", linear, 2), *bad = fill(s.layers, "bad", failing_once, 2);
    const int64_t shape[3] = {1, 1, PANEL};
    khub_filling *kernel = bad->kernel;
    bad->standard.function.call = linear;
    for (int i = 0; i < 2; i++)
        make(&p[i], 12, 96, 8);
    kernel->prepared_arg = 2;
    ck_khub_ok(khub_array_new(&kernel->prepared.array, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), 3, shape, &err),
               &err);
    atomic_store(&bad->retries, 1);
    for (uint64_t i = 1; i <= 2; i++) {
        atomic_store(&pieces_called, 0);
        kernel->axis_count = i == 1 ? 1 : 0; /* rows; then in one piece, which is the second */
        if (i == 2) atomic_store(&pieces_called, 1);
        add(&s.list, good, &p[0], 1e9);
        add(&s.list, bad, &p[1], 1e9);
        ck_khub_ok(khub__calls_run(&s.list, s.threads, &err), &err);
        check_and_wipe(&p[0]);
        check_and_wipe(&p[1]);
        ck_assert_uint_eq(khub_slot_retried(bad), i);
    }
    ck_assert_uint_eq(khub_slot_retried(good), 0);
    for (int i = 0; i < 2; i++)
        unmake(&p[i]);
    tear_down(&s);
}
END_TEST

UNIT("cut", where_cuts_fall, same_bits_however_cut, axis_that_makes_sense,
     not_cut_when_it_cant_or_shouldnt_be, not_cut_when_extents_disagree, multiples_are_cut_in_proportion,
     several_calls_in_one_go, uncut_calls_are_the_callers_own, done_again_as_a_whole)
