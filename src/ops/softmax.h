#ifndef OPS_SOFTMAX_H
#define OPS_SOFTMAX_H

#include <stdint.h>

/* x = exp(x - max) / sum of those, in place, sums in double. */
void khub__softmax(float *x, int64_t n);

#endif
