/* What differs between two results: bits, ULPs, errors, NaN and infinities. */
#ifndef KHUB_NUMERICS_H
#define KHUB_NUMERICS_H

#include <khub/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest of one distance: the first pair that has it. When `value` is 0, no pair has any. */
typedef struct khub_worst {
    double value;
    uint64_t index; /* of the pair, in the order of adding; row-major in a tensor */
    double a, b;    /* the elements; 64-bit integers rounded to double */
} khub_worst;

/* What is known about pairs (a, b): a is what is looked at, b what is expected. All zero: no pairs yet.
 *
 * A pair counts in exactly one of `finite`, `both_nan` … `infinity_only_b`. Distances and errors are of
 * finite pairs only: a kernel that makes a NaN shows in the counts, not as a large number. Computed in the
 * default floating-point environment (to nearest, subnormals kept), alike on every machine.
 *
 * ULP distance. Same dtype: how many steps from one number of the format to the next lie between a and b,
 * across zero too (-0 and +0 are one number: the smallest negative and positive number are 2 apart).
 * Integers: |a - b|; bool: 0 or 1. b of a wider dtype: |a - b| / ulp(r), r being b rounded to a's dtype (to
 * nearest, ties to even) and ulp(r) the step from |r| to the next number away from zero (for the largest
 * number: to where that would be): at most 0.5 when a is b rounded correctly. b then counts as the NaN or
 * infinity that it is rounded to, and a pair is identical when a has r's bits (with NaN: when both are NaN).
 */
typedef struct khub_comparison {
    khub_dtype dtype;     /* a's */
    khub_dtype reference; /* b's: the same, or float32 or float64 where a's is narrower */
    uint64_t count;
    uint64_t identical;       /* pairs of the same bits */
    uint64_t first_different; /* index of the first pair of other bits; `count` when there is none */
    uint64_t zero_signs;      /* +0 beside -0: other bits, 0 ULP, finite */

    uint64_t finite;
    uint64_t both_nan, nan_payloads; /* the latter, of both_nan: of other bits */
    uint64_t nan_only_a, nan_only_b;
    uint64_t infinity_same, infinity_opposite;
    uint64_t infinity_only_a, infinity_only_b; /* beside a finite number */

    khub_worst ulp;
    khub_worst absolute;  /* |a - b| */
    khub_worst relative;  /* |a - b| / |b|, of pairs with b not 0 */
    uint64_t zero_missed; /* b is 0 and a isn't: no relative error */

    double identical_share; /* identical / count; 1 when there are no pairs */
    double mean_ulp, mean_absolute;
    /* Of squares: float64 elements past 1e154 make them infinite (the cosine NaN), below 1e-154 zero. */
    double rms;    /* root of the mean of (a - b)² */
    double cosine; /* of all a and all b as two vectors; both all zero: 1, one of them: 0 */

    /* The last axis of a tensor is a row; a tensor without axes is a row of one element. The arg-max is the
     * first of a row's largest, a NaN being larger than any number. */
    uint64_t rows;
    uint64_t argmax_same; /* rows whose arg-max is at the same place in a and in b */

    /* What adding and merging go on from: sums of the finite pairs, each as a rounded sum and what rounding
     * took from it. */
    struct {
        double high, low;
    } sums[6];
} khub_comparison;

/* Compares two CPU tensors of any strides. b's shape is a's, or is broadcast to it as NumPy does (a row
 * beside a batch). The dtypes are the same, or b's is float32 or float64 and a's a narrower float. One pass,
 * no memory taken. KHUB_E_INVAL: shapes, dtypes or devices that don't go together; KHUB_E_UNSUPPORTED: a
 * dtype that isn't compared (complex, sub-byte), more than KHUB_MAX_NDIM axes. */
KHUB_API int khub_compare_tensors(khub_comparison *out, const khub_tensor *a, const khub_tensor *b,
                                  khub_error *err);

/* The same, counted on top of what *sum has; zeroed it has nothing. KHUB_E_INVAL too when *sum is about other
 * dtypes. An error leaves *sum as before. */
KHUB_API int khub_comparison_add(khub_comparison *sum, const khub_tensor *a, const khub_tensor *b,
                                 khub_error *err);

/* As if the pairs of *other had been added to *into: the same counts and maxima; means, rms, cosine and the
 * largest relative error but for their last bits. So what threads compared on their own is put together.
 * KHUB_E_INVAL: other dtypes. */
KHUB_API int khub_comparison_merge(khub_comparison *into, const khub_comparison *other, khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
