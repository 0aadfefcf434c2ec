/* Shadow mode of one slot. */
#ifndef LAYER_SHADOW_H
#define LAYER_SHADOW_H

#include "layer/slot.h"

struct khub__shadow {
    khub_filling filling; /* runs both functions; its kernel is the slot's at the moment of a call */
    int on;
    atomic_flag taken; /* guards `sum` */
    khub_shadow sum;
};

/* What a slot with this kernel calls: the shadow's own filling, or the kernel while it is off. */
static inline const khub_filling *khub__shadow_filling(const khub__shadow *shadow, const khub_filling *kernel)
{
    return shadow->on ? &shadow->filling : kernel;
}

#endif
