/* A stream of a fake GPU, as its driver and a fake kernel know it. What is put on one waits until the driver
 * is told to wait for it, or a kernel, which is code of the host, is about to run (`flush`). */
#ifndef STREAM_H
#define STREAM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Added to an address of the device's memory: a program that follows one on the host ends there. */
#define DEVICE_MEMORY ((uintptr_t)1 << 60)

enum { STREAM_MAGIC = 0x57EA };

typedef struct fake_operation {
    void *to;
    const void *from; /* NULL: `value` is written, again and again */
    size_t bytes;
    unsigned value;
    struct fake_operation *next;
} fake_operation;

typedef struct fake_stream {
    int magic, device;
    int fault; /* a code: what comes after it is never done */
    fake_operation *first, **end;
} fake_stream;

static inline void stream_flush(fake_stream *stream)
{
    while (stream->first) {
        fake_operation *op = stream->first;
        stream->first = op->next;
        if (!stream->fault && op->from) memcpy(op->to, op->from, op->bytes);
        for (size_t i = 0; !stream->fault && !op->from && i < op->bytes / sizeof(unsigned); i++)
            ((unsigned *)op->to)[i] = op->value;
        free(op);
    }
    stream->end = &stream->first;
}

#endif
