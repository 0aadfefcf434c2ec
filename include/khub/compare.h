/* What a kernel does to the numbers: a layer's function tried over the sweep of docs/determinism.md, beside
 * the standard implementation (or another kernel) and exact results. */
#ifndef KHUB_COMPARE_H
#define KHUB_COMPARE_H

#include <khub/standard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is looked at. */
typedef enum khub_check {
    KHUB_CHECK_RETURNS,   /* every call returns, and without an error */
    KHUB_CHECK_MEMORY,    /* nothing but the elements of its arguments is read or written */
    KHUB_CHECK_INPUTS,    /* inputs, and how the thread computes, stay as they were */
    KHUB_CHECK_REPEATS,   /* the same call again: the same bits, whatever `out` held before */
    KHUB_CHECK_PLACES,    /* the same numbers elsewhere: other alignment, other strides */
    KHUB_CHECK_SLICES,    /* in pieces, cut along each axis of "slices" */
    KHUB_CHECK_THREADS,   /* from several threads at once, whole and in pieces */
    KHUB_CHECK_BATCHES,   /* a row alone, first, last, in batches of 2, 7 and 8 */
    KHUB_CHECK_CLASSES,   /* NaN and infinity where the exact result has them, and nowhere else */
    KHUB_CHECK_TOLERANCE, /* "tolerance" of layers.json */
    KHUB_CHECK_IDENTICAL, /* the same bits as the other implementation's */
    KHUB_CHECKS
} khub_check;

/* A NaN has the same bits as any other NaN for all of them. */
typedef enum khub_verdict { KHUB_VERDICT_NONE, KHUB_VERDICT_YES, KHUB_VERDICT_NO } khub_verdict;

typedef struct khub_finding {
    khub_verdict verdict;   /* NONE: it wasn't tried */
    uint64_t tried, failed; /* calls; for CLASSES and IDENTICAL elements */
    char name[96];          /* of the case that failed first */
    char words[300];        /* what happened there */
} khub_finding;

/* How far the elements of some results are from the exact ones. */
typedef struct khub_accuracy {
    uint64_t elements;         /* whose exact result, rounded to the dtype, is a number or infinity */
    double worst, mean;        /* ULP, as docs/determinism.md counts */
    double absolute, relative; /* the largest error in itself, and by the exact result where that isn't 0 */
    double rms;                /* the root of the mean square of all errors by that of all exact results */
    double cosine;             /* of all results and all exact ones as two vectors; both all zero: 1 */
    struct {
        double errors, exact, got, products;
    } sums;            /* of squares and products of finite pairs: what rms and cosine come from */
    double got, exact; /* the worst element */
    char name[96];     /* its case */
    char arg[16];      /* its output */
    uint64_t index;    /* in it, row-major */
    uint64_t
        unlike; /* elements that are NaN, or infinite, where the exact result isn't, or the other way round */
} khub_accuracy;

/* The cases of one dtype and one class of values. */
typedef struct khub_compare_row {
    khub_dtype dtype;
    char values[16]; /* "normal" */
    uint64_t cases, elements;
    uint64_t identical;         /* elements with the same bits as the other's */
    uint64_t rows, argmax_same; /* of the outputs' last axes; whose largest is at the same place in both */
    khub_accuracy kernel, other;
} khub_compare_row;

/* A promise of layers.json. */
typedef struct khub_compare_tolerance {
    char dtype[32];
    double ulp, relative; /* below 0: not promised */
} khub_compare_tolerance;

enum { KHUB_COMPARE_ROWS = 30, KHUB_COMPARE_TOLERANCES = 4 };

typedef struct khub_compare_layer {
    char kernel[512], variant[128], function[128];
    char layer[64];    /* as layers.json names the entry */
    char serves[64];   /* the layer of docs/layers.md */
    char other[512];   /* "standard", or the other kernel */
    int deterministic; /* layers.json promises it */
    size_t tolerance_count;
    khub_compare_tolerance tolerances[KHUB_COMPARE_TOLERANCES];
    size_t row_count;
    khub_compare_row rows[KHUB_COMPARE_ROWS];
    khub_finding findings[KHUB_CHECKS];
    khub_verdict is_deterministic; /* REPEATS, PLACES, SLICES, THREADS and BATCHES together */
    khub_accuracy worst;           /* of the classes that a tolerance is about */
    uint64_t cases, calls;
    uint64_t refused; /* cases that the function raised an error for */
    int broken;       /* 1: a promise is broken, memory touched, an input changed, or a call didn't return */
    char error[1024]; /* why nothing could be tried; empty: something was */
} khub_compare_layer;

typedef struct khub_compare_options {
    size_t struct_size;          /* set by KHUB_INIT */
    const char *layer;           /* that the function after ":" serves; NULL: what is after ":" is a layer */
    const char *const *args;     /* the layer's arguments in the function's order, NULL-terminated; NULL: its
                                  * own. With `layer` */
    const char *dtype;           /* this one alone; NULL: all that the kernel and the layer have */
    const char *case_name;       /* this case alone; NULL: the sweep */
    uint64_t seed;               /* other numbers in the same cases */
    uint32_t threads;            /* at once; 0: 4 */
    uint32_t timeout_ms;         /* a call that takes longer hangs; 0: 20,000 */
    int same_process;            /* not 0: no child process; what crashes takes this one along */
    const char *save;            /* a directory: the worst case's arguments as .npy files; NULL: none */
    const khub_get_options *get; /* how kernels are had; borrowed during the call; NULL: as khub_get does */
    const char *standard;        /* whose standard functions kernels are compared with: "khub" (NULL too),
                                  * "torch" (khub_standard_torch, with get's libtorch) where PyTorch has one */
    const char *device; /* "cuda:1" (khub_gpu_open): builds for it are got, and called there; NULL: as
                         * `get` says, a build for a GPU on the first one */
} khub_compare_options;

typedef struct khub_compare_report khub_compare_report;

/* Tries `kernel`: "NAME" (all layers of its layers.json), "NAME:LAYER", or "NAME:FUNCTION" with
 * options.layer. `other` (may be NULL: the standard implementation) is another kernel, named alike. Kernels
 * are loaded and called in a child process: one that crashes, hangs or leaves is a finding, and what else
 * there is to try is tried after it. Functions given in `options` (log, progress) are called there. Unless
 * options.same_process, call it from a process that has no other threads of its own at work. *out is the
 * caller's. KHUB_E_INVAL (options, a case, a layer that isn't in docs/layers.md), those of khub_get and
 * khub_kernel_layer and khub_gpu_open, KHUB_E_KERNEL (a GPU that a kernel made unusable, in the same
 * process), KHUB_E_NOMEM. */
KHUB_API int khub_compare(khub_compare_report **out, const char *kernel, const char *other,
                          const khub_compare_options *options, khub_error *err);

/* The same for a function of the program's own that serves `layer`, with the layer's arguments in its own
 * order. `axes` (may be NULL) are those along which its calls may be cut. */
KHUB_API int khub_compare_function(khub_compare_report **out, const char *layer, khub_function function,
                                   const khub_slot_axis *axes, size_t axis_count,
                                   const khub_compare_options *options, khub_error *err);

KHUB_API size_t khub_compare_count(const khub_compare_report *report);
KHUB_API const khub_compare_layer *khub_compare_at(const khub_compare_report *report,
                                                   size_t i); /* NULL past the last */
KHUB_API void khub_compare_free(khub_compare_report *report); /* NULL is a no-op */

/* "memory". Static. */
KHUB_API const char *khub_check_name(khub_check check);

#ifdef __cplusplus
}
#endif

#endif
