#include "tensor/copy.h"

#include "tensor/array.h"
#include "tensor/strided.h"

#include <stdio.h>

static int same_shape(const khub_tensor *a, const khub_tensor *b)
{
    if (a->ndim != b->ndim) return 0;
    return a->ndim == 0 || !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(*a->shape));
}

const char *khub__copy_refusal(char *buffer, size_t bytes, const khub_tensor *to, const khub_tensor *from)
{
    char is[32], expected[32];
    if (to->device.type != KHUB_DEVICE_CPU || from->device.type != KHUB_DEVICE_CPU) return "isn't on the CPU";
    int bytes_each = from->dtype.bits * from->dtype.lanes / 8;
    if (to->ndim > KHUB_MAX_NDIM || from->dtype.bits * from->dtype.lanes % 8 || bytes_each > 16 ||
        (bytes_each & (bytes_each - 1)) || !bytes_each)
        return "has too many axes, or elements that aren't of 1 to 16 bytes";
    if (memcmp(&to->dtype, &from->dtype, sizeof(to->dtype)) != 0) {
        snprintf(buffer, bytes, "is %s, %s is expected", khub_dtype_name(from->dtype, is),
                 khub_dtype_name(to->dtype, expected));
        return buffer;
    }
    if (same_shape(to, from)) return NULL;
    char shape[128], wanted[128];
    snprintf(buffer, bytes, "is %s, %s is expected", khub__shape_text(shape, from->ndim, from->shape),
             khub__shape_text(wanted, to->ndim, to->shape));
    return buffer;
}

void khub__tensor_write(const khub_tensor *to, const khub_tensor *from)
{
    char compact[4096];
    khub__strided read, write;
    size_t item = (size_t)to->dtype.bits * to->dtype.lanes / 8, left = (size_t)khub_tensor_count(to);
    khub__strided_start(&read, from, item);
    khub__strided_start(&write, to, item);
    for (size_t n = sizeof(compact) / item; left > 0; left -= n) {
        n = n < left ? n : left;
        khub__strided_gather(&read, compact, n);
        khub__strided_scatter(&write, compact, n);
    }
}
