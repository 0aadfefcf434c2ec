#include "base/memory.h"
#include "ops/args.h"
#include "ops/functions.h"

int khub__std_add(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    enum { OUT, X, RESIDUAL };
    khub__op op;
    (void)self, (void)result;
    if (khub__op_open(&op, "Add", args, n) || khub__op_same_shape(&op, OUT, X) ||
        khub__op_same_shape(&op, RESIDUAL, X))
        return -1;
    int64_t width = khub__op_width(op.tensor[X]);
    float *row = khub__malloc((size_t)width * 2 * sizeof(float));
    if (!row) return khub__op_memory(&op);
    for (int64_t r = 0; width && r < khub__op_rows(op.tensor[X]); r++) {
        khub__op_load(row, op.tensor[X], r, 0, width);
        khub__op_load(row + width, op.tensor[RESIDUAL], r, 0, width);
        for (int64_t i = 0; i < width; i++)
            row[i] += row[width + i];
        khub__op_store(op.tensor[OUT], r, 0, row, width);
    }
    khub__free(row);
    return 0;
}
