/* Rows of tables, looked up and added; and LayerNorm of the sum. */
#include "base/memory.h"
#include "ops/args.h"
#include "ops/functions.h"

enum { OUT, IDS, TYPE_IDS, POSITION_IDS, WORDS, TYPES, POSITIONS, WEIGHT, BIAS, EPS, TABLES = 3 };

/* The i-th index in row-major order; 0 of None. */
static int64_t index_at(const khub_tensor *t, int64_t i)
{
    int64_t offset = 0, compact = 1;
    for (int32_t axis = t ? t->ndim - 1 : -1; axis >= 0; axis--) {
        offset += i % t->shape[axis] * (t->strides ? t->strides[axis] : compact);
        i /= t->shape[axis];
        compact *= t->shape[axis];
    }
    if (!t) return 0;
    const char *at = (const char *)t->data + t->byte_offset + offset * (t->dtype.bits / 8);
    int32_t narrow;
    int64_t wide;
    memcpy(&narrow, at, sizeof(narrow));
    if (t->dtype.bits == 32) return narrow;
    memcpy(&wide, at, sizeof(wide));
    return wide;
}

static int check_indices(const khub__op *op, int32_t table)
{
    const khub__layer_arg *args = op->layer->args;
    int64_t rows = op->tensor[WORDS + table]->shape[0];
    for (int64_t i = 0; i < khub__op_rows(op->tensor[OUT]); i++) {
        int64_t index = index_at(op->tensor[IDS + table], i);
        if (index >= 0 && index < rows) continue;
        return khub_raise("IndexError", "%s: %s[%lld] is %lld, %s has %lld rows", op->layer->name,
                          args[IDS + table].name, (long long)i, (long long)index, args[WORDS + table].name,
                          (long long)rows);
    }
    return 0;
}

static int check(const khub__op *op)
{
    const khub_tensor *out = op->tensor[OUT];
    if (out->ndim < 1) return khub__op_wrong(op, OUT, "has no last axis for a row of the tables");
    const int64_t table[2] = {-1, khub__op_width(out)};
    for (int32_t i = 0; i < TABLES; i++) {
        const khub_tensor *ids = op->tensor[IDS + i];
        if (!op->tensor[WORDS + i]) continue;
        if (khub__op_shape(op, WORDS + i, 2, table)) return -1;
        if (ids && khub__op_shape(op, IDS + i, out->ndim - 1, out->shape)) return -1;
    }
    for (int32_t i = 0; i < TABLES; i++)
        if (op->tensor[WORDS + i] && check_indices(op, i)) return -1;
    return 0;
}

/* Rounded once, when the sum is stored. */
static int add_rows(const khub__op *op)
{
    const khub_tensor *out = op->tensor[OUT];
    int64_t width = khub__op_width(out);
    float *sum = khub__malloc((size_t)(2 * width + 1) * sizeof(float));
    if (!sum) return khub__op_memory(op);
    float *part = sum + width;
    for (int64_t r = 0; r < khub__op_rows(out); r++) {
        khub__op_load(sum, op->tensor[WORDS], index_at(op->tensor[IDS], r), 0, width);
        for (int32_t i = 1; i < TABLES; i++) {
            if (!op->tensor[WORDS + i]) continue;
            khub__op_load(part, op->tensor[WORDS + i], index_at(op->tensor[IDS + i], r), 0, width);
            for (int64_t k = 0; k < width; k++)
                sum[k] += part[k];
        }
        khub__op_store(out, r, 0, sum, width);
    }
    khub__free(sum);
    return 0;
}

int khub__std_embedding(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    khub__op op;
    (void)self, (void)result;
    return khub__op_open(&op, "Embedding", args, n) || check(&op) ? -1 : add_rows(&op);
}

int khub__std_embedding_layer_norm(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    khub__op op;
    (void)self;
    if (khub__op_open(&op, "EmbeddingLayerNorm", args, n) || check(&op)) return -1;
    int64_t width = khub__op_width(op.tensor[OUT]);
    if (width < 1) return khub__op_wrong(&op, OUT, "has no last axis to normalize over");
    if (khub__op_shape(&op, WEIGHT, 1, &width)) return -1;
    if ((op.tensor[BIAS] && khub__op_shape(&op, BIAS, 1, &width)) || add_rows(&op)) return -1;
    const khub_value of_norm[] = {args[OUT], args[OUT], args[WEIGHT], args[BIAS], args[EPS]};
    return khub__std_layer_norm(NULL, of_norm, 5, result);
}
