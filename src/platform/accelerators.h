/* Accelerators: looked for without opening anything, then asked for in a helper process. */
#ifndef PLATFORM_ACCELERATORS_H
#define PLATFORM_ACCELERATORS_H

#include "platform/libraries.h"

enum { KHUB__ACCELERATORS = 7 };

/* Fills in one entry per backend, in the order in which they count: cuda, rocm, metal, xpu, cann,
 * neuron, tpu. `os` as in a
 * platform; `cudart` may be absent.
 * `refresh` 1: no driver's answer is taken from before (remembered.h). Strings are the pool's. */
void khub__find_accelerators(khub_accelerator_info out[KHUB__ACCELERATORS], const char *os,
                             const khub_library_info *cudart, const khub__places *places, uint32_t timeout_ms,
                             int refresh, khub__pool *pool);

#endif
