/* The arguments of one call of a case, each in memory of its own between guards. */
#ifndef MEASURE_ARGUMENTS_H
#define MEASURE_ARGUMENTS_H

#include "measure/cases.h"
#include "measure/mirror.h"

/* By position in the layer's order. Don't copy. Zeroed: nothing. */
typedef struct khub__arguments {
    const khub__case *c;
    khub_gpu *gpu; /* borrowed: whose memory the values are in; NULL: the host's */
    khub__guarded buffers[KHUB__MAX_ARGS];
    khub__mirror mirrors[KHUB__MAX_ARGS];
    khub_value values[KHUB__MAX_ARGS];
    int32_t prepared; /* position of an argument that stands in a kernel's own form; -1: none */
} khub__arguments;

/* Places all tensors; inputs are copied from `in` (compact, by position). *out is freed by the caller
 * whatever happens. KHUB_E_NOMEM, and those of khub_gpu_array_new. */
int khub__arguments_new(khub__arguments *out, const khub__case *c, void *const *in, khub__placement placement,
                        khub_gpu *gpu, khub_error *err);
void khub__arguments_free(khub__arguments *arguments);

/* Puts a kernel's own form of an argument (compact, 64-byte aligned for the kernel) in its place. */
int khub__arguments_prepare(khub__arguments *arguments, int32_t at, const khub_tensor *prepared,
                            khub__placement placement, khub_error *err);

/* Around a call: what it is given goes to the device, and what it left comes back, once all is done. Without
 * a device nothing. As khub_gpu_put and khub_gpu_synchronize. */
int khub__arguments_put(khub__arguments *arguments, khub_error *err);
int khub__arguments_take(khub__arguments *arguments, khub_error *err);

/* From now on a write to an input faults, as it would where a weight is a file's page. */
void khub__arguments_freeze(khub__arguments *arguments);

/* What a call left: 1 when every byte beside the elements is as it was. 0: *at is an argument and *offset the
 * byte. */
int khub__arguments_are_intact(const khub__arguments *arguments, int32_t *at, int64_t *offset);
/* 1 when the inputs hold what `in` does. 0: *at is one that doesn't, from element *index on. The prepared
 * argument is looked at with what `prepared` (compact; may be NULL) holds. `scratch` has room for the
 * largest. */
int khub__arguments_are_unchanged(const khub__arguments *arguments, void *const *in,
                                  const khub_tensor *prepared, void *scratch, int32_t *at, int64_t *index);

#endif
