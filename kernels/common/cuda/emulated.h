/* CUDA's words for a C compiler: a kernel is run block after block, the threads of a block as fibers that
 * take turns at
 * __syncthreads and at shuffles. For the tests: the kernels' own source, its logic and its bits, without a
 * GPU. What depends on timing (a barrier too few) shows only as far as turns are taken in order; a barrier
 * that not all threads reach ends the process. */
#ifndef KHUB_KERNELS_CUDA_EMULATED_H
#define KHUB_KERNELS_CUDA_EMULATED_H

#include <stddef.h>
#include <stdint.h>

typedef struct dim3 {
    unsigned x, y, z;
} dim3;

typedef struct uint4 {
    uint32_t x, y, z, w;
} uint4;

extern dim3 threadIdx, blockIdx, blockDim, gridDim;
extern _Alignas(16) char emulated_room[]; /* shared memory that a launch asks for */

#define __device__
#define __shared__ static
#define __launch_bounds__(threads)

void __syncthreads(void);
/* All of a warp's threads take part, in one dimension. */
float __shfl_xor_sync(unsigned mask, float v, int by);

/* Runs `body(job)` for all threads of all blocks. */
void emulated_launch(void (*body)(const void *job), const void *job, dim3 grid, unsigned threads,
                     size_t room);

#endif
