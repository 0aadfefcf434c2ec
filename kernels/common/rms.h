/* What RMSNorm multiplies a row by: the same bits wherever it is asked for. */
#ifndef KHUB_KERNELS_RMS_H
#define KHUB_KERNELS_RMS_H

#include "vec.h"

#include <float.h>

/* 1 / sqrt(mean(x²) + eps) in all lanes, of the squares' sums, lane by lane, of a row of n. */
VEC v16 rms_scale(v16 squares, int64_t n, float eps)
{
    v16 variance = v_set(v_sum(squares) / (float)n);
    return v_div(v_set(1), v_sqrt(v_add(variance, v_set(eps))));
}

/* What rows of huge numbers are multiplied by before they are squared, so that 2^36 of the largest have a
 * sum; `eps` twice. */
#define RMS_SHRUNK 0x1p-82f

/* 0: the squares have no sum in float32, or there is an infinity or NaN, for which the shrunk row is as good.
 */
VEC int rms_fits(v16 squares)
{
    return v_sum(squares) <= FLT_MAX;
}

/* The same of squares of shrunk numbers; small ones among them keep their digits, since it isn't they that
 * are multiplied by the result. */
VEC v16 rms_scale_of_shrunk(v16 squares, int64_t n, float eps)
{
    return v_mul(rms_scale(squares, n, eps * RMS_SHRUNK * RMS_SHRUNK), v_set(RMS_SHRUNK));
}

#endif
