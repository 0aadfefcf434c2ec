/* A kernel for the GPU of tests/drivers. */
#include "gpu.h"

#include <math.h>

static DLTensor *tensor(const TVMFFIAny *args, int32_t n, int32_t i)
{
    return i < n && args[i].type_index == kTVMFFIDLTensorPtr ? args[i].v_ptr : NULL;
}

static float *floats(const DLTensor *t)
{
    return (float *)first_of(t);
}

static int64_t count(const DLTensor *t)
{
    int64_t elements = 1;
    for (int32_t i = 0; i < t->ndim; i++)
        elements *= t->shape[i];
    return elements;
}

static void add(const DLTensor *out, const DLTensor *x, float more)
{
    for (int64_t i = 0; i < count(x); i++)
        floats(out)[i] = floats(x)[i] + more;
}

/* add_one(out, x): out = x + 1 */
FAKE(add_one)
{
    UNUSED;
    DLTensor *out = tensor(args, n, 0), *x = tensor(args, n, 1);
    fake_stream *stream = x && out ? stream_of(out) : stream_of(NULL);
    if (!stream) return -1;
    stream_flush(stream);
    if (!stream->fault) add(out, x, 1);
    return 0;
}

/* add_two(x) -> x + 2, in memory of the caller's allocator */
FAKE(add_two)
{
    UNUSED;
    DLTensor *x = tensor(args, n, 0);
    fake_stream *stream = stream_of(x);
    TVMFFIObjectHandle made;
    if (!stream || TVMFFIEnvTensorAlloc(x, &made) != 0) return -1;
    stream_flush(stream);
    add((DLTensor *)((char *)made + sizeof(TVMFFIObject)), x, 2);
    result->type_index = kTVMFFITensor;
    result->v_obj = made;
    return 0;
}

/* illegal(x): returns, and then the device finds that it read where there is nothing */
FAKE(illegal)
{
    UNUSED;
    fake_stream *stream = stream_of(tensor(args, n, 0));
    if (!stream) return -1;
    stream_flush(stream);
    stream->fault = 700;
    return 0;
}

/* double_weight(prepared, weight): prepared = 2 weight */
FAKE(double_weight)
{
    UNUSED;
    DLTensor *prepared = tensor(args, n, 0), *weight = tensor(args, n, 1);
    if (!prepared->data) {
        prepared->ndim = 1;
        prepared->shape[0] = weight->shape[0];
        return 0;
    }
    fake_stream *stream = stream_of(prepared);
    if (!stream || !stream_of(weight)) return -1;
    stream_flush(stream);
    for (int64_t i = 0; i < count(weight); i++)
        floats(prepared)[i] = 2 * floats(weight)[i];
    return 0;
}

/* rms_norm(out, x, prepared, eps): RMSNorm of compact rows, with 2 weight */
FAKE(rms_norm)
{
    UNUSED;
    DLTensor *out = tensor(args, n, 0), *x = tensor(args, n, 1), *doubled = tensor(args, n, 2);
    fake_stream *stream = stream_of(out);
    if (!stream) return -1;
    if (x->strides && x->ndim > 1 && x->strides[x->ndim - 2] != x->shape[x->ndim - 1])
        return raise_error("ValueError", "rms_norm: rows that lie apart");
    stream_flush(stream);
    int64_t width = x->shape[x->ndim - 1];
    for (int64_t row = 0; row < count(x) / (width ? width : 1); row++) {
        const float *from = floats(x) + row * width;
        double sum = 0;
        for (int64_t i = 0; i < width; i++)
            sum += (double)from[i] * from[i];
        double scale = 1 / sqrt(sum / (double)width + args[3].v_float64);
        for (int64_t i = 0; i < width; i++)
            floats(out)[row * width + i] = (float)(from[i] * scale * floats(doubled)[i] / 2);
    }
    return 0;
}
