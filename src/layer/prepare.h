/* Turning a bound weight into the form that a kernel wants in its place (docs/layers.md, "How a weight is
 * prepared"). */
#ifndef LAYER_PREPARE_H
#define LAYER_PREPARE_H

#include "layer/shelf.h"

#include <khub/npy.h>

#include <khub/gpu.h>

typedef struct khub__prepared {
    khub_array array;
    khub__shelf *on;      /* where it lies, counted; NULL: in memory of its own */
    khub_gpu_array there; /* that memory, on a device; then `array` has none */
} khub__prepared;

/* On `gpu` (NULL: on the host): asks `function` for the prepared tensor's shape, makes it, on *last if it is
 * large (khub__shelf_take), and has it filled, and waits for that. `name` ("KERNEL:FUNCTION") starts the
 * messages. *out is the caller's (khub__prepared_free). KHUB_E_KERNEL (its words, or a shape that makes no
 * sense), KHUB_E_INVAL (a dtype without a size), KHUB_E_NOMEM. */
int khub__prepare(khub__prepared *out, khub__shelf **last, khub_gpu *gpu, const khub_function *function,
                  const char *name, const khub_tensor *original, khub_error *err);
void khub__prepared_free(khub__prepared *prepared); /* zeroed is a no-op */

#endif
