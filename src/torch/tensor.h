/* Tensors on their way into libtorch and back. */
#ifndef TORCH_TENSOR_H
#define TORCH_TENSOR_H

#include "torch/shim.h"

#include <khub/function.h>

/* A tensor of libtorch's over the memory of `t`, at most 64 dimensions, strides of at least 0. With `owner`
 * (a counted object that the memory belongs to, NULL: nobody's) the memory stays as long as anything of
 * libtorch uses it. *out is the caller's (khub__shim.delete_tensor). Fails with KHUB_E_INVAL,
 * KHUB_E_UNSUPPORTED. */
int khub__torch_tensor_wrap(khub__aten_tensor **out, const khub_tensor *t, void *owner, khub_error *err);

/* Takes a tensor of libtorch's, also when it fails: a KHUB_TYPE_TENSOR that owns it; None for one that is
 * undefined. `is_view` 1: it lies in an argument's memory. KHUB_E_UNSUPPORTED (sparse, an unknown dtype or
 * device), KHUB_E_NOMEM. */
int khub__torch_tensor_give(khub_value *out, khub__aten_tensor *tensor, int is_view, khub_error *err);

/* As khub__torch_tensor_give, for a result that the schema says is this argument: where it has the argument's
 * memory and dtype, less is asked. */
int khub__torch_tensor_give_back(khub_value *out, khub__aten_tensor *tensor, const khub_tensor *argument,
                                 khub_error *err);

#endif
