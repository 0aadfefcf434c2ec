/* What kernels for the GPU of tests/drivers share. They are code of the host that works on that one's memory,
 * and as strict about its stream as a GPU. Built with FAKE_DEVICE: the type of the device that they are for.
 */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include "fake.h"

#include "drivers/stream.h"

/* The stream that the caller set for the tensor's device; NULL after raising. */
static inline fake_stream *stream_of(const DLTensor *t)
{
    if (!t || t->device.device_type != FAKE_DEVICE) {
        raise_error("ValueError", "a tensor on this build's device is expected");
        return NULL;
    }
    fake_stream *stream = TVMFFIEnvGetStream(FAKE_DEVICE, t->device.device_id);
    if (stream && stream->magic == STREAM_MAGIC && stream->device == t->device.device_id) return stream;
    raise_error("RuntimeError", "no stream was set, or one of another device");
    return NULL;
}

/* Where the first element is for code of the host. */
static inline char *first_of(const DLTensor *t)
{
    return (char *)((uintptr_t)t->data - DEVICE_MEMORY + t->byte_offset);
}

#endif
