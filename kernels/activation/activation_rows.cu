/* Activations on GPUs, plain and gated: the functions of the CPU's kernels (activation.h), a thread for 16
 * bytes of the result. */
#include "gpu.h"

#include "activation_path.h"

#include "activation.h"

enum { THREADS = 256 };

typedef struct activation_job {
    khub__rows rows;
    int64_t n, shares; /* of a row: a block's THREADS chunks */
} activation_job;

/* Defines NAME_f32 and so on: rows of `expression` of x and, when gated, of its second half, `gate`. */
#define DEFINE_FOR(name, type, gated, expression)                                                            \
    VEC float name##_one(float x, float gate)                                                                \
    {                                                                                                        \
        (void)gate;                                                                                          \
        return expression;                                                                                   \
    }                                                                                                        \
    VEC void name##_chunk(char *out, const char *xs, const char *gates, int64_t i)                           \
    {                                                                                                        \
        float x[CHUNK], gate[CHUNK];                                                                         \
        get_chunk(x, xs, i, type);                                                                           \
        if (gated) get_chunk(gate, gates, i, type);                                                          \
        for (int k = 0; k < PER_CHUNK(type); k++)                                                            \
            x[k] = name##_one(x[k], gated ? gate[k] : 0);                                                    \
        put_chunk(out, i, x, type);                                                                          \
    }                                                                                                        \
    KERNEL(name##_kernel, THREADS, 3, activation_job)                                                        \
    {                                                                                                        \
        for (int64_t at = blockIdx.x; at < job.rows.count * job.shares; at += gridDim.x) {                   \
            int64_t row = at / job.shares, share = at % job.shares;                                          \
            char *out = job.rows.data[0] + row * job.rows.step[0];                                           \
            const char *x = job.rows.data[1] + row * job.rows.step[1];                                       \
            const char *gate = x + (gated ? job.n * ELEMENT_BYTES(type) : 0);                                \
            int64_t i = (share * THREADS + threadIdx.x) * PER_CHUNK(type);                                   \
            int64_t end = i + PER_CHUNK(type) < job.n ? i + PER_CHUNK(type) : job.n;                         \
            if (end - i == PER_CHUNK(type) && chunks_fit(out) && chunks_fit(x) && chunks_fit(gate))          \
                name##_chunk(out, x, gate, i);                                                               \
            else                                                                                             \
                for (; i < end; i++)                                                                         \
                    put(out, i, name##_one(get(x, i, type), gated ? get(gate, i, type) : 0), type);          \
        }                                                                                                    \
    }                                                                                                        \
    static void name(const khub__rows *rows, int64_t n)                                                      \
    {                                                                                                        \
        activation_job job;                                                                                  \
        job.rows = *rows;                                                                                    \
        job.n = n;                                                                                           \
        job.shares = (n + THREADS * PER_CHUNK(type) - 1) / (THREADS * PER_CHUNK(type));                      \
        name##_kernel_launch(&job, grid_of(rows->count *job.shares), THREADS, 0);                            \
    }
#define DEFINE(name, gated, expression)                                                                      \
    DEFINE_FOR(name##_f32, F32, gated, expression)                                                           \
    DEFINE_FOR(name##_bf16, BF16, gated, expression)                                                         \
    DEFINE_FOR(name##_f16, F16, gated, expression)

DEFINE(gelu, 0, v_gelu(x))
DEFINE(gelu_tanh, 0, v_gelu_tanh(x))
DEFINE(silu, 0, v_silu(x))
DEFINE(quick_gelu, 0, v_quick_gelu(x))
DEFINE(relu, 0, v_relu(x))
DEFINE(silu_and_mul, 1, v_silu_times(x, gate))
DEFINE(gelu_and_mul, 1, v_gelu_times(x, gate))

#define BY_TYPE(name) .name = {name##_f32, name##_bf16, name##_f16}
GPU_BEGIN
extern const activation_path activation_cuda;
const activation_path activation_cuda = {BY_TYPE(gelu),        BY_TYPE(gelu_tanh), BY_TYPE(silu),
                                         BY_TYPE(quick_gelu),  BY_TYPE(relu),      BY_TYPE(silu_and_mul),
                                         BY_TYPE(gelu_and_mul)};
GPU_END
