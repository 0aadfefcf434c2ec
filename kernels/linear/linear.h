/* Between the front of linear (linear.c) and its loops (linear_blocks.c, once for each path). */
#ifndef KHUB_KERNELS_LINEAR_H
#define KHUB_KERNELS_LINEAR_H

#include "activation_kind.h"

#include <stdint.h>

enum { LINEAR_PANEL = 16 }; /* outputs of a packed panel */

/* out = activation(x weightᵀ + bias + residual), of RMSNorm's result in place of x where norm_weight isn't
 * NULL; no call has both a residual and an activation. Steps are bytes from a row to the next; a row's
 * elements lie side by side. */
typedef struct linear_call {
    char *out;                                /* (m, n) */
    const char *x, *weight, *bias, *residual; /* (m, k), below, (n) or NULL, (m, n) or NULL: may be out */
    int64_t out_step, x_step, residual_step;
    int64_t weight_step; /* weight (n, k) as PyTorch stores it; packed: not used, weight is (⌈n/16⌉, k, 16) */
    int64_t m, n, k;
    activation_kind activation;
    const char *norm_weight; /* (k) */
    float eps;
} linear_call;

/* By type: F32, BF16 (vec.h). */
typedef struct linear_path {
    void (*plain[2])(const linear_call *);
    void (*packed[2])(const linear_call *);
    void (*normed_plain[2])(const linear_call *); /* with norm_weight */
    void (*normed_packed[2])(const linear_call *);
} linear_path;

#endif
