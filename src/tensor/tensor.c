#include <khub/tensor.h>

/* Whether the shape can be read at all: no negative rank or extent. */
static int is_shape(const khub_tensor *t)
{
    if (t->ndim < 0 || (t->ndim > 0 && !t->shape)) return 0;
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->shape[i] < 0) return 0;
    return 1;
}

int64_t khub_tensor_count(const khub_tensor *tensor)
{
    if (!is_shape(tensor)) return -1;
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] == 0) return 0; /* whatever the other extents are */
    for (int32_t i = 0; i < tensor->ndim; i++) {
        if (count > INT64_MAX / tensor->shape[i]) return -1;
        count *= tensor->shape[i];
    }
    return count;
}

int64_t khub_tensor_bytes(const khub_tensor *tensor)
{
    int64_t count = khub_tensor_count(tensor);
    int64_t bits = (int64_t)tensor->dtype.bits * tensor->dtype.lanes; /* of one element: below 2^24 */
    if (count <= 0 || bits == 0) return count < 0 ? -1 : 0;
    int64_t rest = (count % 8 * bits + 7) / 8; /* of the last elements that don't make up eight */
    if (count / 8 > (INT64_MAX - rest) / bits) return -1;
    return count / 8 * bits + rest;
}

int khub_tensor_is_compact(const khub_tensor *tensor)
{
    if (!tensor->strides) return 1;
    int64_t count = khub_tensor_count(tensor);
    if (count <= 0) return count == 0;
    int64_t expected = 1; /* can't overflow: the product of all extents is `count` */
    for (int32_t i = tensor->ndim; i-- > 0; expected *= tensor->shape[i])
        if (tensor->shape[i] != 1 && tensor->strides[i] != expected) return 0;
    return 1;
}
