/* Shapes that are known of a slot's calls before they are made, and whether a kernel takes them. */
#ifndef LAYER_SHAPES_H
#define LAYER_SHAPES_H

#include "layer/slot.h"

/* Copies what the options say of a slot's shapes. KHUB_E_INVAL: an argument that the layer doesn't have or
 * that is no tensor, one said twice, a shape that can't be; KHUB_E_NOMEM. */
int khub__shapes_take(khub_slot *slot, const khub_slot_options *options, khub_error *err);

/* KHUB_E_INVAL: the slot was said to have this argument in another shape. */
int khub__shapes_agree(const khub_slot *slot, int32_t arg, const khub_tensor *tensor, khub_error *err);

/* KHUB_E_UNSUPPORTED: an extent that is known of the slot isn't one that the kernel's function takes.
 * KHUB_E_FORMAT: the rule names an argument that the layer doesn't have. */
int khub__shapes_fit(const khub_layer_spec *spec, const char *kernel, const khub_slot *slot, khub_error *err);

#endif
