/* One value of a call's stack (a StableIValue: 64 bits), by the type that the schema says. */
#ifndef TORCH_STACK_H
#define TORCH_STACK_H

#include "torch/schema.h"

#include <khub/function.h>

/* Puts an argument on the stack. What it holds is the stack's (khub__stack_drop), until the call takes it.
 * With `shares` 1 the objects that tensors belong to live as long as libtorch uses them. KHUB_E_INVAL: "is an
 * int, a Tensor is expected"; KHUB_E_UNSUPPORTED, KHUB_E_NOMEM. */
int khub__stack_put(uint64_t *out, const khub__schema_type *type, const khub_value *value, int shares,
                    khub_error *err);

/* The same for the default that a schema has. */
int khub__stack_put_default(uint64_t *out, const khub__schema *schema, const khub__schema_argument *argument,
                            khub_error *err);

/* Takes a result from the stack, also when it fails. KHUB_E_UNSUPPORTED, KHUB_E_NOMEM. */
int khub__stack_take(khub_value *out, const khub__schema_type *type, uint64_t from, khub_error *err);

/* Gives up what is on the stack. */
void khub__stack_drop(const khub__schema_type *type, uint64_t from);

#endif
