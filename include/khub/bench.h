/* How fast a kernel's layer or function is, beside the standard implementation and what the machine can do
 * (libkhub-model). What `khub bench` shows. */
#ifndef KHUB_BENCH_H
#define KHUB_BENCH_H

#include <khub/gpu.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times of one call, in seconds. A sample is the mean time of `calls` calls in a row, so many that reading
 * the clock doesn't show; before it, one call that isn't counted brings the arguments near (unless `cold`, or
 * a call takes more than 5 ms).
 *
 * Quartiles are interpolated between the samples in order. An outlier is a sample above q3 + 3 (q3 - q1),
 * Tukey's outer fence: something else ran meanwhile. Outliers are counted and stay in: the median and the
 * quartiles hardly notice them, and `best` not at all. */
typedef struct khub_timing {
    double best, q1, median, q3;
    size_t samples; /* 0: not measured */
    size_t outliers;
    uint64_t calls; /* in one sample */
} khub_timing;

/* One call that was measured. Strings are the khub_bench's. */
typedef struct khub_bench_case {
    const char *layer; /* "RMSNorm", or its name in the kernel's layers.json, "LinearInt8"; NULL: a function
                        * that serves none */
    const char *function; /* "rms_norm"; NULL: nothing was called */
    const char *shape;  /* "m=252,n=384,k=384"; of a function its arguments, "float32[4,384] float32[384]" */
    khub_dtype dtype;   /* of the tensors; of a function its first tensor's, lanes 0 when it has none */
    const char *reason; /* why it wasn't measured; NULL: it was */
    double bytes;       /* of one call: every tensor once, read or written, as the caller has it */
    double flops;       /* of one call, see docs/bench.md; 0: unknown */
    khub_timing kernel;
    khub_timing standard; /* in turn with the kernel's, sample by sample; .samples 0: there is none */
    /* How many times the standard function's time is the kernel's: of each pair of neighbouring samples, then
     * quartiles of these; 0 without a standard function. */
    double ratio_q1, ratio, ratio_q3;
    double copy; /* bytes a second, read and written, that this machine copies of as many bytes; 0: unknown */
    double share;      /* of `copy`, by the median; 0: unknown */
    double peak_share; /* of the FMA peak, by the median; 0: unknown */
} khub_bench_case;

/* What the machine can do with the threads that were used, measured in the same run. */
typedef struct khub_bench_machine {
    const char *cpu; /* model; NULL: unknown */
    unsigned threads;
    const char *fma_isa; /* of the FMA peak: "portable", "avx2", "avx512", "neon"; "by its clock": of a GPU */
    double fma_flops;    /* float32 multiply-adds in registers, each two operations, a second; 0: unknown */
    double copy_memory;  /* bytes a second, read and written: too many for any cache */
    double copy_cache;   /* the same, 256 KiB in all a thread */
    uint64_t memory_bytes;  /* that copy_memory read and wrote */
    const char *kernel;     /* its name */
    const char *variant;    /* of its build */
    const char *kernel_isa; /* which path the kernel says it takes; NULL: it can't tell */
    const char *device; /* "NVIDIA H200 (cuda:0)", that the kernel was called on and the figures are of; NULL:
                         * the processor */
} khub_bench_machine;

typedef struct khub_bench khub_bench;

typedef struct khub_bench_options {
    size_t struct_size;        /* set by KHUB_INIT */
    const char *const *shapes; /* NULL-terminated, "m=252,n=384,k=384", what is left out as the layer's own
                                * list has it first; NULL: that list */
    const char *const *dtypes; /* NULL-terminated, "bfloat16"; NULL: float32 and bfloat16 */
    unsigned threads;          /* a call is cut along the axes that its function declares; 0: 1 */
    double seconds;  /* for all cases together, at most, about: the last ones may not be measured. 0: half
                      * a second for each, or as long as a few calls take. Looking at the machine before
                      * and after takes some tenths of a second */
    int cold;        /* not 0: calls go round arguments that fill twice the largest cache, as the
                      * weights of a model do */
    int no_standard; /* not 0: the kernel alone */
    const char *function; /* measure this function as the layer, arguments in the layer's order, whatever
                           * layers.json says; NULL: as layers.json says */
    const khub_get_options *get; /* how the kernel is had; borrowed during the call; NULL: as khub_get does */
    /* Called before each case; `user` is passed on. Not 0: ends there, KHUB_E_CANCELED. NULL: nobody. */
    int (*progress)(void *user, size_t done, size_t count);
    void *user;
    const char *standard; /* whose standard functions: "khub" (NULL too), "torch" (khub_standard_torch, with
                           * get's libtorch) where PyTorch has one */
    khub_gpu *gpu; /* borrowed during the call: builds for its backend are got, and called there, timed by its
                    * events, without a standard function; for khub_bench_function the tensors are there.
                    * NULL: as `get` says, a layer's build for a GPU on the first one */
} khub_bench_options;

/* Measures a layer of a kernel (named as for khub_get): of docs/layers.md, or another form of one by its name
 * in the kernel's layers.json; with `layer` NULL every layer that it serves. In this thread and `threads` - 1
 * of its own. A case that can't be measured has its reason, and is no error; that none could be is one.
 * `options` may be NULL. *out is the caller's (khub_bench_free); NULL after a failure. KHUB_E_INVAL (options;
 * a shape: what is wrong and which names there are), KHUB_E_NOTFOUND, KHUB_E_KERNEL, KHUB_E_NOMEM, and those
 * of khub_get. */
KHUB_API int khub_bench_layer(khub_bench **out, const char *kernel, const char *layer,
                              const khub_bench_options *options, khub_error *err);

/* Measures calls of one function with these arguments. Of `options`, `seconds` alone counts. Errors as above;
 * the function's own is KHUB_E_KERNEL. */
KHUB_API int khub_bench_function(khub_bench **out, khub_kernel *kernel, const char *function,
                                 const khub_value *args, int32_t n, const khub_bench_options *options,
                                 khub_error *err);

KHUB_API const khub_bench_machine *khub_bench_machine_of(const khub_bench *bench);
KHUB_API size_t khub_bench_count(const khub_bench *bench);
KHUB_API const khub_bench_case *khub_bench_at(const khub_bench *bench, size_t i); /* NULL past the last */
KHUB_API void khub_bench_free(khub_bench *bench);                                 /* NULL is a no-op */

/* Fills a compact CPU tensor with numbers for a call whose result doesn't matter: floats spread over (-1, 1),
 * integers and bools 0 or 1, always the same ones. KHUB_E_INVAL: another kind of tensor. */
KHUB_API int khub_bench_fill(const khub_tensor *tensor, khub_error *err);

/* The i-th shape of a layer's own list; NULL past the last, or for an unknown layer. Static. */
KHUB_API const char *khub_bench_shape(const char *layer, size_t i);

#ifdef __cplusplus
}
#endif

#endif
