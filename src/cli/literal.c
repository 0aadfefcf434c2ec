/* Arrays written out on the command line: "[[1, 2], [3, 4]]". */
#include "arguments.h"

#include <jansson.h>

/* The extents that the first element of each level says; -1: too many levels. */
static int32_t shape_of(const json_t *value, int64_t shape[KHUB_MAX_NDIM])
{
    int32_t ndim = 0;
    for (; json_is_array(value); value = json_array_get(value, 0)) {
        if (ndim == KHUB_MAX_NDIM) return -1;
        shape[ndim++] = (int64_t)json_array_size(value);
    }
    return ndim;
}

/* Writes the numbers to *to and moves it on. 0: something isn't a number, or a level isn't as long as its
 * first.
 */
static int fill(float **to, const json_t *value, const int64_t *shape, int32_t ndim)
{
    if (ndim == 0) {
        *(*to)++ = (float)json_number_value(value);
        return json_is_number(value);
    }
    if (!json_is_array(value) || (int64_t)json_array_size(value) != shape[0]) return 0;
    for (int64_t i = 0; i < shape[0]; i++)
        if (!fill(to, json_array_get(value, (size_t)i), shape + 1, ndim - 1)) return 0;
    return 1;
}

int cli_literal(khub_array *out, const char *text, khub_error *err)
{
    static const khub_dtype float32 = {KHUB_DTYPE_FLOAT, 32, 1};
    int64_t shape[KHUB_MAX_NDIM];
    json_t *value = json_loads(text, 0, NULL);
    int32_t ndim = shape_of(value, shape);
    int rc = ndim > 0 ? khub_array_new(out, float32, ndim, shape, err) : KHUB_E_FORMAT;
    float *to = out->tensor.data;
    if (rc == KHUB_OK && !fill(&to, value, shape, ndim)) rc = KHUB_E_FORMAT;
    json_decref(value);
    return rc;
}
