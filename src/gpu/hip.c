/* ROCm over its HIP runtime, whose current device stands for CUDA's current context. Prototypes are those of
 * hip_runtime_api.h (rocm.docs.amd.com, "HIP runtime API reference", by its modules), the same from ROCm 5 to
 * 7; hipError_t is an enum of int's size, hipDeviceptr_t a pointer. */
#include "gpu/driver.h"

/* hipStreamDefault, hipEventDefault; hipHostMallocPortable | hipHostMallocMapped. */
enum { STREAM_DEFAULT = 0, EVENT_DEFAULT = 0, HOST_PORTABLE_MAPPED = 3 };

static struct {
    /* Initialization and Version; Device Management; Error Handling */
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*get_device)(int *device);
    int (*set_device)(int device);
    const char *(*name)(int code);
    const char *(*words)(int code);
    /* Memory Management */
    int (*alloc)(void **address, size_t bytes);
    int (*free)(void *address);
    int (*put)(void *to, const void *from, size_t bytes, void *stream); /* before 7 `from` isn't const */
    int (*take)(void *to, void *from, size_t bytes, void *stream);
    int (*set32)(void *to, int value, size_t count, void *stream);
    int (*host_alloc)(void **memory, size_t bytes, unsigned flags);
    int (*host_free)(void *memory);
    int (*host_address)(void **address, void *memory, unsigned flags);
    /* Stream Management; Event Management */
    int (*stream_new)(void **stream, unsigned flags);
    int (*stream_free)(void *stream);
    int (*synchronize)(void *stream);
    int (*event_new)(void **event, unsigned flags);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_wait)(void *event);
    int (*event_elapsed)(float *ms, void *start, void *end);
} hip;

static const khub__gpu_symbol symbols[] = {{"hipInit", &hip.init},
                                           {"hipGetDeviceCount", &hip.count},
                                           {"hipGetDevice", &hip.get_device},
                                           {"hipSetDevice", &hip.set_device},
                                           {"hipGetErrorName", &hip.name},
                                           {"hipGetErrorString", &hip.words},
                                           {"hipMalloc", &hip.alloc},
                                           {"hipFree", &hip.free},
                                           {"hipMemcpyHtoDAsync", &hip.put},
                                           {"hipMemcpyDtoHAsync", &hip.take},
                                           {"hipMemsetD32Async", &hip.set32},
                                           {"hipHostMalloc", &hip.host_alloc},
                                           {"hipHostFree", &hip.host_free},
                                           {"hipHostGetDevicePointer", &hip.host_address},
                                           {"hipStreamCreateWithFlags", &hip.stream_new},
                                           {"hipStreamDestroy", &hip.stream_free},
                                           {"hipStreamSynchronize", &hip.synchronize},
                                           {"hipEventCreateWithFlags", &hip.event_new},
                                           {"hipEventDestroy", &hip.event_free},
                                           {"hipEventRecord", &hip.event_record},
                                           {"hipEventSynchronize", &hip.event_wait},
                                           {"hipEventElapsedTime", &hip.event_elapsed},
                                           {NULL, NULL}};

static int start(int *devices)
{
    int rc = hip.init(0);
    return rc ? rc : hip.count(devices);
}

/* A context is a pointer to nothing, 1 + the device's number. */
static int open_device(void **context, int index)
{
    *context = (void *)((uintptr_t)index + 1);
    return 0;
}

static int close_device(int index)
{
    (void)index;
    return 0;
}

static int leave(void *before)
{
    return hip.set_device((int)((uintptr_t)before - 1));
}

static int enter(void *context, void **before)
{
    int device = 0, rc = hip.get_device(&device);
    *before = (void *)((uintptr_t)device + 1);
    return rc || *before == context ? rc : leave(context);
}

static int alloc(void **out, size_t bytes)
{
    return hip.alloc(out, bytes);
}

static int free_memory(void *p)
{
    return hip.free(p);
}

static int put(void *to, const void *from, size_t bytes, void *stream)
{
    return hip.put(to, from, bytes, stream);
}

static int take(void *to, const void *from, size_t bytes, void *stream)
{
    return hip.take(to, (void *)(uintptr_t)from, bytes, stream);
}

static int stream_new(void **stream)
{
    return hip.stream_new(stream, STREAM_DEFAULT);
}

static int stream_free(void *stream)
{
    return hip.stream_free(stream);
}

static int synchronize(void *stream)
{
    return hip.synchronize(stream);
}

static int event_new(void **event)
{
    return hip.event_new(event, EVENT_DEFAULT);
}

static int event_free(void *event)
{
    return hip.event_free(event);
}

static int event_record(void *event, void *stream)
{
    return hip.event_record(event, stream);
}

static int event_elapsed(float *ms, void *first, void *last)
{
    int rc = hip.event_wait(last);
    return rc ? rc : hip.event_elapsed(ms, first, last);
}

static int board_new(void **host, void **device)
{
    int rc = hip.host_alloc(host, sizeof(unsigned), HOST_PORTABLE_MAPPED);
    return rc ? rc : hip.host_address(device, *host, 0);
}

static int board_free(void *host)
{
    return hip.host_free(host);
}

static int set(void *device, unsigned value, size_t count, void *stream)
{
    return hip.set32(device, (int)value, count, stream);
}

static const char *code_name(int code)
{
    return hip.name(code);
}

static const char *code_words(int code)
{
    return hip.words(code);
}

const khub__gpu_driver khub__gpu_hip = {
    .name = "rocm",
    .device_type = KHUB_DEVICE_ROCM,
    .library = "libamdhip64.so",
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
