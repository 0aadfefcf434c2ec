/* The libtorch that kernels can be called through: which one, its version and C++ ABI, whether all is there
 * that opening it needs, and what that would cost. Nothing of it is opened. */
#ifndef PLATFORM_TORCH_H
#define PLATFORM_TORCH_H

#include "platform/libraries.h"

typedef struct khub__torch {
    khub_library_info info;       /* KHUB_FOUND: khub can call it; strings are the pool's */
    khub__version version;        /* unknown unless it can be called */
    int cxx11_abi;                /* 1, 0, -1: unknown */
    const khub__backend *backend; /* beside the CPU, that it was built for; "cpu": none; NULL: unknown */
    khub__version backend_version;
} khub__torch;

/* Whether all is there that a kernel of that backend (NULL: unknown) needs besides; else it is a libtorch for
 * the CPU, which the remark says. */
void khub__torch_check_backend(khub__torch *torch, const khub__backend *backend, const khub__places *places,
                               khub__pool *pool);

/* None, with nothing known. */
void khub__torch_unknown(khub__torch *out);

/* The one that the process has already, else that of KHUB_TORCH_DIR, else the first usable one of the active
 * virtual environment, beside libkhub, in the loader's path. */
void khub__find_torch(khub__torch *out, const khub__places *places, khub__pool *pool);

/* The one of a folder, of the Python package or of an unpacked libtorch, and no other, for kernels of the CPU
 * and of `backend`; broken where the process has another one. */
void khub__torch_of(khub__torch *out, const char *dir, const khub__backend *backend, khub__pool *pool);

#endif
