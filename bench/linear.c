/* khub/linear on one core: the shapes of a MiniLM, whose weights are read one after the other as a pass does,
 * so that they come from as far away as they do there. */
#include "machine.h"

#include <khub/khub.h>

static int fail(const khub_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

enum { MOST_M = 252, MOST_WIDTH = 1536 };

/* A call on one weight after the other. */
typedef struct job {
    khub_function function;
    int64_t m, n, k;
    char *weights; /* `count` weights, weight_bytes each */
    size_t weight_bytes, count, next;
    char *x, *out, *bias;
    khub_dtype dtype;
    int packed;
} job;

static void run(void *user)
{
    job *j = user;
    int64_t out_shape[] = {j->m, j->n}, x_shape[] = {j->m, j->k}, plain[] = {j->n, j->k},
            bias_shape[] = {j->n};
    int64_t packed[] = {(j->n + 15) / 16, j->k, 16};
    char *weight = j->weights + j->next * j->weight_bytes;
    khub_tensor out = khub_tensor_over(j->out, j->dtype, 2, out_shape),
                x = khub_tensor_over(j->x, j->dtype, 2, x_shape),
                w = khub_tensor_over(weight, j->dtype, j->packed ? 3 : 2, j->packed ? packed : plain),
                bias = khub_tensor_over(j->bias, j->dtype, 1, bias_shape);
    khub_error err = {0};
    if (khub_call(&j->function, &err, khub_arg_tensor(&out), khub_arg_tensor(&x), khub_arg_tensor(&w),
                  khub_arg_tensor(&bias)))
        exit(fail(&err));
    j->next = (j->next + 1) % j->count;
}

/* Small numbers that are no trouble in either type. */
static void fill(char *data, size_t bytes, khub_dtype dtype)
{
    for (size_t i = 0; i < bytes / 2; i++) {
        uint16_t half = (uint16_t)(0x3e00 + i % 251); /* the upper half of 0.125 … 0.37 */
        if (dtype.bits == 32 && i % 2 == 0) half = 0;
        memcpy(data + 2 * i, &half, 2);
    }
}

static int shapes(const khub_kernel *kernel, const char *name, khub_dtype dtype, int packed, double flops,
                  double bandwidth, khub_error *err)
{
    static const int64_t rows[] = {1, 2, 12, 37, MOST_M},
                         widths[][2] = {{384, 384}, {1536, 384}, {384, 1536}};
    enum { WEIGHTS = 43 << 20 };
    size_t size = dtype.bits / 8;
    job j = {.dtype = dtype, .packed = packed};
    if (khub_kernel_function(&j.function, kernel, name, err) != KHUB_OK) return -1;
    j.weights = aligned_alloc(64, WEIGHTS);
    j.x = aligned_alloc(64, MOST_M * MOST_WIDTH * size);
    j.out = aligned_alloc(64, MOST_M * MOST_WIDTH * size);
    j.bias = aligned_alloc(64, MOST_WIDTH * size);
    fill(j.weights, WEIGHTS, dtype);
    fill(j.x, MOST_M * MOST_WIDTH * size, dtype);
    fill(j.bias, MOST_WIDTH * size, dtype);
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        for (size_t s = 0; s < 3; s++) {
            char label[64];
            j.m = rows[r], j.n = widths[s][0], j.k = widths[s][1];
            j.weight_bytes = (size_t)(j.n * j.k) * size;
            j.count = WEIGHTS / j.weight_bytes;
            j.next = 0;
            timing t = measure(run, &j, 0.4);
            double work = 2.0 * (double)(j.m * j.n * j.k), bytes = (double)j.weight_bytes;
            snprintf(label, sizeof(label), "%s %s m=%d n=%d k=%d", name,
                     dtype.bits == 32 ? "float32" : "bfloat16", (int)j.m, (int)j.n, (int)j.k);
            printf("%-46s best %6.1f median %6.1f GFLOP/s, %3.0f %% and %3.0f %% of peak; weights at %4.1f "
                   "GB/s, %3.0f %% of "
                   "reading\n",
                   label, work / t.best / 1e9, work / t.median / 1e9, 100 * work / t.best / flops,
                   100 * work / t.median / flops, bytes / t.median / 1e9, 100 * bytes / t.median / bandwidth);
        }
    }
    free(j.weights);
    free(j.x);
    free(j.out);
    free(j.bias);
    return KHUB_OK;
}

int main(void)
{
    khub_error err = {0};
    khub_kernel *kernel = NULL;
    if (khub_get(&kernel, "khub/linear", NULL, &err) != KHUB_OK) return fail(&err);
    double flops = peak_flops(), bandwidth = read_bandwidth(43 << 20);
    printf("one core: %.1f GFLOP/s at most, reads 43 MiB at %.1f GB/s\n", flops / 1e9, bandwidth / 1e9);
    static const struct {
        const char *name;
        uint8_t code, bits;
        int packed;
    } runs[] = {{"linear_packed", KHUB_DTYPE_FLOAT, 32, 1},
                {"linear_packed_gelu", KHUB_DTYPE_FLOAT, 32, 1},
                {"linear_packed", KHUB_DTYPE_BFLOAT, 16, 1},
                {"linear", KHUB_DTYPE_FLOAT, 32, 0},
                {"linear", KHUB_DTYPE_BFLOAT, 16, 0}};
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++)
        if (shapes(kernel, runs[i].name, khub_dtype_of(runs[i].code, runs[i].bits), runs[i].packed, flops,
                   bandwidth, &err))
            return fail(&err);
    khub_kernel_close(kernel);
    return 0;
}
