/* Softmax on GPUs: a block for a row. The sum is that of softmax_rows.c, sixteen sums by index modulo 16, for
 * which as many threads are enough; all threads compute exponentials. */
#include "row.h"

#include "softmax.h"

#include "vmath.h"

enum { SUMS = 16 };

typedef struct softmax_job {
    khub__rows rows;
    int64_t n;
} softmax_job;

/* For all threads of a block. */
VEC float largest_of(float v)
{
    __shared__ float most[THREADS / WARP];
    for (int by = WARP / 2; by; by /= 2)
        v = v_max(v, __shfl_xor_sync(0xffffffffu, v, by));
    if (threadIdx.x % WARP == 0) most[threadIdx.x / WARP] = v;
    __syncthreads();
    for (int i = 0; i < THREADS / WARP; i++)
        v = v_max(v, most[i]);
    return v;
}

VEC float row_largest(float *kept, const char *x, int64_t n, int type)
{
    float most = -INFINITY;
    for (int64_t from = 0; from < n; from += PIECE) {
        int count = piece_of(from, n);
        fetch(kept, x, from, count, type, 0);
        __syncthreads();
        UNROLL(2)
        for (int i = (int)threadIdx.x; i < count; i += THREADS)
            most = v_max(most, kept[i]);
        if (!is_whole(n)) __syncthreads();
    }
    return largest_of(most);
}

/* What is kept becomes exponentials of what is kept. */
VEC void raise(float *kept, int count, float most)
{
    UNROLL(2)
    for (int i = (int)threadIdx.x; i < count; i += THREADS)
        kept[i] = v_exp_raised(v_sub(kept[i], most));
    __syncthreads();
}

/* A whole row is fetched already; of another a piece. */
VEC void raise_piece(float *kept, const char *x, int64_t from, int64_t n, float most, int type)
{
    int count = piece_of(from, n);
    if (!is_whole(n)) {
        fetch(kept, x, from, count, type, 0);
        __syncthreads();
    }
    raise(kept, count, most);
}

VEC float row_total(float *kept, const char *x, int64_t n, float most, int type)
{
    __shared__ float total;
    float part = 0;
    for (int64_t from = 0; from < n; from += PIECE) {
        int count = piece_of(from, n);
        raise_piece(kept, x, from, n, most, type);
        if (threadIdx.x < SUMS) {
            UNROLL(8)
            for (int i = (int)threadIdx.x; i < count; i += SUMS)
                part = v_add(part, kept[i]);
        }
        if (!is_whole(n)) __syncthreads();
    }
    if (threadIdx.x < WARP) {
        part = warp_sum(part, SUMS);
        if (threadIdx.x == 0) total = part;
    }
    __syncthreads();
    return total;
}

/* A NaN, +infinity or nothing but -infinity in a row makes the whole row NaN. */
VEC void softmax_row(float *kept, char *out, const char *x, int64_t n, int type)
{
    float most = row_largest(kept, x, n, type), total = row_total(kept, x, n, most, type);
    for (int64_t from = 0; from < n; from += PIECE) {
        int count = piece_of(from, n);
        if (!is_whole(n)) raise_piece(kept, x, from, n, most, type);
        UNROLL(2)
        for (int i = (int)threadIdx.x; i < count; i += THREADS)
            kept[i] = v_div(kept[i], total);
        __syncthreads();
        store(out, kept, from, count, type);
        __syncthreads();
    }
}

#define DEFINE(name, type)                                                                                   \
    KERNEL(name##_kernel, THREADS, 3, softmax_job)                                                           \
    {                                                                                                        \
        ROOM(kept);                                                                                          \
        for (int64_t row = blockIdx.x; row < job.rows.count; row += gridDim.x)                               \
            softmax_row(kept, job.rows.data[0] + row * job.rows.step[0],                                     \
                        job.rows.data[1] + row * job.rows.step[1], job.n, type);                             \
    }                                                                                                        \
    static void name(const khub__rows *rows, int64_t n)                                                      \
    {                                                                                                        \
        softmax_job job;                                                                                     \
        job.rows = *rows;                                                                                    \
        job.n = n;                                                                                           \
        name##_kernel_launch(&job, grid_of(rows->count), THREADS, room_of(n));                               \
    }
DEFINE(softmax_f32, F32)
DEFINE(softmax_bf16, BF16)
DEFINE(softmax_f16, F16)

GPU_BEGIN
extern const softmax_path softmax_cuda;
const softmax_path softmax_cuda = {.softmax = {softmax_f32, softmax_bf16, softmax_f16}};
GPU_END
