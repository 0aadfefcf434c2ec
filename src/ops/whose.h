/* Whose implementation is the standard one of a layer. */
#ifndef OPS_WHOSE_H
#define OPS_WHOSE_H

#include <khub/kernel.h>
#include <khub/standard.h>

typedef struct khub__standard {
    khub_function function;
    const khub_slot_axis *axes; /* along which it may be cut */
    size_t axis_count;
} khub__standard;

/* Whose the standard functions are. */
typedef struct khub__whose {
    const char *name;  /* "khub", "torch"; NULL: khub */
    const char *torch; /* the folder of its libtorch; NULL: this machine's */
} khub__whose;

/* That, with the libtorch that kernels are had with; `get` may be NULL. */
khub__whose khub__whose_with(const char *name, const khub_get_options *get);

/* "torch" where `whose` is that and PyTorch has the layer, else "khub". Looks at nothing. */
const char *khub__standard_whose(const char *whose, const char *layer);

/* 1: one of PyTorch's operators computes the layer. */
int khub__torch_has_layer(const char *layer);

/* For taking the time: a function of PyTorch's that allocates its result leaves it there, as PyTorch's own
 * callers have it, and doesn't copy it to `out`. Others stay as they are. */
void khub__torch_leave_result(khub_function *f);

/* khub_standard_torch, with the libtorch in the folder `torch` (NULL: this machine's). */
int khub__standard_torch(khub_function *out, const char *layer, const char *torch, khub_error *err);

/* The layer's, of `whose`: khub's own where PyTorch has none, which is logged.
 * Texts and axes are static. KHUB_E_INVAL lists whose there are; khub_standard's and khub_standard_torch's.
 */
int khub__standard_of(khub__standard *out, khub__whose whose, const char *layer, khub_error *err);

#endif
