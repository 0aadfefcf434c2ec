/* Between the front of linear (linear.c) and its loops (linear_blocks.c, once for each path). */
#ifndef KHUB_KERNELS_LINEAR_H
#define KHUB_KERNELS_LINEAR_H

#include "linear_call.h"

/* By type: F32, BF16 (vec.h). */
typedef struct linear_path {
    void (*plain[2])(const linear_call *);
    void (*packed[2])(const linear_call *);
    void (*normed_plain[2])(const linear_call *); /* with norm_weight */
    void (*normed_packed[2])(const linear_call *);
} linear_path;

#endif
