/* What RMSNorm multiplies a row by: the same bits wherever it is asked for. */
#ifndef KHUB_KERNELS_RMS_H
#define KHUB_KERNELS_RMS_H

#include "vec.h"

/* 1 / sqrt(mean(x²) + eps) in all lanes, of the squares' sums, lane by lane, of a row of n. */
VEC v16 rms_scale(v16 squares, int64_t n, float eps)
{
    v16 variance = v_set(v_sum(squares) / (float)n);
    return v_div(v_set(1), v_sqrt(v_add(variance, v_set(eps))));
}

#endif
