/* Whose implementation is the standard one of a layer. */
#ifndef OPS_WHOSE_H
#define OPS_WHOSE_H

#include <khub/standard.h>

typedef struct khub__standard {
    khub_function function;
    const khub_slot_axis *axes; /* along which it may be cut */
    size_t axis_count;
} khub__standard;

/* "torch" where `whose` is that and PyTorch has the layer, else "khub". Looks at nothing. */
const char *khub__standard_whose(const char *whose, const char *layer);

/* 1: one of PyTorch's operators computes the layer. */
int khub__torch_has_layer(const char *layer);

/* For taking the time: a function of PyTorch's that allocates its result leaves it there, as PyTorch's own
 * callers have it, and doesn't copy it to `out`. Others stay as they are. */
void khub__torch_leave_result(khub_function *f);

/* The layer's, of `whose` ("khub", "torch"; NULL: khub): khub's own where PyTorch has none, which is logged.
 * Texts and axes are static. KHUB_E_INVAL lists whose there are; khub_standard's and khub_standard_torch's.
 */
int khub__standard_of(khub__standard *out, const char *whose, const char *layer, khub_error *err);

#endif
