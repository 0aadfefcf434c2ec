/* libamdhip64 for tests. A device is NAME|ARCHITECTURE|BYTES|1 when it is inside the CPU. How its properties
 * are laid out, and how long they are, differs from version to version: `layout OFFSET BYTES`. */
#define USUAL                                                                                                \
    "version 60443484\n"                                                                                     \
    "layout 1160 1472\n"                                                                                     \
    "device AMD Instinct MI300X|gfx942:sramecc+:xnack-|206158430208|0\n"                                     \
    "device AMD Radeon Graphics gfx1036|gfx1036|1073741824|1\n"
#include "describe.h"
#include "memory.h"

#ifdef BEFORE_ROCM_6
#define PROPERTIES hipGetDeviceProperties
#else
#define PROPERTIES hipGetDevicePropertiesR0600
#endif

int hipRuntimeGetVersion(int *version);
int hipGetDeviceCount(int *count);
int PROPERTIES(void *properties, int device);
int hipDeviceTotalMem(size_t *bytes, int device);
int hipDeviceGetAttribute(int *value, int attribute, int device);
const char *hipGetErrorString(int code);
int hipInit(unsigned flags);
int hipGetDevice(int *device);
int hipSetDevice(int device);
const char *hipGetErrorName(int code);
int hipMalloc(void **address, size_t bytes);
int hipFree(void *address);
int hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *stream);
int hipMemcpyDtoHAsync(void *to, void *from, size_t bytes, void *stream);
int hipMemcpyDtoDAsync(void *to, void *from, size_t bytes, void *stream);
int hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                       void *stream);
int hipMemsetD32Async(void *to, int value, size_t count, void *stream);
int hipHostMalloc(void **memory, size_t bytes, unsigned flags);
int hipHostFree(void *memory);
int hipHostGetDevicePointer(void **address, void *memory, unsigned flags);
int hipStreamCreateWithFlags(void **stream, unsigned flags);
int hipStreamDestroy(void *stream);
int hipStreamSynchronize(void *stream);
int hipEventCreateWithFlags(void **event, unsigned flags);
int hipEventDestroy(void *event);
int hipEventRecord(void *event, void *stream);
int hipEventSynchronize(void *event);
int hipEventElapsedTime(float *ms, void *start, void *end);

int hipRuntimeGetVersion(int *version)
{
    *version = number("version", 0);
    return act("hipRuntimeGetVersion", 0);
}

int hipGetDeviceCount(int *count)
{
    int rc = act("hipGetDeviceCount", 1);
    *count = devices();
    return rc;
}

int PROPERTIES(void *properties, int device)
{
    char *bytes = properties;
    int offset = 1160, length = 1472;
    const char *layout = line("layout", 0);
    if (layout) sscanf(layout, "%d %d", &offset, &length);
    memset(bytes, 0, (size_t)length);
    put_name(bytes, 256, device);
    if (offset < length) strcpy(bytes + offset, device_field(device, 1));
    return act("hipGetDeviceProperties", 0);
}

int hipDeviceTotalMem(size_t *bytes, int device)
{
    *bytes = (size_t)strtoull(device_field(device, 2), NULL, 10);
    return act("hipDeviceTotalMem", 0);
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 16 && atoi(device_field(device, 3));
    return attribute == 16 ? act("hipDeviceGetAttribute", 0) : 1;
}

const char *hipGetErrorString(int code)
{
    return code == 100   ? "no ROCm-capable device is detected"
           : code == 101 ? "invalid device ordinal"
                         : "unknown error";
}

int hipInit(unsigned flags)
{
    int rc = act("hipInit", 0);
    return flags ? INVALID_VALUE : rc;
}

/* There is always a current one. */
int hipGetDevice(int *device)
{
    if (!current) current = 1;
    *device = current - 1;
    return act("hipGetDevice", 0);
}

int hipSetDevice(int device)
{
    if (device < 0 || device >= devices()) return INVALID_DEVICE;
    current = device + 1;
    return act("hipSetDevice", 0);
}

const char *hipGetErrorName(int code)
{
    return code == 2 ? "hipErrorOutOfMemory" : code == 700 ? "hipErrorIllegalAddress" : "hipErrorUnknown";
}

int hipMalloc(void **address, size_t bytes)
{
    int rc = called("hipMalloc");
    if (rc == 0) rc = take_block(address, bytes, 0);
    if (rc == 0) *address = (void *)((uintptr_t)*address + DEVICE_MEMORY);
    return rc;
}

int hipFree(void *address)
{
    int rc = called("hipFree");
    return rc ? rc : give_block((uintptr_t)address, 0);
}

int hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *stream)
{
    int rc = called("hipMemcpyHtoDAsync");
    if (rc) return rc;
    return copy_in((uintptr_t)to, from, bytes, stream);
}

int hipMemcpyDtoHAsync(void *to, void *from, size_t bytes, void *stream)
{
    int rc = called("hipMemcpyDtoHAsync");
    if (rc) return rc;
    return copy_out(to, (uintptr_t)from, bytes, stream);
}

int hipMemcpyDtoDAsync(void *to, void *from, size_t bytes, void *stream)
{
    int rc = called("hipMemcpyDtoDAsync");
    return rc ? rc : copy_across((uintptr_t)to, current, (uintptr_t)from, current, bytes, stream);
}

int hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, void *stream)
{
    int rc = called("hipMemcpyPeerAsync");
    return rc ? rc
              : copy_across((uintptr_t)to, to_device + 1, (uintptr_t)from, from_device + 1, bytes, stream);
}

int hipMemsetD32Async(void *to, int value, size_t count, void *stream)
{
    int rc = called("hipMemsetD32Async");
    return rc ? rc : set_words((uintptr_t)to, (unsigned)value, count, stream);
}

int hipHostMalloc(void **memory, size_t bytes, unsigned flags)
{
    int rc = called("hipHostMalloc");
    return rc          ? rc
           : flags & 2 ? take_block(memory, bytes, 1)
                       : fault("host memory that the device doesn't see");
}

int hipHostFree(void *memory)
{
    return give_block((uintptr_t)memory + DEVICE_MEMORY, 1);
}

int hipHostGetDevicePointer(void **address, void *memory, unsigned flags)
{
    *address = (void *)((uintptr_t)memory + DEVICE_MEMORY);
    return flags ? INVALID_VALUE : called("hipHostGetDevicePointer");
}

int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    int rc = called("hipStreamCreateWithFlags");
    return rc ? rc : flags ? INVALID_VALUE : make_stream(stream);
}

int hipStreamDestroy(void *stream)
{
    return free_stream(stream);
}

int hipStreamSynchronize(void *stream)
{
    int rc = called("hipStreamSynchronize");
    return rc ? rc : wait_for(stream);
}

int hipEventCreateWithFlags(void **event, unsigned flags)
{
    int rc = called("hipEventCreateWithFlags");
    return rc ? rc : flags ? INVALID_VALUE : make_event(event);
}

int hipEventDestroy(void *event)
{
    return free_event(event);
}

int hipEventRecord(void *event, void *stream)
{
    int rc = called("hipEventRecord");
    return rc ? rc : record_event(event, stream);
}

int hipEventSynchronize(void *event)
{
    int rc = called("hipEventSynchronize");
    return rc ? rc : wait_for_event(event);
}

int hipEventElapsedTime(float *ms, void *start, void *end)
{
    const fake_event *first = start, *last = end;
    *ms = last->ms - first->ms;
    return first->recorded && last->recorded ? called("hipEventElapsedTime") : INVALID_HANDLE;
}
