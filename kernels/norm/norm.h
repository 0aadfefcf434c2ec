/* What norm.c, which knows tvm-ffi, asks of norm_rows.c, which knows vectors. */
#ifndef KHUB_KERNELS_NORM_H
#define KHUB_KERNELS_NORM_H

#include "norm_params.h"
#include "rows.h"

/* The tensors of rows->data. */
enum { NORM_OUT, NORM_SUM, NORM_X, NORM_RESIDUAL };

typedef void norm_function(const khub__rows *rows, const norm_params *params);

/* One path: functions by dtype (type.h). */
typedef struct norm_path {
    norm_function *rms[TYPES], *add_rms[TYPES], *layer[TYPES], *add_layer[TYPES];
} norm_path;

#endif
