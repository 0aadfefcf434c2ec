#include "ops/args.h"

#include <stdio.h>

static int raise_kind(const khub__op *op, int32_t at, const char *expected, const khub_value *got)
{
    static const char *const names[] = {"None",    "an integer", "a bool",   "a float", "a pointer",
                                        "a dtype", "a device",   "a tensor", "a string"};
    const char *is = got->type >= 0 && got->type < (int32_t)(sizeof(names) / sizeof(*names))
                         ? names[got->type]
                         : "an object";
    return khub_raise("TypeError", "%s: %s is %s, %s is expected", op->layer->name, op->layer->args[at].name,
                      is, expected);
}

/* Indices are int32 or int64, lengths int32, all else what the call's dtype is. */
static int check_dtype(const khub__op *op, int32_t at, khub_dtype have, khub_dtype expected)
{
    khub__arg_kind kind = op->layer->args[at].kind;
    char have_name[32], want_name[32];
    if (khub__arg_is_index(kind) || kind == KHUB__ARG_MAYBE_LENGTHS)
        expected = khub_dtype_of(KHUB_DTYPE_INT, 32);
    if (memcmp(&have, &expected, sizeof(expected)) == 0) return 0;
    if (khub__arg_is_index(kind) && have.code == KHUB_DTYPE_INT && have.bits == 64 && have.lanes == 1)
        return 0;
    return khub_raise("TypeError", "%s: %s is %s, %s%s is expected", op->layer->name,
                      op->layer->args[at].name, khub_dtype_name(have, have_name),
                      khub_dtype_name(expected, want_name), khub__arg_is_index(kind) ? " or int64" : "");
}

static int check_tensor(const khub__op *op, int32_t at, const khub_tensor *t, khub_dtype expected)
{
    if (t->device.type != KHUB_DEVICE_CPU) return khub__op_wrong(op, at, "isn't on the CPU");
    if (t->ndim > KHUB_MAX_NDIM) return khub__op_wrong(op, at, "has more than 8 axes");
    if (check_dtype(op, at, t->dtype, expected) != 0) return -1;
    if (t->ndim > 0 && t->strides && t->shape[t->ndim - 1] > 1 && t->strides[t->ndim - 1] != 1)
        return khub__op_wrong(op, at, "has a last axis that isn't contiguous");
    return 0;
}

/* The dtype that all tensors of this call must have: that of the first. */
static int common_dtype(const khub__op *op, khub_dtype *out)
{
    char name[32];
    *out = op->tensor[0]->dtype;
    int is_float = out->code == KHUB_DTYPE_FLOAT && out->bits == 32;
    int is_bfloat = out->code == KHUB_DTYPE_BFLOAT && out->bits == 16;
    if ((is_float || is_bfloat) && out->lanes == 1) return 0;
    return khub_raise("TypeError", "%s: %s is %s, float32 or bfloat16 is expected", op->layer->name,
                      op->layer->args[0].name, khub_dtype_name(*out, name));
}

static int take(khub__op *op, int32_t at, const khub_value *value)
{
    khub__arg_kind kind = op->layer->args[at].kind;
    if (kind == KHUB__ARG_FLOAT || kind == KHUB__ARG_BOOL) {
        int is_float = value->type == KHUB_TYPE_FLOAT && kind == KHUB__ARG_FLOAT;
        if (!is_float && value->type != KHUB_TYPE_INT && value->type != KHUB_TYPE_BOOL)
            return raise_kind(op, at, kind == KHUB__ARG_BOOL ? "a bool" : "a float", value);
        op->number[at] = is_float ? value->as.f64 : (double)value->as.i64;
        return 0;
    }
    if (kind == KHUB__ARG_MAYBE_COUNT) {
        if (value->type != KHUB_TYPE_INT && value->type != KHUB_TYPE_NONE)
            return raise_kind(op, at, "an integer or None", value);
        op->number[at] = value->type == KHUB_TYPE_INT ? (double)value->as.i64 : 0;
        return op->number[at] < 0 ? khub__op_wrong(op, at, "is negative") : 0;
    }
    op->tensor[at] = khub_value_tensor(value);
    int optional = khub__arg_is_optional(kind);
    if (op->tensor[at] || (value->type == KHUB_TYPE_NONE && optional)) return 0;
    return raise_kind(op, at, optional ? "a tensor or None" : "a tensor", value);
}

int khub__op_open(khub__op *op, const char *layer, const khub_value *args, int32_t n)
{
    memset(op, 0, sizeof(*op));
    op->layer = khub__layer_find(layer);
    if (n != op->layer->arg_count)
        return khub_raise("TypeError", "%s: takes %d arguments, %d were given", layer,
                          (int)op->layer->arg_count, (int)n);
    for (int32_t i = 0; i < n; i++)
        if (take(op, i, &args[i]) != 0) return -1;
    khub_dtype dtype;
    if (common_dtype(op, &dtype) != 0) return -1;
    for (int32_t i = 0; i < n; i++)
        if (op->tensor[i] && check_tensor(op, i, op->tensor[i], dtype) != 0) return -1;
    return 0;
}

int khub__op_wrong(const khub__op *op, int32_t at, const char *text)
{
    return khub_raise("ValueError", "%s: %s %s", op->layer->name, op->layer->args[at].name, text);
}

int khub__op_memory(const khub__op *op)
{
    return khub_raise("MemoryError", "%s: out of memory", op->layer->name);
}

/* "(2, *, 384)"; * for -1. */
static void shape_text(char *to, size_t size, int32_t ndim, const int64_t *shape)
{
    size_t at = (size_t)snprintf(to, size, "(");
    for (int32_t i = 0; i < ndim && at < size; i++) {
        if (i) at += (size_t)snprintf(to + at, size - at, ", ");
        if (at < size)
            at += (size_t)(shape[i] < 0 ? snprintf(to + at, size - at, "*")
                                        : snprintf(to + at, size - at, "%lld", (long long)shape[i]));
    }
    if (at < size) snprintf(to + at, size - at, ")");
}

int khub__op_shape(const khub__op *op, int32_t at, int32_t ndim, const int64_t *shape)
{
    const khub_tensor *t = op->tensor[at];
    int same = t->ndim == ndim;
    for (int32_t i = 0; i < ndim && same; i++)
        same = shape[i] < 0 || t->shape[i] == shape[i];
    if (same) return 0;
    char have[160], want[160];
    shape_text(have, sizeof(have), t->ndim, t->shape);
    shape_text(want, sizeof(want), ndim, shape);
    return khub_raise("ValueError", "%s: %s is %s, %s is expected", op->layer->name, op->layer->args[at].name,
                      have, want);
}

int khub__op_same_shape(const khub__op *op, int32_t at, int32_t as)
{
    return khub__op_shape(op, at, op->tensor[as]->ndim, op->tensor[as]->shape);
}

int64_t khub__op_width(const khub_tensor *tensor)
{
    return tensor->ndim ? tensor->shape[tensor->ndim - 1] : 1;
}

int64_t khub__op_rows(const khub_tensor *tensor)
{
    int64_t rows = 1;
    for (int32_t i = 0; i + 1 < tensor->ndim; i++)
        rows *= tensor->shape[i];
    return rows;
}

/* Address of the first element of a row: `row` counts the leading axes in row-major order. */
static char *row_address(const khub_tensor *t, int64_t row)
{
    int64_t offset = 0, compact = khub__op_width(t);
    for (int32_t i = t->ndim - 2; i >= 0; i--) {
        offset += row % t->shape[i] * (t->strides ? t->strides[i] : compact);
        row /= t->shape[i];
        compact *= t->shape[i];
    }
    return (char *)t->data + t->byte_offset + offset * (t->dtype.bits / 8);
}

void khub__op_load(float *to, const khub_tensor *tensor, int64_t row, int64_t from, int64_t count)
{
    const char *at = row_address(tensor, row) + from * (tensor->dtype.bits / 8);
    if (tensor->dtype.bits == 32) {
        memcpy(to, at, (size_t)count * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < count; i++) { /* bfloat16 is the upper half of a float32 */
        uint16_t half;
        memcpy(&half, at + 2 * i, 2);
        uint32_t bits = (uint32_t)half << 16;
        memcpy(to + i, &bits, 4);
    }
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
static uint16_t to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void khub__op_round(const khub_tensor *like, float *values, int64_t count)
{
    for (int64_t i = 0; like->dtype.bits == 16 && i < count; i++) {
        uint32_t bits = (uint32_t)to_bfloat16(values[i]) << 16;
        memcpy(values + i, &bits, 4);
    }
}

void khub__op_store(const khub_tensor *tensor, int64_t row, int64_t from, const float *values, int64_t count)
{
    char *at = row_address(tensor, row) + from * (tensor->dtype.bits / 8);
    if (tensor->dtype.bits == 32) {
        memcpy(at, values, (size_t)count * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t half = to_bfloat16(values[i]);
        memcpy(at + 2 * i, &half, 2);
    }
}
