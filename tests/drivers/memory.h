/* Memory, streams and events of a fake GPU, for the drivers of CUDA and HIP, whose codes these are. Each
 * mistake of a caller is a line "fault WORDS 0" in the file that FAKE_DRIVER_LOG names, and what is still
 * there when the device is given up a line "left WHAT COUNT". */
#ifndef MEMORY_H
#define MEMORY_H

#include "stream.h"

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400
};
enum { MOST = 64, ALIGNMENT = 256 };

typedef struct block {
    char *address; /* on the host; NULL: free */
    size_t bytes;
    int is_host; /* the host's, that the device can write */
} block;

typedef struct fake_event {
    fake_stream *recorded; /* where; NULL: nowhere yet */
    float ms;
} fake_event;

static block blocks[MOST];
static fake_stream *all_streams[MOST];
static int streams, events, contexts, lost;
static float clock_ms;
static __thread int current; /* 1 + the device whose context this thread has; 0: none */

/* The code of a call that needs a context: what is described for it, that of a device that was lost. */
static int called(const char *call)
{
    int rc = act(call, 0);
    return lost ? lost : rc ? rc : current ? 0 : INVALID_CONTEXT;
}

static int fault(const char *words)
{
    char text[100];
    snprintf(text, sizeof(text), "fault %s", words);
    trace(text, 0);
    return INVALID_VALUE;
}

static int take_block(void **out, size_t bytes, int is_host)
{
    if (bytes > (size_t)number("memory", 1 << 20)) return OUT_OF_MEMORY;
    for (int i = 0; i < MOST; i++) {
        if (blocks[i].address) continue;
        blocks[i] = (block){aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT), bytes,
                            is_host};
        memset(blocks[i].address, 0xA5, bytes); /* nobody initialised it */
        *out = blocks[i].address;
        return 0;
    }
    return OUT_OF_MEMORY;
}

static void *host_of(uintptr_t device)
{
    return (void *)(device - DEVICE_MEMORY);
}

/* The block that the bytes at an address of the device lie in; NULL: in none. */
static block *block_of(uintptr_t device, size_t bytes)
{
    char *at = host_of(device);
    for (int i = 0; i < MOST; i++) {
        block *b = &blocks[i];
        if (b->address && at >= b->address && bytes <= b->bytes &&
            at - b->address <= (long)(b->bytes - bytes))
            return b;
    }
    return NULL;
}

/* Whoever frees memory waits until nothing uses it. */
static int give_block(uintptr_t device, int is_host)
{
    for (int i = 0; i < MOST; i++)
        if (all_streams[i]) stream_flush(all_streams[i]);
    block *b = block_of(device, 0);
    if (!b || b->address != host_of(device) || b->is_host != is_host)
        return fault("what was freed isn't there, or a second time");
    free(b->address);
    memset(b, 0, sizeof(*b));
    return 0;
}

static int put_on(fake_stream *stream, fake_operation op)
{
    if (!stream || stream->magic != STREAM_MAGIC) return INVALID_HANDLE;
    if (stream->device != current - 1) return fault("a stream of another device");
    fake_operation *kept = malloc(sizeof(*kept));
    *kept = op;
    kept->next = NULL;
    *stream->end = kept;
    stream->end = &kept->next;
    return 0;
}

static int copy_in(uintptr_t to, const void *from, size_t bytes, void *stream)
{
    if (!block_of(to, bytes)) return fault("copied to where there is no memory");
    return put_on(stream, (fake_operation){.to = host_of(to), .from = from, .bytes = bytes});
}

static int copy_out(void *to, uintptr_t from, size_t bytes, void *stream)
{
    if (!block_of(from, bytes)) return fault("copied from where there is no memory");
    return put_on(stream, (fake_operation){.to = to, .from = host_of(from), .bytes = bytes});
}

/* Between devices `to_device` and `from_device` (numbers from 1; a block isn't said to be any one's). */
static int copy_across(uintptr_t to, int to_device, uintptr_t from, int from_device, size_t bytes,
                       void *stream)
{
    if (to_device != current || from_device < 1 || from_device > devices())
        return fault("copied on another device");
    if (!block_of(to, bytes) || !block_of(from, bytes)) return fault("copied where there is no memory");
    return put_on(stream, (fake_operation){.to = host_of(to), .from = host_of(from), .bytes = bytes});
}

static int set_words(uintptr_t to, unsigned value, size_t count, void *stream)
{
    if (!count || !block_of(to, 4 * count)) return fault("set where there is no memory");
    return put_on(stream, (fake_operation){.to = host_of(to), .bytes = 4 * count, .value = value});
}

static int make_event(void **event)
{
    *event = calloc(1, sizeof(fake_event));
    events++;
    return 0;
}

static int free_event(void *event)
{
    events--;
    free(event);
    return 0;
}

/* Each event is 1.5 ms after the one before. */
static int record_event(void *event, fake_stream *stream)
{
    if (!stream || stream->magic != STREAM_MAGIC) return INVALID_HANDLE;
    *(fake_event *)event = (fake_event){stream, clock_ms += 1.5f};
    return 0;
}

static int free_place(void)
{
    int i = 0;
    while (i + 1 < MOST && all_streams[i])
        i++;
    return i;
}

static int make_stream(void **out)
{
    fake_stream *stream = calloc(1, sizeof(*stream));
    stream->magic = STREAM_MAGIC;
    stream->device = current - 1;
    stream->end = &stream->first;
    all_streams[free_place()] = stream;
    streams++;
    *out = stream;
    return 0;
}

static int free_stream(fake_stream *stream)
{
    stream_flush(stream);
    for (int i = 0; i < MOST; i++)
        if (all_streams[i] == stream) all_streams[i] = NULL;
    streams--;
    free(stream);
    return 0;
}

/* A fault of the device stays its own. */
static int wait_for(fake_stream *stream)
{
    stream_flush(stream);
    return lost = stream->fault;
}

/* All that was on the stream before it; what comes behind does no harm. */
static int wait_for_event(const fake_event *event)
{
    return event->recorded ? wait_for(event->recorded) : INVALID_HANDLE;
}

static inline void give_up(void)
{
    int memory = 0;
    if (--contexts) return;
    for (int i = 0; i < MOST; i++)
        memory += blocks[i].address != NULL;
    trace("left memory", memory);
    trace("left streams", streams);
    trace("left events", events);
}

#endif
