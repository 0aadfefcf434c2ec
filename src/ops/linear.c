#include "base/memory.h"
#include "ops/args.h"
#include "ops/blas.h"
#include "ops/functions.h"

enum { OUT, X, WEIGHT, BIAS, RESIDUAL };

static int check(const khub__op *op)
{
    const int64_t any[2] = {-1, -1};
    if (khub__op_shape(op, X, 2, any) || khub__op_shape(op, WEIGHT, 2, any)) return -1;
    const khub_tensor *x = op->tensor[X], *weight = op->tensor[WEIGHT];
    const int64_t w[2] = {-1, x->shape[1]}, out[2] = {x->shape[0], weight->shape[0]};
    if (khub__op_shape(op, WEIGHT, 2, w) || khub__op_shape(op, OUT, 2, out)) return -1;
    if (op->tensor[RESIDUAL] && khub__op_same_shape(op, RESIDUAL, OUT)) return -1;
    return op->tensor[BIAS] ? khub__op_shape(op, BIAS, 1, weight->shape) : 0;
}

/* The matrix as compact float32: its own memory when it is that already, else a copy in *own. NULL: no
 * memory. */
static const float *as_float(const khub_tensor *t, float **own)
{
    *own = NULL;
    if (t->dtype.bits == 32 && khub_tensor_is_compact(t))
        return (const float *)((const char *)t->data + t->byte_offset);
    int64_t width = t->shape[1];
    *own = khub__malloc((size_t)khub_tensor_count(t) * sizeof(float));
    for (int64_t r = 0; *own && width && r < t->shape[0]; r++)
        khub__op_load(*own + r * width, t, r, 0, width);
    return *own;
}

/* Bias, residual and activation on a row of sums; what is NULL isn't there. */
static void finish(float *row, const float *bias, const float *residual, int64_t n, khub__scalar_fn apply)
{
    for (int64_t i = 0; i < n; i++) {
        float value = bias ? row[i] + bias[i] : row[i];
        if (residual) value += residual[i];
        row[i] = apply ? (float)apply(value) : value;
    }
}

/* Outputs from j on, at most a block of them; `sums` has room for a block's, its
 * bias and a row of its residual. */
static void run_block(const khub__op *op, khub__scalar_fn apply, const float *a, const float *b, float *sums,
                      int64_t j)
{
    const khub_tensor *out = op->tensor[OUT], *bias = op->tensor[BIAS], *residual = op->tensor[RESIDUAL];
    int64_t m = out->shape[0], k = op->tensor[X]->shape[1], left = out->shape[1] - j;
    int64_t n = left < KHUB__LINEAR_BLOCK ? left : KHUB__LINEAR_BLOCK;
    float *own_bias = bias ? sums + m * n : NULL, *own_residual = residual ? sums + (m + 1) * n : NULL;
    khub__sgemm(1, m, n, k, a, k, k ? b + j * k : b, k, sums, n);
    if (bias) khub__op_load(own_bias, bias, 0, j, n);
    for (int64_t r = 0; r < m; r++) {
        if (residual) khub__op_load(own_residual, residual, r, j, n);
        finish(sums + r * n, own_bias, own_residual, n, apply);
        khub__op_store(out, r, j, sums + r * n, n);
    }
}

static int run(const khub__op *op, khub__scalar_fn apply)
{
    const khub_tensor *x = op->tensor[X];
    int64_t m = x->shape[0], k = x->shape[1], n = op->tensor[WEIGHT]->shape[0];
    float *own_x, *own_weight = NULL,
                  *sums = khub__malloc((size_t)(m + 2) * KHUB__LINEAR_BLOCK * sizeof(float));
    const float *a = as_float(x, &own_x), *b = as_float(op->tensor[WEIGHT], &own_weight);
    int room = sums && (a || !m || !k) && (b || !n || !k);
    for (int64_t j = 0; room && j < n; j += KHUB__LINEAR_BLOCK)
        run_block(op, apply, a, b, sums, j);
    khub__free(sums);
    khub__free(own_x);
    khub__free(own_weight);
    return room ? 0 : khub__op_memory(op);
}

int khub__std_linear(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    const khub__activation *activation = self;
    khub__op op;
    (void)result;
    if (khub__op_open(&op, activation->layer, args, n) || check(&op)) return -1;
    return run(&op, activation->apply);
}
