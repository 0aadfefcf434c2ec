#include "tensor/array.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector that a kernel loads */

const char *khub__shape_text(char text[128], int32_t ndim, const int64_t *shape)
{
    int n = 1;
    int32_t i = 0;
    memcpy(text, "[", 2);
    for (; i < ndim && n < 100; i++) /* an extent has 20 characters at most, and "," and "]" must fit */
        n += snprintf(text + n, 128 - (size_t)n, "%s%lld", i ? "," : "", (long long)shape[i]);
    snprintf(text + n, 128 - (size_t)n, "%s]", i < ndim ? ",..." : "");
    return text;
}

static int take_memory(khub_array *array, int64_t bytes)
{
    if (bytes == 0) return 1; /* DLPack: no elements, no pointer */
    if ((uint64_t)bytes > SIZE_MAX - ALIGNMENT) return 0;
    array->memory = khub__malloc((size_t)bytes + ALIGNMENT - 1);
    if (!array->memory) return 0;
    uintptr_t at = (uintptr_t)array->memory;
    array->tensor.data = (char *)array->memory + (ALIGNMENT - at % ALIGNMENT) % ALIGNMENT;
    return 1;
}

int khub__array_make(khub_array *out, khub_dtype dtype, int32_t ndim, const int64_t *shape, const char *what,
                     khub_error *err)
{
    memset(out, 0, sizeof(*out));
    char name[32], extents[128];
    if (ndim < 0 || ndim > KHUB_MAX_NDIM)
        return khub__fail(err, KHUB_E_INVAL, "%s: has %d dimensions, 0 to %d are possible", what, (int)ndim,
                          KHUB_MAX_NDIM);
    if (dtype.bits == 0 || dtype.lanes == 0)
        return khub__fail(err, KHUB_E_INVAL, "%s: its dtype has no size (%s)", what,
                          khub_dtype_name(dtype, name));
    out->tensor = khub_tensor_over(NULL, dtype, ndim, out->shape);
    if (ndim > 0) memcpy(out->shape, shape, (size_t)ndim * sizeof(*shape));
    int64_t bytes = khub_tensor_bytes(&out->tensor);
    int rc = KHUB_OK;
    if (bytes < 0)
        rc = khub__fail(err, KHUB_E_INVAL, "%s: %s%s has a negative extent or more than 2^63 bytes", what,
                        khub_dtype_name(dtype, name), khub__shape_text(extents, ndim, out->shape));
    else if (!take_memory(out, bytes))
        rc = khub__fail(err, KHUB_E_NOMEM, "%s: out of memory: %s%s takes %lld bytes", what,
                        khub_dtype_name(dtype, name), khub__shape_text(extents, ndim, out->shape),
                        (long long)bytes);
    if (rc != KHUB_OK) memset(out, 0, sizeof(*out));
    return rc;
}

int khub_array_new(khub_array *out, khub_dtype dtype, int32_t ndim, const int64_t *shape, khub_error *err)
{
    int rc = khub__array_make(out, dtype, ndim, shape, "array", err);
    if (rc == KHUB_OK && out->tensor.data)
        memset(out->tensor.data, 0, (size_t)khub_tensor_bytes(&out->tensor));
    return rc;
}

void khub_array_free(khub_array *array)
{
    if (!array) return;
    khub__free(array->memory);
    memset(array, 0, sizeof(*array));
}
