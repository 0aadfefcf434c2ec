#ifndef TENSOR_ARRAY_H
#define TENSOR_ARRAY_H

#include <khub/npy.h>

/* khub_array_new without zeroing the memory; messages start with `file` unless it is NULL. */
int khub__array_make(khub_array *out, khub_dtype dtype, int32_t ndim, const int64_t *shape, const char *file,
                     khub_error *err);

/* "[2,3]" into `text`, which is returned; extents that don't fit are left out ("[2,…]"). */
const char *khub__shape_text(char text[128], int32_t ndim, const int64_t *shape);

#endif
