/* RMSNorm, and Linear of its result. */
#include "base/memory.h"
#include "ops/args.h"
#include "ops/functions.h"

enum { OUT, X, NORM_WEIGHT, EPS, WEIGHT, BIAS };

/* All that the two would say of their arguments, in this layer's words. */
static int check(const khub__op *op)
{
    const int64_t any[2] = {-1, -1};
    if (khub__op_shape(op, X, 2, any)) return -1;
    const khub_tensor *x = op->tensor[X];
    const int64_t weight[2] = {-1, x->shape[1]};
    if (x->shape[1] < 1) return khub__op_wrong(op, X, "has no last axis to normalize over");
    if (khub__op_shape(op, NORM_WEIGHT, 1, &x->shape[1]) || khub__op_shape(op, WEIGHT, 2, weight)) return -1;
    const int64_t out[2] = {x->shape[0], op->tensor[WEIGHT]->shape[0]};
    if (khub__op_shape(op, OUT, 2, out)) return -1;
    return op->tensor[BIAS] ? khub__op_shape(op, BIAS, 1, &out[1]) : 0;
}

int khub__std_rms_norm_linear(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    static const khub__activation plain = {"Linear", NULL};
    khub__op op;
    (void)self;
    if (khub__op_open(&op, "RMSNormLinear", args, n) || check(&op)) return -1;
    const khub_tensor *x = op.tensor[X];
    void *memory = khub__malloc((size_t)khub_tensor_bytes(x) + 1);
    if (!memory) return khub__op_memory(&op);
    const khub_tensor between = khub_tensor_over(memory, x->dtype, 2, x->shape);
    const khub_value of_norm[] = {khub_arg_tensor(&between), args[X], args[NORM_WEIGHT], args[EPS]};
    const khub_value of_linear[] = {args[OUT], khub_arg_tensor(&between), args[WEIGHT], args[BIAS]};
    int rc = khub__std_rms_norm(NULL, of_norm, 4, result);
    if (rc == 0) rc = khub__std_linear((void *)(uintptr_t)&plain, of_linear, 4, result);
    khub__free(memory);
    return rc;
}
