/* What RMSNorm multiplies a row by: the same bits wherever it is asked for. */
#ifndef KHUB_KERNELS_RMS_H
#define KHUB_KERNELS_RMS_H

#include "vec.h"

#include <float.h>
#include <math.h>

/* 1/√x to nearest. bench/accuracy.c shows that double's roundings never come near enough to a middle between
 * two float32 to move one. */
VEC float reciprocal_root(double x)
{
    return (float)(1 / sqrt(x));
}

/* What rows of huge numbers are multiplied by before they are squared, so that 2^36 of the largest have a
 * sum; `eps` twice. */
#define RMS_SHRUNK 0x1p-82f

/* 0: the squares have no sum in float32, or there is an infinity or NaN, for which the shrunk row is as good.
 */
VEC int rms_fits(float squares)
{
    return squares <= FLT_MAX;
}

/* 1 / sqrt(mean(x²) + eps), of the sum of the squares of a row of n; of shrunk numbers, what those have to be
 * multiplied by. */
VEC float rms_scale(float squares, int64_t n, float eps, int shrunk)
{
    double e = shrunk ? eps * ((double)RMS_SHRUNK * RMS_SHRUNK) : eps;
    return reciprocal_root((double)squares / (double)n + e);
}

/* What LayerNorm squares, and its result before the weight: v, less the mean when `centered`, both times `by`
 * when `shrunk`. */
VEC v16 norm_term(v16 v, v16 mean, v16 by, int centered, int shrunk)
{
    if (shrunk) return v_fma(v, by, v_sub(v_set(0), mean));
    return centered ? v_sub(v, mean) : v;
}

#endif
