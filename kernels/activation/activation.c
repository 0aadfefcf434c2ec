/* khub/activation: activations, and gated ones that multiply the second half of a row. */
#include "activation_path.h"

ISA_PATHS(activation_path, activation);

/* How many elements, when both tensors hold them without gaps; -1: they don't. The usual case, and cheaper
 * than a walk. */
static int64_t count_without_gaps(const DLTensor *a, const DLTensor *b)
{
    int64_t count = 1;
    for (int32_t i = a->ndim - 1; i >= 0; i--) {
        if (a->shape[i] != 1 &&
            ((a->strides && a->strides[i] != count) || (b->strides && b->strides[i] != count)))
            return -1;
        count *= a->shape[i];
    }
    return count;
}

/* Rows that lie one behind the other are one row. */
static void flatten(khub__rows *rows, int64_t *n, int64_t element)
{
    if (rows->count > 1 && (rows->step[0] != *n * element || rows->step[1] != *n * element)) return;
    *n *= rows->count;
    rows->count = 1;
}

static void run_walked(activation_function *function, const DLTensor *const t[2])
{
    int inner = t[0]->ndim ? 1 : 0;
    int64_t row = inner ? t[0]->shape[t[0]->ndim - 1] : 1;
    khub__walk walk;
    for (int more = khub__walk_first(&walk, t, 2, inner); more; more = khub__walk_next(&walk)) {
        khub__rows rows = walk.rows;
        int64_t n = row;
        flatten(&rows, &n, t[0]->dtype.bits / 8);
        function(&rows, n);
    }
}

static int run(const khub__call *c, activation_function *const *functions)
{
    const DLTensor *const t[2] = {c->arg[0].tensor, c->arg[1].tensor};
    int64_t count = count_without_gaps(t[0], t[1]);
    if (count > 0) {
        khub__rows rows = {
            .data = {khub__data(t[0]), khub__data(t[1])}, .count = 1, .stream = khub__streams(t, 2)};
        functions[c->type](&rows, count);
    } else if (count < 0) {
        run_walked(functions[c->type], t);
    }
    return 0;
}

static int run_gated(const khub__call *c, activation_function *const *functions)
{
    const DLTensor *const t[2] = {c->arg[0].tensor, c->arg[1].tensor};
    khub__walk walk;
    for (int more = khub__walk_first(&walk, t, 2, 1); more; more = khub__walk_next(&walk))
        functions[c->type](&walk.rows, c->extent['n']);
    return 0;
}

#define ACTIVATION(function, runs, out_shape, x_shape, out_may_be, text)                                     \
    static const khub__signature function##_signature = {                                                    \
        .name = #function,                                                                                   \
        .doc = text,                                                                                         \
        .not_empty = "",                                                                                     \
        .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,                                                        \
        .count = 2,                                                                                          \
        .params = {{"out", KHUB__OUT, out_shape, .may_be = out_may_be}, {"x", KHUB__TENSOR, x_shape}},       \
    };                                                                                                       \
    static int function##_run(const khub__call *call)                                                        \
    {                                                                                                        \
        return runs(call, activation_paths[call->isa]->function);                                            \
    }                                                                                                        \
    KHUB__EXPORT(function)

ACTIVATION(gelu, run, "*", "*", "x", "out = x/2 · (1 + erf(x/√2)). out may be x.")
ACTIVATION(gelu_tanh, run, "*", "*", "x", "out = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))). out may be x.")
ACTIVATION(silu, run, "*", "*", "x", "out = x / (1 + exp(-x)). out may be x.")
ACTIVATION(quick_gelu, run, "*", "*", "x", "out = x / (1 + exp(-1.702 x)). out may be x.")
ACTIVATION(relu, run, "*", "*", "x", "out = max(x, 0); NaN stays NaN. out may be x.")
ACTIVATION(silu_and_mul, run_gated, "*n", "*2n", NULL,
           "out = silu(first half of x's last axis) · second half.")
ACTIVATION(gelu_and_mul, run_gated, "*n", "*2n", NULL,
           "out = gelu(first half of x's last axis) · second half.")
