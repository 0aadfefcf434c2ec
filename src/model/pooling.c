#include "model/pooling.h"

#include <math.h>

static void sum_tokens(double *sums, const float *hidden, int64_t tokens, int64_t width)
{
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t k = 0; k < width; k++)
            sums[k] += (double)hidden[t * width + k];
}

/* What a sum must be divided by for the vector to have length 1; 1e-12 as in torch's normalize, for a vector
 * of zeros. */
static double length_of(const double *sums, int64_t width)
{
    double squares = 0;
    for (int64_t k = 0; k < width; k++)
        squares += sums[k] * sums[k];
    double length = sqrt(squares);
    return length > 1e-12 || isnan(length) ? length : 1e-12;
}

void khub__pool_tokens(float *out, double *sums, const float *hidden, int64_t tokens, int64_t width,
                       const khub__sentence *how)
{
    int64_t used = how->pooling == KHUB__POOL_CLS && tokens > 1 ? 1 : tokens;
    for (int64_t k = 0; k < width; k++)
        sums[k] = 0;
    sum_tokens(sums, hidden, used, width);
    for (int64_t k = 0; used > 1 && k < width; k++)
        sums[k] /= (double)used;
    double scale = how->normalize ? length_of(sums, width) : 1;
    for (int64_t k = 0; k < width; k++)
        out[k] = (float)(sums[k] / scale);
}
