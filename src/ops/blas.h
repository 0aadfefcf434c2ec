/* A BLAS, found at run time: the system's, or plain loops where there is none. */
#ifndef OPS_BLAS_H
#define OPS_BLAS_H

#include <stdint.h>

/* C (m, n) = A (m, k) times B, row-major with row strides lda, ldb, ldc; B is (k, n), or (n, k) when
 * `transposed`. Any thread at once. */
void khub__sgemm(int transposed, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                 int64_t ldb, float *c, int64_t ldc);

/* Threads that the BLAS uses for one call: 1, unless the program had opened it itself and gave it more. */
int khub__blas_threads(void);

#endif
