/* What softmax.c, which knows tvm-ffi, asks of softmax_rows.c, which knows vectors. */
#ifndef KHUB_KERNELS_SOFTMAX_H
#define KHUB_KERNELS_SOFTMAX_H

#include "rows.h"

/* rows->data: out, x, rows of n, at least 1. */
typedef void softmax_function(const khub__rows *rows, int64_t n);

/* One path: functions by dtype (type.h). */
typedef struct softmax_path {
    softmax_function *softmax[TYPES];
} softmax_path;

#endif
