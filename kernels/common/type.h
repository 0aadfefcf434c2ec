/* How elements lie in memory; always a constant where it matters. */
#ifndef KHUB_KERNELS_TYPE_H
#define KHUB_KERNELS_TYPE_H

enum { F32 = 0, BF16 = 1, F16 = 2 /* on GPUs alone */, TYPES };
#define ELEMENT_BYTES(type) ((type) == F32 ? 4 : 2)

#endif
