/* A block's piece of a row in shared memory, as float32: all threads fetch it and store it, 16 bytes at a
 * time where memory is so aligned. Whoever needs what others fetched waits for them (__syncthreads). */
#ifndef KHUB_KERNELS_CUDA_ROW_H
#define KHUB_KERNELS_CUDA_ROW_H

#include "gpu.h"

enum { THREADS = 256 };

/* The most elements of a piece; pieces begin at multiples of it. Few for tests, so that rows have several. */
#if defined(__CUDACC__)
enum { PIECE = 8192 };
#else
enum { PIECE = 1024 };
#endif

/* The piece of a row of n at `from`: how long. */
VEC int piece_of(int64_t from, int64_t n)
{
    return n - from < PIECE ? (int)(n - from) : PIECE;
}
static inline size_t room_of(int64_t n)
{
    const int64_t most = PIECE;
    return (size_t)(n < most ? n : most) * sizeof(float);
}

/* The rows of a piece are then read once. */
VEC int is_whole(int64_t n)
{
    return n <= PIECE;
}

/* Elements `from` … of a row; `add`: to what is kept, rounded as if it were stored. */
VEC void fetch(float *kept, const char *row, int64_t from, int count, int type, int add)
{
    const int per = PER_CHUNK(type);
    int i = 0;
    if (chunks_fit(row)) {
        int whole = count / per * per;
        UNROLL(2)
        for (i = (int)threadIdx.x * per; i < whole; i += THREADS * per) {
            float v[CHUNK];
            get_chunk(v, row, from + i, type);
            for (int k = 0; k < per; k++)
                kept[i + k] = add ? as_stored(kept[i + k] + v[k], type) : v[k];
        }
        i = whole;
    }
    UNROLL(1)
    for (i += (int)threadIdx.x; i < count; i += THREADS) {
        float v = get(row, from + i, type);
        kept[i] = add ? as_stored(kept[i] + v, type) : v;
    }
}

VEC void store(char *row, const float *kept, int64_t from, int count, int type)
{
    const int per = PER_CHUNK(type);
    int i = 0;
    if (chunks_fit(row)) {
        int whole = count / per * per;
        UNROLL(2)
        for (i = (int)threadIdx.x * per; i < whole; i += THREADS * per)
            put_chunk(row, from + i, kept + i, type);
        i = whole;
    }
    UNROLL(1)
    for (i += (int)threadIdx.x; i < count; i += THREADS)
        put(row, from + i, kept[i], type);
}

#endif
