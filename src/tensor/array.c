#include "tensor/array.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>

enum { TEXT_MAX = 1024 };
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

int khub__array_take(khub_array *array, int64_t bytes)
{
    if (bytes == 0) return 1; /* DLPack: no elements, no pointer */
    if ((uint64_t)bytes > SIZE_MAX - ALIGNMENT) return 0;
    array->memory = khub__malloc((size_t)bytes + ALIGNMENT - 1);
    if (!array->memory) return 0;
    uintptr_t at = (uintptr_t)array->memory;
    array->tensor.data = (char *)array->memory + (ALIGNMENT - at % ALIGNMENT) % ALIGNMENT;
    return 1;
}

/* "FILE: float32[2,3]", or without the file. */
static void name_array(char text[TEXT_MAX], const khub_array *array, const char *file)
{
    char dtype[32], extents[128];
    const khub_tensor *t = &array->tensor;
    snprintf(text, TEXT_MAX, "%s%s%s%s", file ? file : "", file ? ": " : "", khub_dtype_name(t->dtype, dtype),
             khub__shape_text(extents, t->ndim, t->shape));
}

int khub__array_describe(khub_array *out, int64_t *bytes, khub_dtype dtype, int32_t ndim,
                         const int64_t *shape, const char *file, khub_error *err)
{
    char text[TEXT_MAX];
    memset(out, 0, sizeof(*out));
    if (ndim < 0 || ndim > KHUB_MAX_NDIM)
        return khub__fail(err, KHUB_E_INVAL, "an array of %d dimensions: 0 to %d are possible", (int)ndim,
                          KHUB_MAX_NDIM);
    out->tensor = khub_tensor_over(NULL, dtype, ndim, out->shape);
    if (ndim > 0) memcpy(out->shape, shape, (size_t)ndim * sizeof(*shape));
    name_array(text, out, file);
    *bytes = khub_tensor_bytes(&out->tensor);
    int rc = KHUB_OK;
    if (dtype.bits == 0 || dtype.lanes == 0)
        rc = khub__fail(err, KHUB_E_INVAL, "%s: the dtype has no size", text);
    else if (*bytes < 0)
        rc = khub__fail(err, KHUB_E_INVAL, "%s: a negative extent, or more than 2^63 bytes", text);
    if (rc != KHUB_OK) memset(out, 0, sizeof(*out));
    return rc;
}

int khub__array_no_memory(khub_array *array, const char *file, khub_error *err)
{
    char text[TEXT_MAX];
    name_array(text, array, file);
    long long bytes = khub_tensor_bytes(&array->tensor);
    memset(array, 0, sizeof(*array));
    return khub__fail(err, KHUB_E_NOMEM, "%s: out of memory for %lld bytes", text, bytes);
}

int khub__array_make(khub_array *out, khub_dtype dtype, int32_t ndim, const int64_t *shape, const char *file,
                     khub_error *err)
{
    int64_t bytes;
    int rc = khub__array_describe(out, &bytes, dtype, ndim, shape, file, err);
    if (rc != KHUB_OK) return rc;
    return khub__array_take(out, bytes) ? KHUB_OK : khub__array_no_memory(out, file, err);
}

int khub_array_new(khub_array *out, khub_dtype dtype, int32_t ndim, const int64_t *shape, khub_error *err)
{
    int rc = khub__given("khub_array_new", out && (shape || ndim < 1), err);
    if (rc == KHUB_OK) rc = khub__array_make(out, dtype, ndim, shape, NULL, err);
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
