/* What activation.c, which knows tvm-ffi, asks of activation_rows.c, which knows vectors. */
#ifndef KHUB_KERNELS_ACTIVATION_PATH_H
#define KHUB_KERNELS_ACTIVATION_PATH_H

#include "rows.h"

/* rows->data: out, rows of n, and x, rows of n (gated: 2n). */
typedef void activation_function(const khub__rows *rows, int64_t n);

/* One path: functions by dtype (type.h). */
typedef struct activation_path {
    activation_function *gelu[TYPES], *gelu_tanh[TYPES], *silu[TYPES], *quick_gelu[TYPES], *relu[TYPES],
        *silu_and_mul[TYPES], *gelu_and_mul[TYPES];
} activation_path;

#endif
