#include "tensor/copy.h"

#include <stdio.h>

/* " (2, 3)" behind what stands in `buffer` already. */
static void add_shape(char *buffer, size_t bytes, const khub_tensor *tensor)
{
    size_t at = strlen(buffer);
    for (int32_t i = 0; i < tensor->ndim && at < bytes; i++) {
        int n = snprintf(buffer + at, bytes - at, "%s%lld", i ? ", " : "(", (long long)tensor->shape[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    if (at < bytes) snprintf(buffer + at, bytes - at, tensor->ndim ? ")" : "()");
}

static int same_shape(const khub_tensor *a, const khub_tensor *b)
{
    if (a->ndim != b->ndim) return 0;
    return a->ndim == 0 || !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(*a->shape));
}

const char *khub__copy_refusal(char *buffer, size_t bytes, const khub_tensor *to, const khub_tensor *from)
{
    char is[32], expected[32];
    if (to->device.type != KHUB_DEVICE_CPU || from->device.type != KHUB_DEVICE_CPU) return "isn't on the CPU";
    if (to->ndim > KHUB_MAX_NDIM || from->dtype.bits * from->dtype.lanes % 8)
        return "has too many axes, or a dtype of less than a byte";
    if (memcmp(&to->dtype, &from->dtype, sizeof(to->dtype)) != 0) {
        snprintf(buffer, bytes, "is %s, %s is expected", khub_dtype_name(from->dtype, is),
                 khub_dtype_name(to->dtype, expected));
        return buffer;
    }
    if (same_shape(to, from)) return NULL;
    snprintf(buffer, bytes, "is ");
    add_shape(buffer, bytes, from);
    if (strlen(buffer) + 4 < bytes) strcat(buffer, ", ");
    add_shape(buffer, bytes, to);
    if (strlen(buffer) + 16 < bytes) strcat(buffer, " is expected");
    return buffer;
}

static int64_t stride(const khub_tensor *tensor, int32_t axis)
{
    int64_t compact = 1;
    if (tensor->strides) return tensor->strides[axis];
    for (int32_t i = axis + 1; i < tensor->ndim; i++)
        compact *= tensor->shape[i];
    return compact;
}

static void copy_axes(const khub_tensor *to, const khub_tensor *from, int32_t axis, size_t element, char *at,
                      const char *source)
{
    if (axis == to->ndim) {
        memcpy(at, source, element);
        return;
    }
    int64_t step = stride(to, axis), source_step = stride(from, axis), count = to->shape[axis];
    if (axis == to->ndim - 1 && step == 1 && source_step == 1) {
        memcpy(at, source, (size_t)count * element);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        copy_axes(to, from, axis + 1, element, at + i * step * (int64_t)element,
                  source + i * source_step * (int64_t)element);
}

void khub__copy(const khub_tensor *to, const khub_tensor *from)
{
    size_t element = (size_t)to->dtype.bits * to->dtype.lanes / 8;
    if (khub_tensor_count(to) > 0)
        copy_axes(to, from, 0, element, (char *)to->data + to->byte_offset,
                  (const char *)from->data + from->byte_offset);
}
