/* Calling an operator as any other function. */
#ifndef TORCH_CALL_H
#define TORCH_CALL_H

#include "torch/operators.h"

#include <khub/function.h>

/* A khub_call_fn; `self` is a khub__torch_operator. Arguments in the schema's order, those behind "*" too;
 * what is left out at the end has its default. A result is None, one value, or an array of several. Autograd
 * is off while it runs. Any thread. docs/torch.md says which values stand for which types. */
int khub__torch_call(void *self, const khub_value *args, int32_t n, khub_value *result);

#endif
