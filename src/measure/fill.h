/* Numbers for tensors whose values don't matter. */
#ifndef MEASURE_FILL_H
#define MEASURE_FILL_H

#include <khub/tensor.h>

/* Fills a compact CPU tensor: floats evenly spread over (-1, 1), integers and bools 0 or 1; the same ones on
 * every machine. Another dtype (complex, sub-byte): bytes of 0. */
void khub__fill(const khub_tensor *tensor);

#endif
