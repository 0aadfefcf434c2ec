/* What probe.c asks of probe_path.c. */
#ifndef KHUB_KERNELS_PROBE_H
#define KHUB_KERNELS_PROBE_H

#include <stdint.h>

/* out and in[…]: n float32 each, compact, n a multiple of 16 for `sum` and `largest` (one result for each 16)
 * and for `narrow` (out is bfloat16). */
typedef void probe_function(void *out, const float *const in[3], int64_t n);

typedef struct probe_path {
    probe_function *exp, *tanh, *erf, *normal_tail, *fma, *sum, *largest, *narrow;
} probe_path;

#endif
