/* A guarded tensor in the memory of a GPU: the same bytes around it, at the same alignment. A kernel is given
 * this one; what it left comes back to the host, and is looked at there. */
#ifndef MEASURE_MIRROR_H
#define MEASURE_MIRROR_H

#include "measure/guarded.h"

#include <khub/gpu.h>

/* Don't copy: the tensor's shape is that of the guarded one, which must stay. Zeroed: nothing. */
typedef struct khub__mirror {
    khub_gpu_array memory; /* the whole region of the guarded one */
    khub_tensor tensor;
} khub__mirror;

/* Unlocks *of. *out is freed by the caller whatever happens. As khub_gpu_array_new. */
int khub__mirror_new(khub__mirror *out, khub_gpu *gpu, khub__guarded *of, khub_error *err);
void khub__mirror_free(khub__mirror *mirror);

/* Everything, to the device and back, on its stream. As khub_gpu_put. */
int khub__mirror_put(const khub__mirror *mirror, const khub__guarded *of, khub_error *err);
int khub__mirror_take(const khub__mirror *mirror, khub__guarded *of, khub_error *err);

#endif
