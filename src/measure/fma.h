/* Multiply-adds in registers. */
#ifndef MEASURE_FMA_H
#define MEASURE_FMA_H

#include <stdint.h>

/* The widest way this processor has. `run` does `flops` operations and returns what keeps a compiler from
 * leaving them out. */
typedef struct khub__fma {
    const char *isa;
    float (*run)(float factor, float term);
    double flops;
} khub__fma;

/* Static. */
const khub__fma *khub__fma_best(void);

#endif
