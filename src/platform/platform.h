/* What a khub_platform is made of. Everything after detection reads only this. */
#ifndef PLATFORM_PLATFORM_H
#define PLATFORM_PLATFORM_H

#include <khub/platform.h>

#include "platform/pool.h"
#include "platform/version.h"

/* Plain data. Strings and arrays are the pool's; NULL (a number: 0) where unknown. */
struct khub_platform {
    /* What decides which builds fit (facts that choose a variant). */
    const char *os;               /* "linux", "darwin", "windows", or another system's name */
    const char *arch;             /* "x86_64", "aarch64", or another machine's name */
    const khub__backend *backend; /* the one that counts */
    khub__version backend_version;
    khub__version torch;                /* of the libtorch that kernels may be called through */
    int torch_cxx11_abi;                /* 1, 0, -1: unknown */
    const khub__backend *torch_backend; /* that it has beside the CPU's, "cpu": none; NULL: unknown */
    khub__version torch_backend_version;
    khub__version tvm_ffi, macos;
    const char **archs; /* of the backend's devices that count, each once */
    size_t arch_count;
    int is_selected; /* 1: somebody asked for this backend by name */

    /* The same in words, made by khub__platform_finish. */
    const char *backend_text; /* "cu128"; the name alone when the version is unknown */
    const char *torch_text, *tvm_ffi_text, *macos_text;

    /* What else is known. */
    const char *about; /* which machine it is, in words */
    const char *cpu_model, *glibc;
    const char **features;
    size_t feature_count;
    unsigned cores, threads;
    const char *threads_reason; /* what limits the threads: "affinity mask", "cgroup quota of 1.5" */
    uint64_t l1d_bytes, l2_bytes, l3_bytes; /* caches as one core sees them */
    khub_library_info *libraries;
    size_t library_count;
    khub_accelerator_info *accelerators;
    size_t accelerator_count;

    khub__pool pool;
};

/* How much of this machine is looked at. */
typedef enum khub__extent {
    KHUB__WHAT_DECIDES, /* a build that isn't for Torch: what each start needs */
    KHUB__EVERYTHING    /* what people are shown, too */
} khub__extent;

/* khub_platform_detect, as far as `extent`; what isn't looked at is unknown. */
int khub__platform_look(khub_platform **out, khub__extent extent, const khub_platform_options *options,
                        khub_error *err);

/* The same of a machine whose files are below `root` and whose kernel and processor are this one's. */
int khub__platform_look_below(khub_platform **out, const char *root, khub__extent extent,
                              const khub_platform_options *options, khub_error *err);

/* Looks for a libtorch on this machine, which the platform has to be. KHUB_E_NOMEM. */
int khub__platform_find_torch(khub_platform *platform, khub_error *err);

/* All unknown. KHUB_E_NOMEM. */
int khub__platform_new(khub_platform **out, khub_error *err);

/* Makes `backend` the one that counts and takes the archs of its devices from the list of accelerators.
 * KHUB_E_NOMEM, and nothing has changed. */
int khub__platform_use(khub_platform *platform, const khub__backend *backend, khub__version version,
                       khub_error *err);

/* Makes the libtorch that was found the platform's, and its version what decides. KHUB_E_NOMEM, and nothing
 * has changed. */
struct khub__torch;
int khub__platform_take_torch(khub_platform *platform, const struct khub__torch *torch, khub_error *err);

/* The reason of the libtorch that isn't there because it isn't wanted. */
extern const char khub__torch_left_out[];

/* Puts the facts that decide into words. KHUB_E_NOMEM, also for any request before that the pool refused. */
int khub__platform_finish(khub_platform *platform, khub_error *err);

/* Looks for facts that can't be true together: KHUB_E_FORMAT with `name` and both facts. */
int khub__platform_check(const khub_platform *platform, const char *name, khub_error *err);

/* The accelerator of that backend; NULL when it isn't listed. */
const khub_accelerator_info *khub__platform_accelerator_of(const khub_platform *platform,
                                                           const char *backend);

/* The library of that name; NULL when it isn't listed. */
const khub_library_info *khub__platform_library_of(const khub_platform *platform, const char *name);

/* "absent", "found", "broken". */
const char *khub__presence_name(khub_presence presence);

/* The reverse; NULL is no name. 0, or -1 for another text. */
int khub__presence_parse(khub_presence *out, const char *name);

/* "arm64" of macOS and Windows is "aarch64" in the names of builds, "AMD64" is "x86_64". */
const char *khub__arch_normal(const char *os, const char *arch);

#endif
