/* ROCm over its HIP runtime, whose current device stands for CUDA's current context. Prototypes are those of
 * hip_runtime_api.h (rocm.docs.amd.com, "HIP runtime API reference", by its modules), the same from ROCm 5 to
 * 7 but for what is const; hipError_t is an enum of int's size, hipDeviceptr_t a pointer. */
#include "gpu/driver.h"

static khub__gpu_calls calls;

static struct {
    int (*get_device)(int *device);
    int (*set_device)(int device);
    int (*copy_over)(void *to, int to_device, const void *from, int from_device, size_t bytes, void *stream);
    const char *(*name)(int code);
    const char *(*words)(int code);
} hip;

static const khub__gpu_symbol symbols[] = {
    /* Initialization and Version; Device Management; Error Handling */
    {"hipInit", &calls.init},
    {"hipGetDeviceCount", &calls.count},
    {"hipGetDevice", &hip.get_device},
    {"hipSetDevice", &hip.set_device},
    {"hipGetErrorName", &hip.name},
    {"hipGetErrorString", &hip.words},
    /* Memory Management */
    {"hipMalloc", &calls.alloc},
    {"hipFree", &calls.free},
    {"hipMemcpyHtoDAsync", &calls.put},
    {"hipMemcpyDtoHAsync", &calls.take},
    {"hipMemcpyDtoDAsync", &calls.copy},
    {"hipMemcpyPeerAsync", &hip.copy_over},
    {"hipMemsetD32Async", &calls.set}, /* takes an int, and 4 bytes of it */
    {"hipHostMalloc", &calls.host_alloc},
    {"hipHostFree", &calls.host_free},
    {"hipHostGetDevicePointer", &calls.host_address},
    /* Stream Management; Event Management */
    {"hipStreamCreateWithFlags", &calls.stream_new},
    {"hipStreamDestroy", &calls.stream_free},
    {"hipStreamSynchronize", &calls.synchronize},
    {"hipEventCreateWithFlags", &calls.event_new},
    {"hipEventDestroy", &calls.event_free},
    {"hipEventRecord", &calls.event_record},
    {"hipEventSynchronize", &calls.event_wait},
    {"hipEventElapsedTime", &calls.event_elapsed},
    {NULL, NULL}};

/* A context is a pointer to nothing, 1 + the device's number. */
static void *context_of(int device)
{
    return (void *)((uintptr_t)device + 1);
}

static int device_of(const void *context)
{
    return (int)((uintptr_t)context - 1);
}

static int open_device(void **context, int index)
{
    *context = context_of(index);
    return 0;
}

static int close_device(int index)
{
    (void)index;
    return 0;
}

static int leave(void *before)
{
    return hip.set_device(device_of(before));
}

static int enter(void *context, void **before)
{
    int device = 0, rc = hip.get_device(&device);
    *before = context_of(device);
    return rc || *before == context ? rc : leave(context);
}

static int copy_over(void *to, void *to_context, void *from, void *from_context, size_t bytes, void *stream)
{
    return hip.copy_over(to, device_of(to_context), from, device_of(from_context), bytes, stream);
}

/* How many a compute unit starts at each clock, the runtime doesn't say. */
static double flops(int index)
{
    (void)index;
    return 0;
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
    .calls = &calls,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .leave = leave,
    .copy_over = copy_over,
    .flops = flops,
    .code_name = code_name,
    .code_words = code_words,
};
