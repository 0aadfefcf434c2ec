/* What activation.c, which knows tvm-ffi, asks of activation_rows.c, which knows vectors. */
#ifndef KHUB_KERNELS_ACTIVATION_PATH_H
#define KHUB_KERNELS_ACTIVATION_PATH_H

#include "rows.h"

/* rows->data: out, rows of n, and x, rows of n (gated: 2n). */
typedef void activation_function(const khub__rows *rows, int64_t n);

/* One path: functions by dtype (vec.h). */
typedef struct activation_path {
    activation_function *gelu[2], *gelu_tanh[2], *silu[2], *quick_gelu[2], *relu[2], *silu_and_mul[2],
        *gelu_and_mul[2];
} activation_path;

#endif
