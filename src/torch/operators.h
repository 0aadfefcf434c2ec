/* The operators that libtorch's dispatcher knows, with their schemas. libtorch is open (torch/torch.h). */
#ifndef TORCH_OPERATORS_H
#define TORCH_OPERATORS_H

#include <khub/error.h>

/* One operator. The process's: it lives for good and is the same for all that ask. */
typedef struct khub__torch_operator khub__torch_operator;

/* Those of a namespace ("aten"; of a kernel: its metadata's id), by name in byte order. Those without a
 * schema are left out. The list is the caller's (khub__free); NULL and 0 when there are none. Any thread.
 * KHUB_E_FORMAT: a schema that isn't understood, KHUB_E_NOMEM. */
int khub__torch_operators(const khub__torch_operator ***out, size_t *count, const char *ns, khub_error *err);

/* One by its name ("silu", "silu.out"). KHUB_E_NOTFOUND lists what overloads there are. */
int khub__torch_operator_find(const khub__torch_operator **out, const char *ns, const char *name,
                              khub_error *err);

const char *khub__torch_operator_name(const khub__torch_operator *op);   /* "silu.out" */
const char *khub__torch_operator_schema(const khub__torch_operator *op); /* "aten::silu.out(Tensor self, …" */

/* Why it can't be called from C; NULL: it can. */
const char *khub__torch_operator_refusal(const khub__torch_operator *op);

/* 1: it has code for this dispatch key ("CPU", "CUDA", "CompositeImplicitAutograd"). */
int khub__torch_operator_has(const khub__torch_operator *op, const char *key);

#endif
