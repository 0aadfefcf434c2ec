/* Pairs of tensors, row by row and block by block. */
#include <khub/numerics.h>

#include "numerics/fast.h"
#include "numerics/pairs.h"

#include "tensor/array.h"
#include "tensor/strided.h"

#include "base/error.h"

#include <math.h>

/* The elements of a tensor in row-major order, some at a time. */
typedef struct source {
    const khub__dtype_reader *reader;
    const char *at; /* the next element; NULL: `places` knows, and it is copied into `gathered` */
    khub__strided places;
    char gathered[8 * KHUB__BLOCK];
} source;

static void open_source(source *s, const khub_tensor *t, const khub__dtype_reader *reader)
{
    s->reader = reader;
    s->at = NULL;
    if (khub_tensor_is_compact(t))
        s->at = (const char *)t->data + t->byte_offset;
    else
        khub__strided_start(&s->places, t, reader->bytes);
}

static const void *next_elements(source *s, size_t count)
{
    const char *at = s->at;
    if (at)
        s->at += count * s->reader->bytes;
    else
        khub__strided_gather(&s->places, s->gathered, count);
    return at ? at : s->gathered;
}

/* One comparison under way. */
typedef struct job {
    khub_comparison *sum;
    khub__pairs_read *read;
    const khub__fast *fast; /* NULL: none for these dtypes */
    source a, b;
    int64_t block; /* pairs */
    khub__pairs pairs;
} job;

/* A block, part by part; counts its pairs. */
static void take_plain(job *j, const char *a, const char *b, size_t count)
{
    khub__lane_sums sums = {{{0}}};
    for (size_t i = 0; i < count; i += KHUB__PART) {
        size_t part = count - i < KHUB__PART ? count - i : KHUB__PART;
        j->read(&j->pairs, j->sum, a + i * j->a.reader->bytes, b + i * j->b.reader->bytes, part);
        khub__lanes_take(&sums, &j->pairs);
        khub__pairs_worst(j->sum, &j->pairs);
        j->sum->count += part;
    }
    khub__lanes_add(j->sum, &sums);
}

/* 1: fast, and so *tops is known, if asked. */
static int take_block(job *j, khub__tops *tops, const void *a, const void *b, size_t count)
{
    int is_fast = j->fast && j->fast->block(j->sum, a, b, count, j->read, &j->pairs, tops);
    if (is_fast)
        j->sum->count += count;
    else
        take_plain(j, a, b, count);
    return is_fast;
}

static void keep_top(size_t (*find)(const void *, size_t, int64_t), khub__largest *l, const void *at,
                     size_t count, int64_t from, int64_t top)
{
    if (top > l->order) *l = (khub__largest){top, from + (int64_t)find(at, count, top)};
}

static void count_row(job *j, const khub__largest *a, const khub__largest *b)
{
    j->sum->rows++;
    j->sum->argmax_same += a->index == b->index;
}

static const khub__largest none = {INT64_MIN, 0};

/* A row of any width, in pieces. */
static void take_row(job *j, int64_t width)
{
    khub__largest in_a = none, in_b = none;
    for (int64_t from = 0; from < width; from += j->block) {
        size_t count = (size_t)(width - from < j->block ? width - from : j->block);
        const void *a = next_elements(&j->a, count), *b = next_elements(&j->b, count);
        khub__tops tops;
        if (take_block(j, &tops, a, b, count)) {
            keep_top(j->fast->find, &in_a, a, count, from, tops.a);
            keep_top(j->fast->find_beside, &in_b, b, count, from, tops.b);
        } else {
            j->a.reader->look(&in_a, a, count, from);
            j->b.reader->look(&in_b, b, count, from);
        }
    }
    count_row(j, &in_a, &in_b);
}

/* How many rows have their largest at the same place. */
static size_t look_at_rows(const job *j, const char *a, const char *b, size_t rows, size_t width)
{
    size_t a_bytes = width * j->a.reader->bytes, b_bytes = width * j->b.reader->bytes, same = 0;
    for (size_t row = 0; row < rows; row++, a += a_bytes, b += b_bytes) {
        khub__largest in_a = none, in_b = none;
        j->a.reader->look(&in_a, a, width, 0);
        j->b.reader->look(&in_b, b, width, 0);
        same += in_a.index == in_b.index;
    }
    return same;
}

/* As many rows as fit in a block. */
static void take_short_rows(job *j, size_t rows, size_t width)
{
    khub_comparison *sum = j->sum;
    size_t count = rows * width;
    const void *a = next_elements(&j->a, count), *b = next_elements(&j->b, count);
    uint64_t identical = sum->identical;
    int is_fast = take_block(j, NULL, a, b, count);
    sum->rows += rows;
    if (width == 1 || (j->a.reader == j->b.reader && sum->identical - identical == count))
        sum->argmax_same += rows;
    else
        sum->argmax_same += is_fast ? j->fast->rows(a, b, rows, width) : look_at_rows(j, a, b, rows, width);
}

static void take_all(job *j, const khub_tensor *a)
{
    int64_t width = a->ndim ? a->shape[a->ndim - 1] : 1, rows = khub_tensor_count(a) / width;
    int64_t at_once = j->block / width;
    for (int64_t row = 0; row < rows;) {
        if (at_once < 2) {
            take_row(j, width);
            row++;
            continue;
        }
        int64_t now = rows - row < at_once ? rows - row : at_once;
        take_short_rows(j, (size_t)now, (size_t)width);
        row += now;
    }
}

static double of_sum(const khub_comparison *c, int which)
{
    return c->sums[which].high + c->sums[which].low;
}

static double cosine_of(const khub_comparison *c)
{
    double aa = of_sum(c, KHUB__SUM_A), bb = of_sum(c, KHUB__SUM_B);
    if (aa == 0 && bb == 0) return 1;
    if (aa == 0 || bb == 0) return 0;
    if (of_sum(c, KHUB__SUM_SQUARE) == 0) return 1; /* whatever the roots are rounded to */
    double cosine = of_sum(c, KHUB__SUM_PRODUCT) / (sqrt(aa) * sqrt(bb));
    return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
}

/* Works out what is made of counts and sums. */
static void derive(khub_comparison *c)
{
    double finite = c->finite ? (double)c->finite : 1;
    c->identical_share = c->count ? (double)c->identical / (double)c->count : 1;
    c->mean_ulp = of_sum(c, KHUB__SUM_ULP) / finite;
    c->mean_absolute = of_sum(c, KHUB__SUM_ABSOLUTE) / finite;
    c->rms = sqrt(of_sum(c, KHUB__SUM_SQUARE) / finite);
    c->cosine = cosine_of(c);
}

/* What can be wrong with one of the tensors; how it is read when nothing is. */
static int check_tensor(const khub__dtype_reader **reader, const khub_tensor *t, const char *name,
                        khub_error *err)
{
    char dtype[32];
    if (t->device.type != KHUB_DEVICE_CPU)
        return khub__fail(err, KHUB_E_INVAL, "comparing: %s lies on device %d:%d, only the CPU's (1) can be",
                          name, (int)t->device.type, (int)t->device.id);
    if (t->ndim > KHUB_MAX_NDIM)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "comparing: %s has %d axes, at most %d are possible", name,
                          (int)t->ndim, KHUB_MAX_NDIM);
    int64_t count = khub_tensor_count(t);
    if (count < 0 || (count > 0 && !t->data))
        return khub__fail(err, KHUB_E_INVAL, "comparing: %s has %s", name,
                          count < 0 ? "an impossible shape" : "no memory");
    *reader = khub__dtype_reader_of(t->dtype);
    if (*reader) return KHUB_OK;
    return khub__fail(err, KHUB_E_UNSUPPORTED, "comparing: %s is %s, which isn't compared", name,
                      khub_dtype_name(t->dtype, dtype));
}

static int same_dtype(khub_dtype x, khub_dtype y)
{
    return memcmp(&x, &y, sizeof(x)) == 0;
}

/* The way to read a beside b. */
static int check_dtypes(khub__pairs_read **read, const khub__dtype_reader *a, const khub__dtype_reader *b,
                        khub_error *err)
{
    char first[32], second[32];
    *read = NULL;
    if (a == b)
        *read = a->same;
    else if (same_dtype(b->dtype, khub_dtype_of(KHUB_DTYPE_FLOAT, 32)))
        *read = a->beside_float32;
    else if (same_dtype(b->dtype, khub_dtype_of(KHUB_DTYPE_FLOAT, 64)))
        *read = a->beside_float64;
    if (*read) return KHUB_OK;
    return khub__fail(
        err, KHUB_E_INVAL,
        "comparing: a is %s, b is %s: the same is expected, or for floats a wider float32 or float64",
        khub_dtype_name(a->dtype, first), khub_dtype_name(b->dtype, second));
}

/* b as a tensor of a's shape, with steps of 0 where it is repeated. `strides` holds KHUB_MAX_NDIM. */
static int broadcast(khub_tensor *view, int64_t *strides, const khub_tensor *a, const khub_tensor *b,
                     khub_error *err)
{
    int32_t before = a->ndim - b->ndim;
    int64_t step = 1;
    int fits = before >= 0;
    for (int32_t i = a->ndim; fits && i-- > 0;) {
        int64_t extent = i >= before ? b->shape[i - before] : 1;
        fits = extent == a->shape[i] || extent == 1;
        strides[i] = extent == 1 ? 0 : b->strides ? b->strides[i - before] : step;
        step *= extent;
    }
    *view = *b;
    view->ndim = a->ndim;
    view->shape = a->shape;
    view->strides = strides;
    if (fits) return KHUB_OK;
    char first[128], second[128];
    return khub__fail(
        err, KHUB_E_INVAL, "comparing: a has shape %s, b has %s, which isn't it, nor broadcast to it",
        khub__shape_text(first, a->ndim, a->shape), khub__shape_text(second, b->ndim, b->shape));
}

static int is_empty(const khub_comparison *c)
{
    return c->dtype.bits == 0;
}

static int check_same_kind(const khub_comparison *c, khub_dtype a, khub_dtype b, khub_error *err)
{
    char text[4][32];
    if (is_empty(c) || (same_dtype(c->dtype, a) && same_dtype(c->reference, b))) return KHUB_OK;
    return khub__fail(err, KHUB_E_INVAL, "comparing: %s beside %s is added to a comparison of %s beside %s",
                      khub_dtype_name(a, text[0]), khub_dtype_name(b, text[1]),
                      khub_dtype_name(c->dtype, text[2]), khub_dtype_name(c->reference, text[3]));
}

int khub_comparison_add(khub_comparison *sum, const khub_tensor *a, const khub_tensor *b, khub_error *err)
{
    const khub__dtype_reader *a_reader, *b_reader;
    khub__pairs_read *read;
    khub_tensor view;
    int64_t strides[KHUB_MAX_NDIM];
    int rc = khub__given("khub_comparison_add", sum && a && b, err);
    if (rc == KHUB_OK) rc = check_tensor(&a_reader, a, "a", err);
    if (rc == KHUB_OK) rc = check_tensor(&b_reader, b, "b", err);
    if (rc == KHUB_OK) rc = check_dtypes(&read, a_reader, b_reader, err);
    if (rc == KHUB_OK) rc = broadcast(&view, strides, a, b, err);
    if (rc == KHUB_OK) rc = check_same_kind(sum, a->dtype, b->dtype, err);
    if (rc != KHUB_OK) return rc;
    sum->dtype = a->dtype;
    sum->reference = b->dtype;
    if (khub_tensor_count(a) > 0) {
        job j;
        j.sum = sum;
        j.read = read;
        j.fast = khub__fast_of(a->dtype, b->dtype);
        open_source(&j.a, a, a_reader);
        open_source(&j.b, &view, b_reader);
        j.block = (int64_t)khub__block_of(a_reader->bytes, b_reader->bytes);
        take_all(&j, a);
    }
    derive(sum);
    return KHUB_OK;
}

int khub_compare_tensors(khub_comparison *out, const khub_tensor *a, const khub_tensor *b, khub_error *err)
{
    int rc = khub__given("khub_compare_tensors", out && a && b, err);
    if (out) memset(out, 0, sizeof(*out));
    return rc == KHUB_OK ? khub_comparison_add(out, a, b, err) : rc;
}

/* `before`: pairs that stand before the later ones. */
static void merge_worst(khub_worst *into, const khub_worst *other, uint64_t before)
{
    if (!(other->value > into->value)) return;
    *into = *other;
    into->index += before;
}

static void merge_counts(khub_comparison *into, const khub_comparison *other)
{
    if (into->first_different == into->count) into->first_different += other->first_different;
    into->count += other->count;
    into->identical += other->identical;
    into->zero_signs += other->zero_signs;
    into->finite += other->finite;
    into->both_nan += other->both_nan;
    into->nan_payloads += other->nan_payloads;
    into->nan_only_a += other->nan_only_a;
    into->nan_only_b += other->nan_only_b;
    into->infinity_same += other->infinity_same;
    into->infinity_opposite += other->infinity_opposite;
    into->infinity_only_a += other->infinity_only_a;
    into->infinity_only_b += other->infinity_only_b;
    into->zero_missed += other->zero_missed;
    into->rows += other->rows;
    into->argmax_same += other->argmax_same;
}

int khub_comparison_merge(khub_comparison *into, const khub_comparison *other, khub_error *err)
{
    int rc = khub__given("khub_comparison_merge", into && other, err);
    if (rc != KHUB_OK || is_empty(other)) return rc;
    const khub_comparison added = *other; /* which may be *into */
    rc = check_same_kind(into, added.dtype, added.reference, err);
    if (rc != KHUB_OK) return rc;
    into->dtype = added.dtype;
    into->reference = added.reference;
    merge_worst(&into->ulp, &added.ulp, into->count);
    merge_worst(&into->absolute, &added.absolute, into->count);
    merge_worst(&into->relative, &added.relative, into->count);
    merge_counts(into, &added);
    for (int which = 0; which < KHUB__SUMS; which++) {
        khub__sum_add(into, which, added.sums[which].high);
        khub__sum_add(into, which, added.sums[which].low);
    }
    derive(into);
    return KHUB_OK;
}
