/* Rotary position embedding on GPUs: a thread for a pair of a head, side by side as the pairs lie in memory.
 */
#include "gpu.h"

#include "rotary.h"

enum { THREADS = 256 };

VEC void turn_pair(const rotary_job *j, int64_t pair, int type)
{
    int64_t i = pair % j->half, head = pair / j->half % j->heads, token = pair / j->half / j->heads;
    char *out = j->out + token * j->out_token + head * j->out_head;
    const char *x = j->x + token * j->x_token + head * j->x_head;
    float a = get(x, i, type), b = get(x, i + j->half, type);
    float c = get(j->cos + token * j->cos_token, i, type), s = get(j->sin + token * j->sin_token, i, type);
    put(out, i, v_fma(v_sub(0, b), s, v_mul(a, c)), type);
    put(out, i + j->half, v_fma(a, s, v_mul(b, c)), type);
}

#define DEFINE(name, type)                                                                                   \
    KERNEL(name##_kernel, THREADS, 3, rotary_job)                                                            \
    {                                                                                                        \
        int64_t pairs = job.tokens * job.heads * job.half, step = (int64_t)gridDim.x * THREADS;              \
        for (int64_t pair = (int64_t)blockIdx.x * THREADS + threadIdx.x; pair < pairs; pair += step)         \
            turn_pair(&job, pair, type);                                                                     \
    }                                                                                                        \
    static void name(const rotary_job *job)                                                                  \
    {                                                                                                        \
        int64_t pairs = job->tokens * job->heads * job->half;                                                \
        if (pairs) name##_kernel_launch(job, grid_of((pairs + THREADS - 1) / THREADS), THREADS, 0);          \
    }
DEFINE(rotary_f32, F32)
DEFINE(rotary_bf16, BF16)
DEFINE(rotary_f16, F16)

GPU_BEGIN
extern const rotary_path rotary_cuda;
const rotary_path rotary_cuda = {.rotary = {rotary_f32, rotary_bf16, rotary_f16}};
GPU_END
