/* One value of a call's stack (a StableIValue: 64 bits), by the type that the schema says. */
#ifndef TORCH_STACK_H
#define TORCH_STACK_H

#include "torch/schema.h"

#include <khub/function.h>

/* One place of the stack: what is to be done for its type, looked up once. */
typedef struct khub__stack_slot khub__stack_slot;
struct khub__stack_slot {
    /* Puts an argument on the stack. What it holds is the stack's (khub__stack_drop), until the call takes
     * it. KHUB_E_INVAL: "is an int, a Tensor is expected"; KHUB_E_UNSUPPORTED, KHUB_E_NOMEM. */
    int (*put)(uint64_t *out, const khub__stack_slot *slot, const khub_value *value, khub_error *err);
    /* Takes a result from the stack, also when it fails. *out is None before, and after a failure.
     * KHUB_E_UNSUPPORTED, KHUB_E_NOMEM. */
    int (*take)(khub_value *out, const khub__stack_slot *slot, uint64_t from, khub_error *err);
    const khub__schema_type *type; /* borrowed */
    int wraps;  /* of what the type is wrapped in only the first ones count: those of a list's item are fewer
                 */
    int shares; /* 1: the objects that tensors belong to live as long as libtorch uses them */
    int back;   /* of a result: 1 + the argument that it is, a tensor; 0: none */
};

khub__stack_slot khub__stack_slot_of(const khub__schema_type *type, int shares);

/* As put, the default that the schema has. */
int khub__stack_put_default(uint64_t *out, const khub__stack_slot *slot, const khub__schema *schema,
                            const khub__schema_value *value, khub_error *err);

/* Gives up what is on the stack. */
void khub__stack_drop(const khub__stack_slot *slot, uint64_t from);

#endif
