/* Turning a bound weight into the form that a kernel wants in its place (docs/layers.md, "How a weight is
 * prepared"). */
#ifndef LAYER_PREPARE_H
#define LAYER_PREPARE_H

#include <khub/npy.h>

#include <khub/function.h>

/* Asks `function` for the prepared tensor's shape, makes it and has it filled. `name` ("KERNEL:FUNCTION")
 * starts the messages. *out is the caller's (khub_array_free). KHUB_E_KERNEL (its words, or a shape that
 * makes no sense), KHUB_E_INVAL (a dtype without a size), KHUB_E_NOMEM. */
int khub__prepare(khub_array *out, const khub_function *function, const char *name,
                  const khub_tensor *original, khub_error *err);

#endif
