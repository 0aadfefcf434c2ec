/* From the vectors of a sentence's tokens to the vector of the sentence. */
#ifndef MODEL_POOLING_H
#define MODEL_POOLING_H

#include "model/sentence.h"

#include <stdint.h>

/* out (width) from hidden (tokens, width); `sums` is room for `width` numbers. Sums are made in double, token
 * by token, and rounded once. Without tokens: zeros. */
void khub__pool_tokens(float *out, double *sums, const float *hidden, int64_t tokens, int64_t width,
                       const khub__sentence *how);

#endif
