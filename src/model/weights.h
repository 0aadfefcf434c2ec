/* A model's weights: its tensors by the names that Transformers gives them, as float32. */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include "model/checkpoint.h"

/* The weights of one model. {0} is closed. */
typedef struct khub__weights {
    khub__checkpoint checkpoint;
    const char *prefix; /* in front of each name: "" or "bert." */
    float **converted;  /* what wasn't float32 and aligned, owned */
    size_t count, capacity;
} khub__weights;

/* Opens the checkpoint in DIRECTORY. `known` is a tensor that every model of the kind has; it tells whether
 * names have a prefix. Failures as khub__checkpoint_open's. */
int khub__weights_open(khub__weights *out, const char *directory, const char *known, khub_error *err);
void khub__weights_close(khub__weights *weights); /* zeroed is a no-op */

/* Finds a tensor and checks its shape. KHUB_E_FORMAT: missing, or of another shape (both shapes).
 * KHUB_E_UNSUPPORTED: a type other than F32, F16, BF16. */
int khub__weights_find(const khub__stored **out, const khub__weights *weights, const char *name, int32_t ndim,
                       const int64_t *shape, khub_error *err);

/* The same as float32, in its file's mapping where that is what it holds; valid until close. */
int khub__weights_get(khub_tensor *out, khub__weights *weights, const char *name, int32_t ndim,
                      const int64_t *shape, khub_error *err);

/* Whether khub__weights_get would give the tensor as it lies in its file. */
int khub__stored_are_floats(const khub__stored *stored);

/* Elements [from, from + count) of a tensor that khub__weights_find found. */
void khub__stored_floats(float *out, const khub__stored *stored, int64_t from, int64_t count);

/* The file that holds such a tensor. */
const char *khub__weights_path(const khub__weights *weights, const khub__stored *stored);

#endif
