/* khub/embedding: right by the formula in double, the same bits for every instruction set, index type, layout
 * and split; an index that a table doesn't have is told, and nothing is written. */
#include "kernels.h"

enum { OUT, IDS, TYPE_IDS, POSITION_IDS, WORDS, TYPES, POSITIONS, WEIGHT, BIAS, ARGS };
static const khub_dtype i32 = {KHUB_DTYPE_INT, 32, 1}, i64 = {KHUB_DTYPE_INT, 64, 1};
static const double u32 = 0x1p-24;
static const float eps = 1e-5f;
static const int64_t extents[] = {40, 2, 9}; /* rows of the tables */

/* The arguments of one call but for eps; NULL: None. */
typedef struct arguments {
    guarded *tensor[ARGS];
    int64_t rows, n;
} arguments;

static void put_index(const guarded *g, int64_t i, int64_t index)
{
    memcpy(element_at(g, i), &index, g->t.dtype.bits / 8); /* little-endian */
}

static int64_t index_of(const guarded *g, int64_t i)
{
    int64_t index = 0;
    if (g) memcpy(&index, element_at(g, i), g->t.dtype.bits / 8);
    return index;
}

/* Two axes of rows, each row and each table's row `gap` elements apart. */
static arguments arguments_new(khub_dtype dtype, khub_dtype index, int64_t n, int64_t gap, size_t shift)
{
    const int64_t out[3] = {3, 4, n};
    arguments a = {.rows = 12, .n = n};
    a.tensor[OUT] = guarded_new(dtype, 3, out, gap, shift);
    for (int i = 0; i < 3; i++) {
        const int64_t table[2] = {extents[i], n};
        a.tensor[IDS + i] = guarded_new(index, 2, out, gap, shift);
        for (int64_t row = 0; row < a.rows; row++)
            put_index(a.tensor[IDS + i], row, row ? random_bits() % extents[i] : extents[i] - 1);
        a.tensor[WORDS + i] = guarded_new(dtype, 2, table, gap, shift);
        guarded_fill(a.tensor[WORDS + i], random_normal);
    }
    for (int i = WEIGHT; i < ARGS; i++) {
        a.tensor[i] = guarded_new(dtype, 1, &n, 0, shift);
        guarded_fill(a.tensor[i], random_normal);
    }
    return a;
}

static void arguments_free(arguments *a)
{
    for (int i = 0; i < ARGS; i++)
        guarded_free(a->tensor[i]);
}

/* 0, or -1 with the error in `words`; `none`: a bit for each argument that is None. */
static int call(const library *l, const arguments *a, unsigned none, char words[1024])
{
    khub_value args[ARGS + 1];
    for (int i = 0; i < ARGS; i++)
        args[i] = none >> i & 1 ? khub_arg_none() : khub_arg_tensor(&a->tensor[i]->t);
    args[ARGS] = khub_arg_float(eps);
    return call_kernel(l, "embedding_layer_norm", args, ARGS + 1, words);
}

static void call_well(const library *l, const arguments *a, unsigned none)
{
    char words[1024];
    ck_assert_msg(call(l, a, none, words) == 0, "%s", words);
    for (int i = 0; i < ARGS; i++)
        ck_assert_msg(guards_hold(a->tensor[i]), "wrote outside argument %d", i);
}

/* What is added for element k of a row, in float32 and rounded once, in the order of the tables; `size`: of
 * the terms. */
static double sum_of(const arguments *a, unsigned none, int64_t row, int64_t k, double *size)
{
    float sum = 0;
    for (int i = 0; i < 3; i++) {
        const guarded *ids = none >> (IDS + i) & 1 ? NULL : a->tensor[IDS + i];
        if (none >> (WORDS + i) & 1) continue;
        float part = guarded_get(a->tensor[WORDS + i], index_of(ids, row) * a->n + k);
        sum = i ? sum + part : part;
        *size += fabs(part);
    }
    return is_bf16(a->tensor[OUT]->t.dtype) ? round_bf16(sum) : sum;
}

/* Sums, mean and variance are off as in test_kernels_rows.c. */
static void check_row(const arguments *a, unsigned none, int64_t row)
{
    double sums[1000], mean = 0, size = 0, variance = 0, terms = 0;
    double chain = 2 * ((double)a->n / 16 + 5) * u32;
    for (int64_t k = 0; k < a->n; k++) {
        sums[k] = sum_of(a, none, row, k, &terms);
        mean += sums[k] / (double)a->n, size += fabs(sums[k]) / (double)a->n;
    }
    for (int64_t k = 0; k < a->n; k++)
        variance += (sums[k] - mean) * (sums[k] - mean) / (double)a->n;
    double scale = 1 / sqrt(variance + eps);
    for (int64_t k = 0; k < a->n; k++) {
        double bias = none >> BIAS & 1 ? 0 : guarded_get(a->tensor[BIAS], k), d = sums[k] - mean;
        double weight = guarded_get(a->tensor[WEIGHT], k), out = d * scale * weight + bias;
        double got = guarded_get(a->tensor[OUT], row * a->n + k), by = scale * fabs(weight);
        double off = chain * size * by * (1 + fabs(d) * scale) + (chain + 12 * u32) * fabs(d) * by +
                     u32 * fabs(out) + 2 * u32 * fabs(bias);
        off += stored_within(a->tensor[OUT]->t.dtype) * (fabs(out) + off);
        ck_assert_msg(fabs(got - out) <= off, "row %lld, element %lld is %a, %a expected", (long long)row,
                      (long long)k, got, out);
    }
}

static const int64_t widths[] = {1, 15, 16, 33, 384, 1000};
/* Each of what may be None, alone and together. */
static const unsigned nones[] = {0,
                                 1u << TYPE_IDS,
                                 1u << POSITION_IDS,
                                 1u << TYPES,
                                 1u << POSITIONS,
                                 1u << BIAS,
                                 1u << TYPE_IDS | 1u << TYPES | 1u << POSITION_IDS | 1u << POSITIONS};
enum { WIDTHS = sizeof(widths) / sizeof(*widths), NONES = sizeof(nones) / sizeof(*nones) };

START_TEST(right_by_the_formula)
{
    library l = library_open("embedding", all_isas[0]);
    for (int s = 0; s < WIDTHS; s++)
        for (int half = 0; half < 2; half++)
            for (int k = 0; k < NONES; k++) {
                arguments a = arguments_new(half ? bf16 : f32, k % 2 ? i32 : i64, widths[s], 0, 0);
                call_well(&l, &a, nones[k]);
                for (int64_t row = 0; row < a.rows; row++)
                    check_row(&a, nones[k], row);
                arguments_free(&a);
            }
}
END_TEST

/* A tensor's numbers in another of the same shape. */
static void copy(guarded *to, const guarded *from)
{
    int is_index = from->t.dtype.code == KHUB_DTYPE_INT;
    for (int64_t i = 0; i < from->count; i++)
        if (is_index)
            put_index(to, i, index_of(from, i));
        else
            guarded_set(to, i, guarded_get(from, i));
}

/* The instruction set, the type of the indices, where rows lie and at which alignment. */
START_TEST(same_bits_however_it_is_called)
{
    const char *isas[ISAS];
    int count = isas_of(isas, "embedding");
    library first = library_open("embedding", NULL);
    for (int s = 0; s < WIDTHS; s++)
        for (int half = 0; half < 2; half++) {
            arguments a = arguments_new(half ? bf16 : f32, i32, widths[s], 0, 0);
            guarded_set(a.tensor[WORDS], 0, NAN);
            guarded_set(a.tensor[WORDS], 3 * widths[s], 0x1p120); /* a row whose squares have no sum */
            call_well(&first, &a, 0);
            for (int k = 0; k < count; k++) {
                library l = library_open("embedding", isas[k]);
                arguments b = arguments_new(half ? bf16 : f32, i64, widths[s], 5, half ? 2 : 4);
                for (int i = IDS; i < ARGS; i++)
                    copy(b.tensor[i], a.tensor[i]);
                call_well(&l, &b, 0);
                ck_assert_msg(guarded_equal(a.tensor[OUT], b.tensor[OUT]), "%s, n = %lld", isas[k],
                              (long long)widths[s]);
                arguments_free(&b);
                dlclose(l.handle);
            }
            arguments_free(&a);
        }
}
END_TEST

/* It is LayerNorm of the sum as it is stored: the very function of khub/norm. */
START_TEST(the_bits_of_layer_norm)
{
    library l = library_open("embedding", NULL), norm = library_open("norm", NULL);
    for (int half = 0; half < 2; half++) {
        arguments a = arguments_new(half ? bf16 : f32, i64, 100, 0, 0);
        const int64_t shape[3] = {3, 4, 100};
        guarded *sum = guarded_new(half ? bf16 : f32, 3, shape, 0, 0);
        for (int64_t i = 0; i < sum->count; i++) {
            double size = 0;
            guarded_set(sum, i, sum_of(&a, 0, i / 100, i % 100, &size));
        }
        call_well(&l, &a, 0);
        ck_kernel_ok(&norm, "layer_norm", khub_arg_tensor(&sum->t), khub_arg_tensor(&sum->t),
                     khub_arg_tensor(&a.tensor[WEIGHT]->t), khub_arg_tensor(&a.tensor[BIAS]->t),
                     khub_arg_float(eps));
        ck_assert(guarded_equal(sum, a.tensor[OUT]));
        guarded_free(sum);
        arguments_free(&a);
    }
}
END_TEST

START_TEST(same_bits_for_every_split)
{
    library l = library_open("embedding", NULL);
    arguments a = arguments_new(f32, i32, 77, 0, 0), b = a;
    const int64_t shape[3] = {3, 4, 77};
    b.tensor[OUT] = guarded_new(f32, 3, shape, 0, 0);
    call_well(&l, &a, 0);
    for (int64_t from = 0, to; from < 3; from = to) {
        char words[1024];
        khub_tensor piece[ARGS];
        int64_t extent[4][3];
        khub_value args[ARGS + 1];
        to = from ? 3 : 1;
        for (int i = 0; i < ARGS; i++) {
            piece[i] = b.tensor[i]->t;
            if (i > POSITION_IDS) continue;
            memcpy(extent[i], piece[i].shape, sizeof(int64_t) * (size_t)piece[i].ndim);
            extent[i][0] = to - from;
            piece[i].shape = extent[i];
            piece[i].byte_offset += (uint64_t)(from * b.tensor[i]->strides[0] * (piece[i].dtype.bits / 8));
        }
        for (int i = 0; i < ARGS; i++)
            args[i] = khub_arg_tensor(&piece[i]);
        args[ARGS] = khub_arg_float(eps);
        ck_assert_msg(call_kernel(&l, "embedding_layer_norm", args, ARGS + 1, words) == 0, "%s", words);
    }
    ck_assert(guarded_equal(a.tensor[OUT], b.tensor[OUT]));
    guarded_free(b.tensor[OUT]);
    arguments_free(&a);
}
END_TEST

/* Argument, place and number are told; the whole output is as it was. */
START_TEST(indices_that_a_table_lacks)
{
    static const struct {
        int arg;
        int64_t at, index;
        const char *words;
    } table[] = {
        {IDS, 11, 40, "IndexError: embedding_layer_norm: ids[11] is 40, words has 40 rows"},
        {IDS, 0, -1, "IndexError: embedding_layer_norm: ids[0] is -1, words has 40 rows"},
        {TYPE_IDS, 5, 2, "IndexError: embedding_layer_norm: type_ids[5] is 2, types has 2 rows"},
        {POSITION_IDS, 4, 9, "IndexError: embedding_layer_norm: position_ids[4] is 9, positions has 9 rows"}};
    const char *isas[ISAS];
    int count = isas_of(isas, "embedding");
    for (int k = 0; k < count; k++) {
        library l = library_open("embedding", isas[k]);
        for (size_t i = 0; i < 2 * sizeof(table) / sizeof(*table); i++) {
            int64_t at = table[i / 2].at, index = table[i / 2].index;
            arguments a = arguments_new(f32, i % 2 ? i64 : i32, 20, 3, 0);
            char words[1024];
            put_index(a.tensor[table[i / 2].arg], at, index);
            memset(a.tensor[OUT]->base, FILL, a.tensor[OUT]->bytes);
            ck_assert_int_eq(call(&l, &a, 0, words), -1);
            ck_assert_str_eq(words, table[i / 2].words);
            for (size_t byte = 0; byte < a.tensor[OUT]->bytes; byte++)
                ck_assert_uint_eq(a.tensor[OUT]->base[byte], FILL);
            arguments_free(&a);
        }
    }
    library l = library_open("embedding", NULL); /* beyond what 32 bits hold; and a table without rows */
    arguments a = arguments_new(f32, i64, 20, 0, 0);
    char words[1024];
    put_index(a.tensor[IDS], 2, INT64_C(1) << 32);
    ck_assert_int_eq(call(&l, &a, 0, words), -1);
    ck_assert_str_eq(words, "IndexError: embedding_layer_norm: ids[2] is 4294967296, words has 40 rows");
    put_index(a.tensor[IDS], 2, 0);
    a.tensor[TYPES]->shape[0] = 0;
    a.tensor[TYPES]->t.data = NULL;
    ck_assert_int_eq(call(&l, &a, 1u << TYPE_IDS, words), -1);
    ck_assert_str_eq(words, "IndexError: embedding_layer_norm: type_ids[0] is 0, types has 0 rows");
    arguments_free(&a);
}
END_TEST

START_TEST(arguments_that_do_not_fit)
{
    library l = library_open("embedding", NULL);
    arguments a = arguments_new(f32, i32, 20, 0, 0);
    char words[1024];
    a.tensor[TYPE_IDS]->t.dtype = f32;
    ck_assert_int_eq(call(&l, &a, 0, words), -1);
    ck_assert_str_eq(words,
                     "TypeError: embedding_layer_norm: type_ids is float32, int32 or int64 is expected");
    a.tensor[TYPE_IDS]->t.dtype = i32;
    a.tensor[POSITION_IDS]->shape[1] = 3;
    ck_assert_int_eq(call(&l, &a, 0, words), -1);
    ck_assert_str_eq(words,
                     "ValueError: embedding_layer_norm: position_ids has shape (3, 3), out has (3, 4, 20): "
                     "the leading axes differ");
    a.tensor[POSITION_IDS]->shape[1] = 4;
    guarded *words_table = a.tensor[WORDS];
    a.tensor[WORDS] = a.tensor[OUT]; /* (3, 4, 20) is no table */
    ck_assert_int_eq(call(&l, &a, 0, words), -1);
    ck_assert_str_eq(words,
                     "ValueError: embedding_layer_norm: words has shape (3, 4, 20), (v, n) is expected");
    a.tensor[WORDS] = words_table;
    a.tensor[OUT]->t.data = (char *)words_table->t.data; /* of which it would overwrite rows that it needs */
    ck_assert_int_eq(call(&l, &a, 0, words), -1);
    ck_assert_str_eq(words, "ValueError: embedding_layer_norm: out overlaps words");
    arguments_free(&a);
}
END_TEST

UNIT("kernels_embedding", right_by_the_formula, same_bits_however_it_is_called, the_bits_of_layer_norm,
     same_bits_for_every_split, indices_that_a_table_lacks, arguments_that_do_not_fit)
