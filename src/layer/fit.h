/* Whether and how a kernel's function serves a slot. */
#ifndef LAYER_FIT_H
#define LAYER_FIT_H

#include "layer/slot.h"

/* Makes the filling of `slot` from what the kernel says of the layer: checks dtype and argument names, finds
 * the function, prepares the bound weight. `name` is the kernel's for messages, borrowed as long as the
 * filling lives. *out is the caller's. Any error is a reason for the slot to stay as it is; KHUB_E_NOMEM is
 * one too. */
int khub__fit(khub_filling **out, const khub_slot *slot, const khub_layer_spec *spec,
              const khub_kernel *kernel, const char *name, khub_error *err);

#endif
