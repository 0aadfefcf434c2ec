/* Whether two tensors share memory. */
#ifndef KHUB_KERNELS_OVERLAP_H
#define KHUB_KERNELS_OVERLAP_H

#include "ffi.h"

/* Every element of one is the same element of the other; both have the same shape and dtype. */
int khub__same_memory(const DLTensor *a, const DLTensor *b);

/* 1: a byte belongs to both. 0: none does, or it would take too long to tell (tensors woven into each other
 * with different strides): a call that is right is never refused. At most KHUB__MAX_AXES axes, checked
 * shapes. */
int khub__overlap(const DLTensor *a, const DLTensor *b);

#endif
