/* A kernel for the GPU of tests/drivers: code of the host that works on that one's memory, and is as strict
 * about its stream as a GPU. */
#include "fake.h"

#include "drivers/stream.h"

/* The stream that the caller set for the tensor's device; NULL after raising. */
static fake_stream *stream_of(const DLTensor *t)
{
    if (!t || t->device.device_type != kDLCUDA) {
        raise_error("ValueError", "a tensor on a CUDA device is expected");
        return NULL;
    }
    fake_stream *stream = TVMFFIEnvGetStream(kDLCUDA, t->device.device_id);
    if (stream && stream->magic == STREAM_MAGIC && stream->device == t->device.device_id) return stream;
    raise_error("RuntimeError", "no stream was set, or one of another device");
    return NULL;
}

static DLTensor *tensor(const TVMFFIAny *args, int32_t n, int32_t i)
{
    return i < n && args[i].type_index == kTVMFFIDLTensorPtr ? args[i].v_ptr : NULL;
}

static float *floats(const DLTensor *t)
{
    return (float *)((uintptr_t)t->data - DEVICE_MEMORY + t->byte_offset);
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
