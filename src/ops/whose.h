/* Whose implementation is the standard one of a layer. */
#ifndef OPS_WHOSE_H
#define OPS_WHOSE_H

#include <khub/standard.h>

typedef struct khub__standard {
    khub_function function;
    const khub_slot_axis *axes; /* along which it may be cut */
    size_t axis_count;
    const char *whose; /* "khub", "torch" */
} khub__standard;

/* The layer's, of `whose` ("khub", "torch"; NULL: khub): khub's own where PyTorch has none, which is logged.
 * Texts and axes are static. KHUB_E_INVAL lists whose there are; khub_standard's and khub_standard_torch's.
 */
int khub__standard_of(khub__standard *out, const char *whose, const char *layer, khub_error *err);

#endif
