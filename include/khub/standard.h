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

/* PyTorch's operators as a layer's standard function, where libtorch is (docs/torch.md): opened now if it
 * isn't yet. The same arguments; its own arithmetic, rounding and threads, so that a call isn't cut. Static,
 * any thread at once. KHUB_E_NOTFOUND: no such layer, or PyTorch has nothing for it that can be called from C
 * (Add, layers that add, rotary_pos_emb); KHUB_E_LOAD: libtorch isn't there or can't be loaded;
 * KHUB_E_UNSUPPORTED: it is too old; KHUB_E_NOMEM. */
KHUB_API int khub_standard_torch(khub_function *out, const char *layer, khub_error *err);

/* Along which axes khub_standard's function may be cut without changing a bit, for khub_slot_slice; how many.
 * 0 for those on a BLAS that has threads of its own, and for an unknown layer. Static, any thread. */
KHUB_API size_t khub_standard_axes(const char *layer, const khub_slot_axis **axes);

#ifdef __cplusplus
}
#endif

#endif
