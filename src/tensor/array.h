#ifndef TENSOR_ARRAY_H
#define TENSOR_ARRAY_H

#include <khub/npy.h>

/* khub_array_new without zeroing the memory; messages start with `file` unless it is NULL. */
int khub__array_make(khub_array *out, khub_dtype dtype, int32_t ndim, const int64_t *shape, const char *file,
                     khub_error *err);

/* The same without the memory, of which *bytes are needed: khub__array_take, or the caller's own in
 * tensor.data, which khub_array_free leaves alone. */
int khub__array_describe(khub_array *out, int64_t *bytes, khub_dtype dtype, int32_t ndim,
                         const int64_t *shape, const char *file, khub_error *err);

/* 0: no memory. */
int khub__array_take(khub_array *array, int64_t bytes);

/* What there is to say when the memory can't be had; zeroes the array. */
int khub__array_no_memory(khub_array *array, const char *file, khub_error *err);

/* "[2,3]" into `text`, which is returned; extents that don't fit are left out ("[2,…]"). */
const char *khub__shape_text(char text[128], int32_t ndim, const int64_t *shape);

#endif
