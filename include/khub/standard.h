/* The standard implementation of every layer: plain, correct, portable C on a BLAS (libkhub-model). */
#ifndef KHUB_STANDARD_H
#define KHUB_STANDARD_H

#include <khub/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The standard function of a layer of docs/layers.md ("LayerNorm"), arguments in that order. float32 and
 * bfloat16 (computed in float32). Static, any thread at once. KHUB_E_NOTFOUND names the layer. */
KHUB_API int khub_standard(khub_function *out, const char *layer, khub_error *err);

/* Along which axes a standard function may be cut without changing a bit, for khub_slot_slice; how many. 0
 * for those on a BLAS that has threads of its own, and for an unknown layer. Static, any thread. */
KHUB_API size_t khub_standard_axes(const char *layer, const khub_slot_axis **axes);

#ifdef __cplusplus
}
#endif

#endif
