/* CUDA over its driver API. The primary context of a device is the one that the CUDA runtime uses, too, so
 * that a kernel with a runtime of its own shares memory and streams. */
#include "gpu/driver.h"

#define CU_RESULT  int
#define CU_DEVICE  int
#define CU_ADDRESS unsigned long long
#define CU_CONTEXT void *
#define CU_STREAM  void *
#define CU_EVENT   void *

/* CU_STREAM_DEFAULT: ordered with the default stream, where a kernel may work that doesn't ask for a stream;
 * CU_EVENT_DEFAULT: with its time; CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP. */
enum { STREAM_DEFAULT = 0, EVENT_DEFAULT = 0, HOST_PORTABLE_MAPPED = 3 };

static struct {
#define CU_FUNCTION(member, symbol, parameters) int(*member) parameters;
#include "gpu/cuda_list.inc"
#undef CU_FUNCTION
} cu;

static const khub__gpu_symbol symbols[] = {
#define CU_FUNCTION(member, symbol, parameters) {#symbol, &cu.member},
#include "gpu/cuda_list.inc"
#undef CU_FUNCTION
    {NULL, NULL}};

/* An address in the device's memory has no meaning on the host; on 64-bit systems it has a pointer's size. */
static unsigned long long address_of(const void *p)
{
    return (unsigned long long)(uintptr_t)p;
}

static void *pointer_of(unsigned long long address)
{
    return (void *)(uintptr_t)address;
}

static int start(int *devices)
{
    int rc = cu.init(0);
    return rc ? rc : cu.count(devices);
}

static int open_device(void **context, int index)
{
    int device = 0, rc = cu.get(&device, index);
    return rc ? rc : cu.retain(context, device);
}

static int close_device(int index)
{
    int device = 0, rc = cu.get(&device, index);
    return rc ? rc : cu.release(device);
}

static int enter(void *context, void **before)
{
    int rc = cu.get_current(before);
    return rc || *before == context ? rc : cu.set_current(context);
}

static int leave(void *before)
{
    return cu.set_current(before);
}

static int alloc(void **out, size_t bytes)
{
    unsigned long long address = 0;
    int rc = cu.alloc(&address, bytes);
    *out = pointer_of(address);
    return rc;
}

static int free_memory(void *p)
{
    return cu.free(address_of(p));
}

static int put(void *to, const void *from, size_t bytes, void *stream)
{
    return cu.put(address_of(to), from, bytes, stream);
}

static int take(void *to, const void *from, size_t bytes, void *stream)
{
    return cu.take(to, address_of(from), bytes, stream);
}

static int stream_new(void **stream)
{
    return cu.stream_new(stream, STREAM_DEFAULT);
}

static int stream_free(void *stream)
{
    return cu.stream_free(stream);
}

static int synchronize(void *stream)
{
    return cu.synchronize(stream);
}

static int event_new(void **event)
{
    return cu.event_new(event, EVENT_DEFAULT);
}

static int event_free(void *event)
{
    return cu.event_free(event);
}

static int event_record(void *event, void *stream)
{
    return cu.event_record(event, stream);
}

static int event_elapsed(float *ms, void *first, void *last)
{
    int rc = cu.event_wait(last);
    return rc ? rc : cu.event_elapsed(ms, first, last);
}

static int board_new(void **host, void **device)
{
    unsigned long long address = 0;
    int rc = cu.host_alloc(host, sizeof(unsigned), HOST_PORTABLE_MAPPED);
    if (rc == 0) rc = cu.host_address(&address, *host, 0);
    *device = pointer_of(address);
    return rc;
}

static int board_free(void *host)
{
    return cu.host_free(host);
}

static int set(void *device, unsigned value, size_t count, void *stream)
{
    return cu.set32(address_of(device), value, count, stream);
}

static const char *code_name(int code)
{
    const char *text = NULL;
    return cu.name(code, &text) == 0 ? text : NULL;
}

static const char *code_words(int code)
{
    const char *text = NULL;
    return cu.words(code, &text) == 0 ? text : NULL;
}

const khub__gpu_driver khub__gpu_cuda = {
    .name = "cuda",
    .device_type = KHUB_DEVICE_CUDA,
    .library = "libcuda.so.1",
    .symbols = symbols,
    .start = start,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .leave = leave,
    .alloc = alloc,
    .free = free_memory,
    .put = put,
    .take = take,
    .set = set,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .synchronize = synchronize,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .board_new = board_new,
    .board_free = board_free,
    .code_name = code_name,
    .code_words = code_words,
};
