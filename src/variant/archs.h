/* Does a build hold code for this machine's GPU? metadata.json lists what it was compiled for. */
#ifndef VARIANT_ARCHS_H
#define VARIANT_ARCHS_H

#include "variant/decide.h"

typedef enum khub__arch_fit { KHUB__ARCH_OTHER, KHUB__ARCH_FITS, KHUB__ARCH_UNREADABLE } khub__arch_fit;

/* An AMD architecture: gfx90a is 9, 0, 0xa. */
typedef struct khub__gfx {
    int major, minor, step;
    const char *features; /* ":sramecc+:xnack-", inside the text that was parsed, or "" */
} khub__gfx;

/* 1, or 0 for a text that isn't an AMD architecture. */
int khub__gfx_parse(khub__gfx *out, const char *text);

/* Whether one entry of a CUDA build's list runs on a device of that compute capability. `device` is
 * well-formed. */
khub__arch_fit khub__cuda_arch_fits(const char *entry, const char *device);

/* The same for ROCm. */
khub__arch_fit khub__rocm_arch_fits(const char *entry, const char *device);

/* 1 for the backends whose builds list architectures. */
int khub__archs_matter(const khub__backend *backend);

/* Looks at the entries of a build that fits by its name; keeps the verdict, adds a remark, or rejects. It
 * has to run on each of the machine's devices that count. */
void khub__archs_decide(khub__verdict *verdict, const khub__variant_name *name, const khub_platform *platform,
                        const char *const *entries, size_t count);

#endif
