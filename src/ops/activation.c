#include "base/memory.h"
#include "ops/args.h"
#include "ops/functions.h"

int khub__std_activation(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    enum { OUT, X };
    const khub__activation *activation = self;
    khub__op op;
    (void)result;
    if (khub__op_open(&op, activation->layer, args, n) || khub__op_same_shape(&op, OUT, X)) return -1;
    int64_t width = khub__op_width(op.tensor[X]);
    float *row = khub__malloc((size_t)width * sizeof(float));
    if (!row) return khub__op_memory(&op);
    for (int64_t r = 0; width && r < khub__op_rows(op.tensor[X]); r++) {
        khub__op_load(row, op.tensor[X], r, 0, width);
        for (int64_t i = 0; i < width; i++)
            row[i] = (float)activation->apply(row[i]);
        khub__op_store(op.tensor[OUT], r, 0, row, width);
    }
    khub__free(row);
    return 0;
}

/* out (…, width) has the leading axes of x (…, 2 width). */
static int check_gated(const khub__op *op, int64_t *width)
{
    enum { OUT, X };
    int64_t shape[KHUB_MAX_NDIM];
    const khub_tensor *x = op->tensor[X];
    if (x->ndim < 1 || x->shape[x->ndim - 1] % 2)
        return khub__op_wrong(op, X, "has a last axis that isn't even");
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof(*shape));
    *width = shape[x->ndim - 1] /= 2;
    return khub__op_shape(op, OUT, x->ndim, shape);
}

int khub__std_gated(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    enum { OUT, X };
    const khub__activation *activation = self;
    khub__op op;
    int64_t width = 0;
    (void)result;
    if (khub__op_open(&op, activation->layer, args, n) || check_gated(&op, &width)) return -1;
    float *row = khub__malloc((size_t)width * 2 * sizeof(float));
    if (!row) return khub__op_memory(&op);
    for (int64_t r = 0; width && r < khub__op_rows(op.tensor[X]); r++) {
        khub__op_load(row, op.tensor[X], r, 0, 2 * width);
        for (int64_t i = 0; i < width; i++)
            row[i] = (float)(activation->apply(row[i]) * row[width + i]);
        khub__op_store(op.tensor[OUT], r, 0, row, width);
    }
    khub__free(row);
    return 0;
}
