/* khub/attention on one core: the shapes of a MiniLM (12 heads of 32), a decoder's first pass and its next
 * token. */
#include "machine.h"

#include <khub/khub.h>

static int fail(const khub_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

typedef struct job {
    khub_function function;
    khub_tensor out, q, k, v;
    int causal;
    double scale;
} job;

static void run(void *user)
{
    const job *j = user;
    khub_error err = {0};
    if (khub_call(&j->function, &err, khub_arg_tensor(&j->out), khub_arg_tensor(&j->q),
                  khub_arg_tensor(&j->k), khub_arg_tensor(&j->v), khub_arg_none(), khub_arg_float(j->scale),
                  khub_arg_bool(j->causal)))
        exit(fail(&err));
}

/* A tensor of small numbers that are no trouble in either type. */
static khub_tensor small_numbers(khub_dtype dtype, const int64_t *shape)
{
    size_t halves = (size_t)(shape[0] * shape[1] * shape[2] * shape[3]) * dtype.bits / 16;
    uint16_t *data = aligned_alloc(64, (halves * 2 + 63) / 64 * 64);
    for (size_t i = 0; data && i < halves; i++)
        data[i] = dtype.bits == 32 && i % 2 == 0
                      ? 0
                      : (uint16_t)(0x3e00 + i % 251); /* 0.125 … 0.37, its upper half */
    return khub_tensor_over(data, dtype, 4, shape);
}

int main(void)
{
    static const struct {
        int64_t b, t, s, h, g, d;
        int causal;
    } table[] = {{1, 12, 12, 12, 12, 32, 0},  {32, 12, 12, 12, 12, 32, 0},  {1, 252, 252, 12, 12, 32, 0},
                 {1, 512, 512, 32, 8, 64, 1}, {1, 512, 512, 32, 8, 128, 1}, {1, 1, 2048, 32, 8, 128, 1}};
    khub_error err = {0};
    khub_kernel *kernel = NULL;
    job j = {0};
    if (khub_get(&kernel, "khub/attention", NULL, &err) != KHUB_OK ||
        khub_kernel_function(&j.function, kernel, "attention", &err) != KHUB_OK)
        return fail(&err);
    double flops = peak_flops();
    printf("one core: %.1f GFLOP/s at most\n", flops / 1e9);
    for (size_t i = 0; i < 2 * sizeof(table) / sizeof(*table); i++) {
        khub_dtype dtype = i % 2 ? khub_dtype_of(KHUB_DTYPE_BFLOAT, 16) : khub_dtype_of(KHUB_DTYPE_FLOAT, 32);
        int64_t b = table[i / 2].b, t = table[i / 2].t, s = table[i / 2].s, h = table[i / 2].h,
                g = table[i / 2].g, d = table[i / 2].d;
        int64_t of_q[] = {b, t, h, d}, of_k[] = {b, s, g, d};
        j.out = small_numbers(dtype, of_q), j.q = small_numbers(dtype, of_q);
        j.k = small_numbers(dtype, of_k), j.v = small_numbers(dtype, of_k);
        j.causal = table[i / 2].causal;
        j.scale = 0.125;
        timing taken = measure(run, &j, 0.5);
        /* multiply-adds that count: causal queries see half of their square */
        double pairs = j.causal && t > 1 ? (double)t * (double)(t + 1) / 2 : (double)t * (double)s;
        double work = 4 * pairs * (double)(b * h * d), read = (double)(b * s * g * d) * 2 * dtype.bits / 8;
        printf("%-8s b=%-2d t=%-3d s=%-4d h=%d/%d d=%-3d %s best %8.1f median %8.1f us, %5.1f GFLOP/s, %3.0f "
               "%% of peak, k and v at "
               "%4.1f GB/s\n",
               dtype.bits == 32 ? "float32" : "bfloat16", (int)b, (int)t, (int)s, (int)h, (int)g, (int)d,
               j.causal ? "causal" : "      ", taken.best * 1e6, taken.median * 1e6, work / taken.best / 1e9,
               100 * work / taken.best / flops, read / taken.best / 1e9);
        free(j.out.data), free(j.q.data), free(j.k.data), free(j.v.data);
    }
    khub_kernel_close(kernel);
    return 0;
}
