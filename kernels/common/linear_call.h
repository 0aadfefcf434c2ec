/* What a linear layer is called with: between the fronts of khub/linear, khub/quantized, khub/bfloat16 and
 * their loops.
 */
#ifndef KHUB_KERNELS_LINEAR_CALL_H
#define KHUB_KERNELS_LINEAR_CALL_H

#include <stdint.h>

enum { LINEAR_PANEL = 16 }; /* outputs of a packed panel */

static inline int64_t linear_panels(int64_t n)
{
    return n / LINEAR_PANEL + (n % LINEAR_PANEL != 0);
}

/* What it ends in (activation.h). */
typedef enum activation_kind {
    ACTIVATION_NONE,
    ACTIVATION_GELU,
    ACTIVATION_GELU_TANH,
    ACTIVATION_SILU,
    ACTIVATION_RELU
} activation_kind;

/* out = activation(x weightᵀ + bias + residual), of RMSNorm's result in place of x where norm_weight isn't
 * NULL; no call has both a residual and an activation, and khub/quantized has neither a residual nor a norm.
 * Steps are bytes from a row to the next; a row's elements lie side by side. */
typedef struct linear_call {
    char *out;                                /* (m, n) */
    const char *x, *weight, *bias, *residual; /* (m, k), below, (n) or NULL, (m, n) or NULL: may be out */
    int64_t out_step, x_step, residual_step;
    int64_t weight_step; /* weight (n, k) as PyTorch stores it; packed: not used, weight is (⌈n/16⌉, k, 16);
                            quantized: from a panel's record to the next */
    int64_t m, n, k;
    activation_kind activation;
    const char *norm_weight; /* (k) */
    float eps;
} linear_call;

/* Of a call whose first arguments are out (m, n), x (m, k), weight and bias; without residual and norm. */
struct khub__call;
linear_call khub__linear_call(const struct khub__call *c, activation_kind activation);

/* NAME(out, x, weight, bias) for tvm-ffi (ffi.h): RUN is what it returns, with the checked call as `c`, and
 * what follows is what a khub__param of the weight has behind its kind. */
#define KHUB__EXPORT_LINEAR(NAME, DOC, RUN, ...)                                                             \
    static const khub__signature NAME##_signature = {                                                        \
        .name = #NAME,                                                                                       \
        .doc = DOC,                                                                                          \
        .not_empty = "",                                                                                     \
        .dtypes = KHUB__TAKES_F32 | KHUB__TAKES_BF16,                                                        \
        .count = 4,                                                                                          \
        .params = {{"out", KHUB__OUT, "mn"},                                                                 \
                   {"x", KHUB__TENSOR, "mk"},                                                                \
                   {"weight", KHUB__TENSOR, __VA_ARGS__},                                                    \
                   {"bias", KHUB__TENSOR, "n", .optional = 1}}};                                             \
    static int NAME##_run(const khub__call *c)                                                               \
    {                                                                                                        \
        return RUN;                                                                                          \
    }                                                                                                        \
    KHUB__EXPORT(NAME)

#endif
