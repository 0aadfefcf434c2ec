/* What the rows of a norm have in common. */
#ifndef KHUB_KERNELS_NORM_PARAMS_H
#define KHUB_KERNELS_NORM_PARAMS_H

#include <stdint.h>

typedef struct norm_params {
    int64_t n;                 /* elements of a row, at least 1 */
    const char *weight, *bias; /* (n); bias may be NULL */
    float eps;
} norm_params;

#endif
