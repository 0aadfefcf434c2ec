/* A kernel: one build of a repository, loaded, whose functions can be called. */
#ifndef KHUB_KERNEL_H
#define KHUB_KERNEL_H

#include <khub/function.h>
#include <khub/hub.h>
#include <khub/trust.h>
#include <khub/variant.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Decides on the builds of a kernel repository, named as for khub_get, as khub_choose does. Of the builds
 * that fit and whose backend has GPU architectures, metadata.json is read too, and those without code for
 * this machine's GPU are rejected. Nothing is loaded. `hub` (may be NULL) says how the Hub is reached. Any
 * thread. *out is the caller's (khub_choice_free). KHUB_E_NOTFOUND (no such directory, no build/ in it),
 * KHUB_E_INVAL, KHUB_E_IO, KHUB_E_NOMEM; for a name of the Hub those of khub_download. That no build fits is
 * a result, not an error: see khub_choice_require. */
KHUB_API int khub_choose_in(khub_choice **out, const char *name, const khub_platform *platform,
                            const khub_hub_options *hub, khub_error *err);

typedef struct khub_kernel khub_kernel;

typedef struct khub_get_options {
    size_t struct_size;            /* set by KHUB_INIT */
    const khub_platform *platform; /* borrowed during the call; NULL: this machine, looked at once */
    const char *backend;           /* as for khub_platform_select; NULL: the platform's own */
    const char *variant;           /* this build and no other, by name; NULL: the best that fits */
    const khub_hub_options *hub;   /* borrowed during the call; NULL: as the environment says */
    const char *lock;  /* a kernels.lock: a name of the Hub is taken at the commit it has there; NULL: none */
    const char *torch; /* folder of a libtorch, as for khub_platform_use_torch; NULL: the platform's own */
    int no_torch;      /* not 0: no build of Torch fits, whatever libtorch is in reach */
    int rehearse;      /* not 0: a library of which it isn't known that it loads here is loaded in a child
                        * process first, so that one that ends it is KHUB_E_LOAD (docs/calling.md) */
} khub_get_options;

/* Gets a kernel by its name: a path that starts with "/", "./" or "../", a built-in one ("khub/norm",
 * staged with khub), or "ORG/NAME@REV" from the Hub, where REV is "v1" or "1" (version 1), a range of
 * versions (">=1,<3"), a branch, a tag or a commit; the environment's LOCAL_KERNELS may put a path in its
 * place. Chooses the build, makes its files be in the cache (its metadata.json first, and no library of a
 * publisher that isn't trusted), gets the kernels that it needs, proves each file (docs/trust.md), loads its
 * library with all symbols bound, and libtvm_ffi before it (docs/calling.md). The same library asked for
 * again is the same one in memory, and the same name of the Hub asked for again in one process means the same
 * commit, without a look at disk or network, unless options.hub.refresh is set or options.lock was written
 * anew. `options` may be NULL. Any thread. *out is the caller's; NULL after a failure: KHUB_E_NOTFOUND,
 * KHUB_E_NOBUILD, KHUB_E_NEEDS_PYTHON, KHUB_E_FORMAT (metadata.json, a circle of kernels that need each
 * other), KHUB_E_LOAD (in plain words: what the file is, which symbol or library is missing, and what would
 * have it; or that the file was replaced since it was loaded), KHUB_E_UNSUPPORTED (a compiled tvm-ffi
 * module), KHUB_E_IO, KHUB_E_INVAL, KHUB_E_NOMEM; and those of khub_download. What this process has got by
 * the same name and options it gets again, whatever the policy's file says by then. */
KHUB_API int khub_get(khub_kernel **out, const char *name, const khub_get_options *options, khub_error *err);

/* Does all of khub_get's way except the last step: nothing is loaded, so that `options.platform` may be that
 * of another machine. *build (may be NULL) is the directory of the build, the caller's (khub_free); NULL
 * after a failure. Errors as khub_get's. */
KHUB_API int khub_prefetch(char **build, const char *name, const khub_get_options *options, khub_error *err);

/* Why a build may be loaded, or mayn't: all of khub_get's way except the last step, with a refusal as the
 * result. `whole` 0: no more of the build is fetched than metadata.json and its signature, and so its content
 * isn't judged; of the kernels that it needs neither. *out is the caller's (khub_trust_free); NULL after a
 * failure, for which the errors are khub_get's: KHUB_E_UNTRUSTED is that of another kernel that it needs, or
 * of the policy's file. */
KHUB_API int khub_judge(khub_trust **out, const char *name, int whole, const khub_get_options *options,
                        khub_error *err);

/* Gives the kernel up. Its library stays mapped until the process ends, since results, thread-local
 * destructors and atexit functions may live in it; getting it again costs no memory. NULL is a no-op. */
KHUB_API void khub_kernel_close(khub_kernel *kernel);

/* Facts; strings are the kernel's, valid until it is closed. */
KHUB_API const char *khub_kernel_name(const khub_kernel *kernel);    /* as asked for, without ":FUNCTION" */
KHUB_API const char *khub_kernel_variant(const khub_kernel *kernel); /* "tvm-ffi01-cpu-x86_64-linux" */
KHUB_API const char *khub_kernel_build(const khub_kernel *kernel);   /* directory of the build */
KHUB_API const char *khub_kernel_commit(
    const khub_kernel *kernel); /* of a kernel of the Hub; NULL: a directory */
KHUB_API const char *khub_kernel_library(const khub_kernel *kernel); /* path of the library */
KHUB_API int64_t khub_kernel_version(const khub_kernel *kernel);     /* metadata.json's version */

/* Why it was loaded: the decisions on its build (docs/trust.md). NULL: none were kept. */
KHUB_API const khub_trust *khub_kernel_trust(const khub_kernel *kernel);

/* Finds a function by the name it is exported under (`__tvm_ffi_NAME`), or in a build for Torch by the
 * operator's name without its namespace ("silu", "silu.out"; docs/torch.md). *out is valid until the kernel
 * is closed. KHUB_E_NOTFOUND lists the functions there are. */
KHUB_API int khub_kernel_function(khub_function *out, const khub_kernel *kernel, const char *name,
                                  khub_error *err);

typedef struct khub_function_info {
    const char *name;
    const char *schema; /* the type schema of tvm-ffi's metadata, JSON; of an operator of Torch its schema as
                         * Torch writes it; NULL: none */
    const char *doc;    /* NULL: none; of an operator of Torch that can't be called, why */
} khub_function_info;

/* The i-th function, by name in byte order; NULL past the last, or for lack of memory. Reading schema and doc
 * calls into the library once; the answer is the kernel's. One thread at a time. */
KHUB_API const khub_function_info *khub_kernel_function_info(khub_kernel *kernel, size_t i);

/* One entry of "tolerance": one of the two is promised, the other is below 0. */
typedef struct khub_layer_tolerance {
    const char *dtype; /* "float32" */
    double ulp;        /* at most that far from the exact result, as docs/determinism.md counts */
    double relative;   /* the root of the mean square of all errors by that of all exact results */
} khub_layer_tolerance;

/* How a kernel serves one layer, from its layers.json (docs/layers.md). */
typedef struct khub_layer_spec {
    const char *layer;  /* "RMSNorm": the entry's name */
    const char *serves; /* "layer": the layer that the entry serves; NULL: the one that it is named after, or
                         * any with its arguments */
    const char *function;    /* "rms_norm" */
    const char *const *args; /* the layer's argument names in the function's order; NULL: its own */
    size_t arg_count;
    const char *const *dtypes; /* NULL-terminated, "float32", ...; NULL: any */
    int backward;              /* 1: has a backward */
    int deterministic;         /* 1: promises the same bits for every thread count and batch */
    /* "slices": axes along which a call may be cut, NULL-terminated pairs are in `slices` */
    const struct khub_slice_axis *slices;
    size_t slice_count;
    const char *returns;          /* "out": the argument that the function gives back instead, and that isn't
                                   * among `args`; NULL: it writes to all its outputs */
    const char *prepare_arg;      /* "weight": the argument that is prepared; NULL: none */
    const char *prepare_function; /* called as f(prepared, original), see docs/layers.md */
    const khub_layer_tolerance *tolerances; /* promises for some dtypes */
    size_t tolerance_count;
    const struct khub_shape_rule *shapes; /* what it takes; none: all that the layer may be called with */
    size_t shape_count;
} khub_layer_spec;

/* One of "shapes": the extents that an axis of an argument may have. */
typedef struct khub_shape_rule {
    const char *arg;
    int32_t dim;                /* from 0; below 0: from the last, -1 */
    int64_t min, max, multiple; /* 0, INT64_MAX, 1 where nothing is said */
    const int64_t *values;      /* one of these; NULL: any within the above */
    size_t value_count;
} khub_shape_rule;

/* Dimension `dim` of the argument `arg`. */
typedef struct khub_slice_part {
    const char *arg;
    int32_t dim;
    int32_t unit; /* extent 1 here stands for `unit` of the axis; 1 mostly, 16 for packed panels */
} khub_slice_part;

/* One axis of a layer's "slices": its parts are cut together. */
typedef struct khub_slice_axis {
    const char *axis; /* "rows" */
    const khub_slice_part *parts;
    size_t part_count;
} khub_slice_axis;

/* What layers.json says about `layer`; borrowed until the kernel is closed. KHUB_E_NOTFOUND lists the layers
 * that the kernel serves (or says that it has no layers.json); KHUB_E_FORMAT. */
KHUB_API int khub_kernel_layer(const khub_layer_spec **out, khub_kernel *kernel, const char *layer,
                               khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
