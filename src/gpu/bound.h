/* A kernel's function with the device that it is called on, as one function: what a slot has of it. */
#ifndef GPU_BOUND_H
#define GPU_BOUND_H

#include <khub/gpu.h>

/* Don't copy what is in use. */
typedef struct khub__gpu_bound {
    khub_gpu *gpu; /* borrowed */
    khub_function function;
    char what[256]; /* "ORG/NAME:FUNCTION" */
} khub__gpu_bound;

/* khub_gpu_call of it; as long as *bound. */
khub_function khub__gpu_bound_function(khub__gpu_bound *bound);

/* Whether the kernel's build can be called on the device. KHUB_E_UNSUPPORTED: it is for another backend. */
int khub__gpu_takes(const khub_gpu *gpu, const khub_kernel *kernel, khub_error *err);

#endif
