/* What rotary.c, which knows tvm-ffi, asks of rotary_heads.c, which knows vectors. */
#ifndef KHUB_KERNELS_ROTARY_H
#define KHUB_KERNELS_ROTARY_H

#include "ffi.h"

/* out and x (tokens, heads, 2 · half), cos and sin (tokens, half); steps in bytes. */
typedef struct rotary_job {
    char *out;
    const char *x, *cos, *sin;
    int64_t tokens, heads, half;
    int64_t out_token, out_head, x_token, x_head, cos_token, sin_token;
} rotary_job;

typedef void rotary_function(const rotary_job *job);

/* One path: functions by dtype (type.h). */
typedef struct rotary_path {
    rotary_function *rotary[TYPES];
} rotary_path;

#endif
