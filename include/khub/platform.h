/* What a machine is, as data: detected here, or described by a file for a machine one doesn't own. */
#ifndef KHUB_PLATFORM_H
#define KHUB_PLATFORM_H

#include <khub/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct khub_platform khub_platform;

/* Whether something asked for is there. */
typedef enum khub_presence {
    KHUB_ABSENT, /* not there: `reason` says what was looked for and where */
    KHUB_FOUND,  /* there and usable */
    KHUB_BROKEN  /* there and unusable: `reason` has the runtime's words and what to do */
} khub_presence;

/* A library that khub can open at run time. Strings are the platform's; NULL where unknown. */
typedef struct khub_library_info {
    const char *name; /* "libtvm_ffi", "libtorch", "libcudart" (named for information, decides nothing) */
    khub_presence presence;
    const char *version; /* "0.1.16" */
    const char *path;    /* of the library, absolute */
    const char *how;     /* "KHUB_TVM_FFI", "virtual environment", "beside libkhub", "loader's path" */
    const char *reason;  /* when KHUB_FOUND: a remark, or NULL */
} khub_library_info;

/* One device of an accelerator. */
typedef struct khub_device_info {
    const char *name;
    const char *arch;      /* "9.0", "gfx942:sramecc+:xnack-", ...; NULL: unknown */
    uint64_t memory_bytes; /* 0: unknown */
    const char *uuid;      /* as masks take it: "GPU-8932f937-...", "MIG-..."; NULL: unknown */
    int integrated;        /* 1: inside the CPU */
} khub_device_info;

/* One kind of accelerator, asked for in a helper process. */
typedef struct khub_accelerator_info {
    const char *backend; /* "cuda", "rocm", "metal", "xpu", "cann", "neuron", "tpu" */
    khub_presence presence;
    const char *version; /* that builds are named after: "12.8"; NULL: unknown */
    const char *path;    /* of the driver library that was asked */
    const char *reason;  /* when KHUB_FOUND: a remark, or NULL */
    const khub_device_info *devices;
    size_t device_count;
} khub_accelerator_info;

typedef struct khub_platform_options {
    size_t struct_size;        /* set by KHUB_INIT */
    uint32_t probe_timeout_ms; /* for each driver library asked; 0: 5,000 */
    int no_accelerators;       /* not 0: don't look for any; the backend is "cpu" */
    int refresh;               /* not 0: ask drivers that have answered since the machine started, too */
} khub_platform_options;

/* Looks at this machine. No accelerator library is opened in this process, nothing is executed to find
 * out except khub's own probe. `options` may be NULL. Any thread. *out is the caller's.
 * KHUB_E_INVAL (options), KHUB_E_NOMEM; what can't be found out is a fact in the result, not an error. */
KHUB_API int khub_platform_detect(khub_platform **out, const khub_platform_options *options, khub_error *err);

/* Reads a platform file (JSON, at most 1 MiB): as short as the fields that decide, see docs/platform.md.
 * Fields that are left out are unknown; an unknown field is a warning in the log, a contradiction an error.
 * KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_FORMAT (file, field, fact), KHUB_E_NOMEM. */
KHUB_API int khub_platform_read(khub_platform **out, const char *path, khub_error *err);

/* The same from text; `name` stands for the file in messages. */
KHUB_API int khub_platform_parse(khub_platform **out, const char *json, size_t length, const char *name,
                                 khub_error *err);

/* The platforms of well-known machines that come with khub, share/khub/platforms/NAME.json: reads the one
 * called `name` ("h100"). KHUB_E_NOTFOUND lists them, or names the nearest; else as khub_platform_read. */
KHUB_API int khub_platform_known(khub_platform **out, const char *name, khub_error *err);

/* Their names, sorted. One allocation, freed with khub_free; NULL after a failure, KHUB_E_NOTFOUND (khub is
 * installed without them), KHUB_E_IO, KHUB_E_NOMEM. */
KHUB_API int khub_platform_known_names(char ***names, size_t *count, khub_error *err);

/* As JSON that khub_platform_parse reads back to an equal platform; freed with khub_free. NULL: no memory. */
KHUB_API char *khub_platform_json(const khub_platform *platform);

KHUB_API void khub_platform_free(khub_platform *platform); /* NULL is a no-op */

/* Narrows the platform to one of its backends: "cpu" always, else one it has, by its name ("cuda") or with
 * its version ("cu128"), or to one device of it: "cuda:1" is the second one that is visible. KHUB_E_INVAL
 * lists the backends of this machine, or says how many devices there are. KHUB_E_NOMEM. After a failure the
 * platform is as before. */
KHUB_API int khub_platform_select(khub_platform *platform, const char *backend, khub_error *err);

/* Makes the libtorch of a folder of this machine, that of the Python package or of an unpacked libtorch
 * (lib/libtorch_cpu.so is in it), the one that kernels of Torch are called through, whatever else is in
 * reach; NULL: none is, and no build of Torch fits. KHUB_E_LOAD says why it can't be called
 * (docs/platform.md), KHUB_E_NOMEM. After a failure the platform is as before. */
KHUB_API int khub_platform_use_torch(khub_platform *platform, const char *dir, khub_error *err);

/* Facts. Strings are the platform's, valid until it is freed; NULL where unknown. */
/* Which machine it is, for people, where its file says so: "NVIDIA H100 (Hopper), driver of CUDA 13.0". */
KHUB_API const char *khub_platform_about(const khub_platform *platform);
KHUB_API const char *khub_platform_os(const khub_platform *platform);   /* "linux" */
KHUB_API const char *khub_platform_arch(const khub_platform *platform); /* "x86_64" */
/* The backend that counts, as builds are named: "cu128", "cpu"; its name alone ("xpu") when its version is
 * unknown. */
KHUB_API const char *khub_platform_backend(const khub_platform *platform);
/* Architecture of the backend's devices that count, each once; NULL past the last. Those inside the CPU count
 * where there are no others. */
KHUB_API const char *khub_platform_device_arch(const khub_platform *platform, size_t i); /* "9.0", "gfx942" */
/* Versions that decide which builds fit. Torch's is that of a libtorch that can be called (docs/platform.md);
 * of one that can't khub_platform_library has the reason. */
KHUB_API const char *khub_platform_tvm_ffi(const khub_platform *platform); /* "0.1.15" */
KHUB_API const char *khub_platform_torch(const khub_platform *platform);   /* "2.10" */
KHUB_API const char *khub_platform_macos(const khub_platform *platform);   /* "26.1" */
KHUB_API const char *khub_platform_cpu_model(const khub_platform *platform);
KHUB_API const char *khub_platform_glibc(const khub_platform *platform); /* "2.36" */
/* Logical processors that the machine has switched on; 0: unknown. */
KHUB_API unsigned khub_platform_cores(const khub_platform *platform);
/* Threads worth running: affinity mask and cgroup quota (rounded up) considered; 0: unknown. */
KHUB_API unsigned khub_platform_threads(const khub_platform *platform);
/* What keeps the threads below the cores: "cgroup quota of 1.5 cores"; NULL: nothing, or unknown. */
KHUB_API const char *khub_platform_threads_reason(const khub_platform *platform);
/* Size of the data cache of level 1, 2 or 3, as one core sees it; 0: unknown. */
KHUB_API uint64_t khub_platform_cache_bytes(const khub_platform *platform, int level);
/* The i-th CPU feature that the CPU has and the system has switched on ("avx2", "fma", "f16c", "avx512f",
 * "amx-bf16", "neon", "sve", ...); NULL past the last. */
KHUB_API const char *khub_platform_feature(const khub_platform *platform, size_t i);
/* 1 when it has the feature. */
KHUB_API int khub_platform_has(const khub_platform *platform, const char *feature);
/* NULL past the last. */
KHUB_API const khub_library_info *khub_platform_library(const khub_platform *platform, size_t i);
KHUB_API const khub_accelerator_info *khub_platform_accelerator(const khub_platform *platform, size_t i);

#ifdef __cplusplus
}
#endif

#endif
