/* How much one call of a layer has to do, whoever does it. */
#ifndef MEASURE_WORK_H
#define MEASURE_WORK_H

#include <khub/function.h>

typedef struct khub__work {
    double bytes; /* every tensor once, read or written */
    double flops; /* 0: unknown */
} khub__work;

/* Bytes of all tensors among the arguments of any call. */
double khub__bytes_of(const khub_value *args, int32_t n);

/* The work of a call of `layer` with its n arguments, in the layer's order, of shapes that fit together. An
 * unknown layer has unknown flops. */
khub__work khub__work_of(const char *layer, const khub_value *args, int32_t n);

#endif
