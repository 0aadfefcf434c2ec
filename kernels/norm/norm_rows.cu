/* RMSNorm and LayerNorm on GPUs, with and without a residual that is added first: a block for a row. The sums
 * are those of norm_rows.c, 64 of them by index modulo 64, for which as many threads are enough; all threads
 * read, multiply and write. */
#include "row.h"

#include "norm.h"

#include "rms.h"

enum { SUMS = 64 };

typedef struct norm_job {
    khub__rows rows;
    norm_params p;
} norm_job;

/* A block's row. */
typedef struct norm_one {
    char *out, *sum; /* sum: x + residual goes here; then it is x */
    const char *x, *residual;
    float mean, scale;
} norm_one;

/* How a row is done. Constants, but for `shrunk`. */
typedef struct norm_kind {
    int type, added, centered, shrunk;
} norm_kind;

/* The piece at `from`, for all threads. `first`: x is what it was; the sum is made of it. */
VEC void fetch_piece(float *kept, const norm_one *one, int64_t from, int count, norm_kind kind, int first)
{
    fetch(kept, one->x, from, count, kind.type, 0);
    __syncthreads();
    if (!first || !kind.added) return;
    fetch(kept, one->residual, from, count, kind.type, 1);
    __syncthreads();
    store(one->sum, kept, from, count, kind.type);
}

/* The sums of a block in one, for all its threads: parts i and i + 32, then i + 16 and so on. */
VEC float sum_of(float part)
{
    __shared__ float parts[SUMS], total;
    if (threadIdx.x < SUMS) parts[threadIdx.x] = part;
    __syncthreads();
    if (threadIdx.x < WARP) {
        float sum = warp_sum(parts[threadIdx.x] + parts[threadIdx.x + WARP], WARP);
        if (threadIdx.x == 0) total = sum;
    }
    __syncthreads();
    return total;
}

VEC float add(float part, float v, float mean, norm_kind kind, int squares)
{
    if (!squares) return kind.shrunk ? v_fma(v, RMS_SHRUNK, part) : v_add(part, v);
    v = norm_term(v, mean, RMS_SHRUNK, kind.centered, kind.shrunk);
    return v_fma(v, v, part);
}

/* The sum over the row of x, or of the squares of norm_term. A row that is whole is fetched for its first sum
 * alone. */
VEC float row_sum(float *kept, norm_one *one, int64_t n, norm_kind kind, int squares, int first)
{
    float part = 0;
    for (int64_t from = 0; from < n; from += PIECE) {
        int count = piece_of(from, n);
        if (first || !is_whole(n)) fetch_piece(kept, one, from, count, kind, first);
        if (threadIdx.x < SUMS) {
            UNROLL(8)
            for (int i = (int)threadIdx.x; i < count; i += SUMS)
                part = add(part, kept[i], one->mean, kind, squares);
        }
        if (!is_whole(n)) __syncthreads();
    }
    if (first && kind.added) one->x = one->sum;
    return sum_of(part);
}

/* By one thread: it takes double, which many GPUs have little of. */
VEC float scale_of(float squares, const norm_params *p, norm_kind kind)
{
    __shared__ float scale; /* of which every thread has read the last before sum_of ended */
    if (threadIdx.x == 0) scale = rms_scale(squares, p->n, p->eps, kind.shrunk);
    __syncthreads();
    return kind.shrunk && !kind.centered ? scale * RMS_SHRUNK : scale;
}

VEC float finished(const norm_one *one, const norm_params *p, float v, int64_t i, norm_kind kind)
{
    if (kind.centered) v = norm_term(v, one->mean, RMS_SHRUNK, 1, kind.shrunk);
    v = v_mul(v, one->scale);
    float weight = get(p->weight, i, kind.type);
    return p->bias ? v_fma(v, weight, get(p->bias, i, kind.type)) : v_mul(v, weight);
}

VEC void finish(float *kept, const norm_one *one, const norm_params *p, norm_kind kind)
{
    for (int64_t from = 0; from < p->n; from += PIECE) {
        int count = piece_of(from, p->n);
        if (!is_whole(p->n)) fetch_piece(kept, one, from, count, kind, 0);
        UNROLL(2)
        for (int i = (int)threadIdx.x; i < count; i += THREADS)
            kept[i] = finished(one, p, kept[i], from + i, kind);
        __syncthreads();
        store(one->out, kept, from, count, kind.type);
        __syncthreads();
    }
}

/* 0: a sum had no end, and only `sum` was written. */
VEC int norm_row(float *kept, norm_one *one, const norm_params *p, norm_kind kind)
{
    int first = !kind.shrunk;
    one->mean = 0;
    if (kind.centered) {
        one->mean = row_sum(kept, one, p->n, kind, 0, first) / (float)p->n;
        first = 0;
    }
    float squares = row_sum(kept, one, p->n, kind, 1, first);
    if (!kind.shrunk && !rms_fits(squares)) return 0;
    one->scale = scale_of(squares, p, kind);
    finish(kept, one, p, kind);
    return 1;
}

/* Rows in turns. One whose sums are too large for float32, or that has an infinity or NaN, is done once more,
 * shrunk. */
VEC void norm_rows(const norm_job *job, norm_kind kind)
{
    ROOM(kept);
    const khub__rows *r = &job->rows;
    const int summed = kind.added && r->data[NORM_SUM];
    for (int64_t row = blockIdx.x; row < r->count; row += gridDim.x) {
        norm_one one;
        one.out = r->data[NORM_OUT] + row * r->step[NORM_OUT];
        one.x = r->data[NORM_X] + row * r->step[NORM_X];
        one.residual = kind.added ? r->data[NORM_RESIDUAL] + row * r->step[NORM_RESIDUAL] : one.x;
        one.sum = summed ? r->data[NORM_SUM] + row * r->step[NORM_SUM] : one.out;
        for (kind.shrunk = 0; !norm_row(kept, &one, &job->p, kind); kind.shrunk = 1)
            ;
    }
}

#define DEFINE(name, type, added, centered)                                                                  \
    KERNEL(name##_kernel, THREADS, 3, norm_job)                                                              \
    {                                                                                                        \
        const norm_kind kind = {type, added, centered, 0};                                                   \
        norm_rows(&job, kind);                                                                               \
    }                                                                                                        \
    static void name(const khub__rows *rows, const norm_params *params)                                      \
    {                                                                                                        \
        norm_job job;                                                                                        \
        job.rows = *rows;                                                                                    \
        job.p = *params;                                                                                     \
        name##_kernel_launch(&job, grid_of(rows->count), THREADS, room_of(params->n));                       \
    }
#define DEFINE_TYPES(name, added, centered)                                                                  \
    DEFINE(name##_f32, F32, added, centered)                                                                 \
    DEFINE(name##_bf16, BF16, added, centered)                                                               \
    DEFINE(name##_f16, F16, added, centered)
DEFINE_TYPES(rms, 0, 0)
DEFINE_TYPES(add_rms, 1, 0)
DEFINE_TYPES(layer, 0, 1)
DEFINE_TYPES(add_layer, 1, 1)

#define BY_TYPE(name) .name = {name##_f32, name##_bf16, name##_f16}
GPU_BEGIN
extern const norm_path norm_cuda;
const norm_path norm_cuda = {BY_TYPE(rms), BY_TYPE(add_rms), BY_TYPE(layer), BY_TYPE(add_layer)};
GPU_END
