/* What this machine can do at most, measured: copying and multiplying. */
#ifndef MEASURE_PEAKS_H
#define MEASURE_PEAKS_H

#include "model/threads.h"

#include <khub/gpu.h>

/* Measures with the threads of one pool, or on a GPU. Remembers what it measured. */
typedef struct khub__peaks khub__peaks;

/* `last_cache`: bytes of the largest cache; 0: unknown. The pool and `gpu` (NULL: the host) are borrowed.
 * KHUB_E_NOMEM, and those of khub_gpu_array_new. *out is freed by the caller whatever happens. */
int khub__peaks_new(khub__peaks **out, khub__threads *pool, khub_gpu *gpu, uint64_t last_cache,
                    khub_error *err);
void khub__peaks_free(khub__peaks *peaks); /* NULL is a no-op */

/* The size that copies of `bytes` (read and written together) are measured with: the next power of two, from
 * 16 KiB a thread to khub__peaks_most. */
uint64_t khub__peaks_size(const khub__peaks *peaks, double bytes);
/* Twice the largest cache, from 32 to 256 MiB, on a GPU 256: nothing of it is there when it is read again. */
uint64_t khub__peaks_most(const khub__peaks *peaks);

/* Bytes a second, read and written, of the C library's memcpy over khub__peaks_size(bytes), each thread a
 * part of it, or of the GPU's own copying; the best of many. 0: there is no memory for it. */
double khub__peaks_copy(khub__peaks *peaks, double bytes);

/* float32 multiply-adds in registers, two operations each, on all threads; the best of many. Of a GPU what
 * its clock and its processors come to; 0: unknown. */
double khub__peaks_fma(khub__peaks *peaks);
/* Measures all that was measured so far once more, and keeps the better. */
void khub__peaks_again(khub__peaks *peaks);

/* "portable" (a product and a sum), "avx2", "avx512", "neon": what that was measured with; "by its clock": of
 * a GPU. Static. */
const char *khub__peaks_fma_isa(const khub__peaks *peaks);

#endif
