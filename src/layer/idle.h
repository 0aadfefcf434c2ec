/* Keys of a mapping that somebody wrote and that take no slot. */
#ifndef LAYER_IDLE_H
#define LAYER_IDLE_H

#include "layer/decision.h"

/* Calls `tell` for each key that names a kernel, takes none of the slots and isn't one of the default
 * mapping's, in the mapping's order, with the reason: "no slot is of this layer", "none of the 6 slots of
 * GeLU has such a path, as encoder.layer.3.act has", which is the path most like the pattern. `why` lasts for
 * the call. */
void khub__idle_keys(const khub__decision *d,
                     void (*tell)(void *to, const khub__mapped *mapped, const char *why), void *to);

#endif
