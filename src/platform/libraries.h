/* Libraries that khub opens at run time: where they are and which version they have, without opening them. */
#ifndef PLATFORM_LIBRARIES_H
#define PLATFORM_LIBRARIES_H

#include "platform/loader.h"
#include "platform/version.h"

#include <khub/platform.h>

/* Where to look. Strings are borrowed; NULL where there is nothing to look at. */
typedef struct khub__places {
    khub__loader loader;
    const char *tvm_ffi;     /* KHUB_TVM_FFI: path of libtvm_ffi */
    const char *torch_dir;   /* KHUB_TORCH_DIR: the package's folder, or that of an unpacked libtorch */
    const char *virtual_env; /* VIRTUAL_ENV */
    const char *site;        /* its site-packages; the pool's */
    const char *beside;      /* the directory of libkhub */
    const char *cuda_home;   /* CUDA_HOME or CUDA_PATH */
    int brief;               /* 1: nobody is told why something isn't there, so it isn't put into words */
} khub__places;

/* The places of this process, files below `root` ("" but in tests). */
void khub__places_open(khub__places *places, const char *root, khub__pool *pool);
void khub__places_close(khub__places *places);

/* VENV/lib/python3.X/site-packages for the highest X; NULL: none. */
const char *khub__site_packages(const char *venv, khub__pool *pool);

/* Says that `file` isn't there, and where it was looked for (not when it is to be brief). */
void khub__library_absent(khub_library_info *out, const char *file, const char *variable,
                          const khub__places *places, khub__pool *pool);

/* Each fills in *out; strings are the pool's. What can't be known is NULL, with the reason. */
void khub__find_tvm_ffi(khub_library_info *out, const khub__places *places, khub__pool *pool);
/* CUDA's runtime, for information: it decides nothing. */
void khub__find_cudart(khub_library_info *out, const khub__places *places, khub__pool *pool);

/* The path of the libtvm_ffi to open: the one that khub_platform_detect reports. *path is the caller's
 * (khub_free). KHUB_E_NOTFOUND with the places looked at, KHUB_E_LOAD when it is there and unusable,
 * KHUB_E_NOMEM. */
int khub__tvm_ffi_path(char **path, khub_error *err);

#endif
