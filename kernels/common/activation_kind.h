/* The activation that a linear layer ends in: chosen by the front of a kernel, applied by its loops
 * (activation.h). */
#ifndef KHUB_KERNELS_ACTIVATION_KIND_H
#define KHUB_KERNELS_ACTIVATION_KIND_H

typedef enum activation_kind {
    ACTIVATION_NONE,
    ACTIVATION_GELU,
    ACTIVATION_GELU_TANH,
    ACTIVATION_SILU,
    ACTIVATION_RELU
} activation_kind;

#endif
