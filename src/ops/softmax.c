#include "ops/softmax.h"

#include "base/memory.h"
#include "ops/args.h"
#include "ops/functions.h"

#include <math.h>

void khub__softmax(float *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(exp(x[i] - max) / sum);
}

int khub__std_softmax(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    enum { OUT, X };
    khub__op op;
    (void)self, (void)result;
    if (khub__op_open(&op, "Softmax", args, n) || khub__op_same_shape(&op, OUT, X)) return -1;
    int64_t width = khub__op_width(op.tensor[X]);
    if (op.tensor[X]->ndim < 1 || width < 1)
        return khub__op_wrong(&op, X, "has no last axis to normalize over");
    float *row = khub__malloc((size_t)width * sizeof(float));
    if (!row) return khub__op_memory(&op);
    for (int64_t r = 0; r < khub__op_rows(op.tensor[X]); r++) {
        khub__op_load(row, op.tensor[X], r, 0, width);
        khub__softmax(row, width);
        khub__op_store(op.tensor[OUT], r, 0, row, width);
    }
    khub__free(row);
    return 0;
}
