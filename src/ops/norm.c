#include "base/memory.h"
#include "ops/args.h"
#include "ops/functions.h"

#include <math.h>

/* Where a norm's arguments stand; -1: it has none of that kind. */
typedef struct norm {
    const char *layer;
    int32_t sum, x, residual, weight, bias, eps;
} norm;

static int check(const khub__op *op, const norm *at)
{
    int64_t width = khub__op_width(op->tensor[at->x]);
    if (op->tensor[at->x]->ndim < 1 || width < 1)
        return khub__op_wrong(op, at->x, "has no last axis to normalize over");
    if (khub__op_same_shape(op, 0, at->x) || khub__op_shape(op, at->weight, 1, &width)) return -1;
    if (at->bias >= 0 && op->tensor[at->bias] && khub__op_shape(op, at->bias, 1, &width)) return -1;
    if (at->residual >= 0 && khub__op_same_shape(op, at->residual, at->x)) return -1;
    if (at->sum >= 0 && op->tensor[at->sum] && khub__op_same_shape(op, at->sum, at->x)) return -1;
    return 0;
}

/* What a norm works with: rows of the width, as float32. */
typedef struct rows {
    float *x, *residual, *weight, *bias;
} rows;

/* x / sqrt(mean(x^2) + eps) * weight, or (x - mean) / sqrt(var + eps) * weight + bias, in double. */
static void normalize(float *x, const rows *with, int64_t width, double eps, int center)
{
    double mean = 0, square = 0;
    for (int64_t i = 0; center && i < width; i++)
        mean += x[i];
    mean /= (double)width;
    for (int64_t i = 0; i < width; i++)
        square += (x[i] - mean) * (x[i] - mean);
    double scale = 1 / sqrt(square / (double)width + eps);
    for (int64_t i = 0; i < width; i++)
        x[i] = (float)((x[i] - mean) * scale * with->weight[i] + (with->bias ? with->bias[i] : 0));
}

/* x = x + residual, rounded to the dtype: what is normalized is what `sum` keeps. */
static void add_residual(const khub__op *op, const norm *at, const rows *with, int64_t r, int64_t width)
{
    khub__op_load(with->residual, op->tensor[at->residual], r, 0, width);
    for (int64_t i = 0; i < width; i++)
        with->x[i] += with->residual[i];
    khub__op_round(op->tensor[at->x], with->x, width);
    if (op->tensor[at->sum]) khub__op_store(op->tensor[at->sum], r, 0, with->x, width);
}

static int run(const norm *at, const khub_value *args, int32_t n)
{
    khub__op op;
    if (khub__op_open(&op, at->layer, args, n) || check(&op, at)) return -1;
    int64_t width = khub__op_width(op.tensor[at->x]);
    float *memory = khub__malloc((size_t)width * 4 * sizeof(float));
    if (!memory) return khub__op_memory(&op);
    const khub_tensor *bias = at->bias >= 0 ? op.tensor[at->bias] : NULL;
    rows with = {memory, memory + width, memory + 2 * width, bias ? memory + 3 * width : NULL};
    khub__op_load(with.weight, op.tensor[at->weight], 0, 0, width);
    if (bias) khub__op_load(with.bias, bias, 0, 0, width);
    for (int64_t r = 0; r < khub__op_rows(op.tensor[at->x]); r++) {
        khub__op_load(with.x, op.tensor[at->x], r, 0, width);
        if (at->residual >= 0) add_residual(&op, at, &with, r, width);
        normalize(with.x, &with, width, op.number[at->eps], at->bias >= 0 /* LayerNorm */);
        khub__op_store(op.tensor[0], r, 0, with.x, width);
    }
    khub__free(memory);
    return 0;
}

#define NORM(function, name, ...)                                                                            \
    int function(void *self, const khub_value *args, int32_t n, khub_value *result)                          \
    {                                                                                                        \
        static const norm at = {name, __VA_ARGS__};                                                          \
        (void)self, (void)result;                                                                            \
        return run(&at, args, n);                                                                            \
    }

/* sum, x, residual, weight, bias, eps */
NORM(khub__std_rms_norm, "RMSNorm", -1, 1, -1, 2, -1, 3)
NORM(khub__std_add_rms_norm, "AddRMSNorm", 1, 2, 3, 4, -1, 5)
NORM(khub__std_layer_norm, "LayerNorm", -1, 1, -1, 2, 3, 4)
NORM(khub__std_add_layer_norm, "AddLayerNorm", 1, 2, 3, 4, 5, 6)
