/* libcuda.so.1 for tests: numbers as in CUDA's documentation. A device is NAME|CAPABILITY|BYTES|UUID's first
 * byte. */
#define USUAL                                                                                                \
    "version 12080\n"                                                                                        \
    "device Fake \"Ampere\" \\ \xC3\xA4|8.6|25769803776|70\n"                                                \
    "device Fake Blackwell|12.0|34359738368|71\n"
#include "describe.h"
#include "memory.h"

enum { HANDLE = 70 }; /* a handle isn't an ordinal */

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int bytes, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetUuid_v2(unsigned char uuid[16], int device);
int cuGetErrorString(int code, const char **words);
int cuGetErrorName(int code, const char **name);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemFree_v2(unsigned long long address);
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream);
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream);
int cuMemcpyPeerAsync(unsigned long long to, void *to_context, unsigned long long from, void *from_context,
                      size_t bytes, void *stream);
int cuMemsetD32Async(unsigned long long to, unsigned value, size_t count, void *stream);
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
int cuMemFreeHost(void *memory);
int cuMemHostGetDevicePointer_v2(unsigned long long *address, void *memory, unsigned flags);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuEventCreate(void **event, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventSynchronize(void *event);
#ifndef WITHOUT_ELAPSED
int cuEventElapsedTime(float *ms, void *start, void *end);
#endif

int cuInit(unsigned flags)
{
    int rc = act("cuInit", 1);
    return flags ? 1 : rc;
}

int cuDriverGetVersion(int *version)
{
    *version = number("version", 0);
    return act("cuDriverGetVersion", 0);
}

int cuDeviceGetCount(int *count)
{
    const char *mask = getenv("CUDA_VISIBLE_DEVICES");
    *count = mask && !strcmp(mask, "-1") ? 0 : devices();
    return act("cuDeviceGetCount", 0);
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = HANDLE + ordinal;
    return act("cuDeviceGet", 0);
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    put_name(name, (size_t)bytes, device - HANDLE);
    return act("cuDeviceGetName", 0);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *capability = device_field(device - HANDLE, 1), *dot = strchr(capability, '.');
    if (attribute == 75)
        *value = atoi(capability);
    else if (attribute == 76)
        *value = dot ? atoi(dot + 1) : 0;
    else if (attribute == 13)
        *value = number("clock", 1000000); /* kHz */
    else if (attribute == 16)
        *value = number("multiprocessors", 10);
    else
        return 1;
    return act("cuDeviceGetAttribute", 0);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)strtoull(device_field(device - HANDLE, 2), NULL, 10);
    return act("cuDeviceTotalMem_v2", 0);
}

int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(i ? i - 1 : atoi(device_field(device - HANDLE, 3)));
    return act("cuDeviceGetUuid_v2", 0);
}

int cuGetErrorString(int code, const char **words)
{
    *words = code == 803   ? "system has unsupported display driver / cuda driver combination"
             : code == 999 ? "unknown error"
             : code == 2   ? "out of memory"
             : code == 700 ? "an illegal memory access was encountered"
                           : NULL;
    return *words ? 0 : 1;
}

int cuGetErrorName(int code, const char **name)
{
    *name = code == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == 46  ? "CUDA_ERROR_DEVICE_UNAVAILABLE"
            : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                          : NULL;
    return *name ? 0 : 1;
}

/* A context is a pointer to nothing, 1 + the device's ordinal. */
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (device < HANDLE || device - HANDLE >= devices()) return INVALID_DEVICE;
    *context = (void *)(uintptr_t)(device - HANDLE + 1);
    contexts++;
    return act("cuDevicePrimaryCtxRetain", 0);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    give_up();
    return 0;
}

int cuCtxGetCurrent(void **context)
{
    *context = (void *)(uintptr_t)current;
    return act("cuCtxGetCurrent", 0);
}

int cuCtxSetCurrent(void *context)
{
    current = (int)(uintptr_t)context;
    return act("cuCtxSetCurrent", 0);
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
    void *memory = NULL;
    int rc = called("cuMemAlloc_v2");
    if (rc == 0) rc = take_block(&memory, bytes, 0);
    *address = (uintptr_t)memory + DEVICE_MEMORY;
    return rc;
}

int cuMemFree_v2(unsigned long long address)
{
    int rc = called("cuMemFree_v2");
    return rc ? rc : give_block((uintptr_t)address, 0);
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream)
{
    int rc = called("cuMemcpyHtoDAsync_v2");
    return rc ? rc : copy_in((uintptr_t)to, from, bytes, stream);
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
    int rc = called("cuMemcpyDtoHAsync_v2");
    return rc ? rc : copy_out(to, (uintptr_t)from, bytes, stream);
}

int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream)
{
    int rc = called("cuMemcpyDtoDAsync_v2");
    return rc ? rc : copy_across((uintptr_t)to, current, (uintptr_t)from, current, bytes, stream);
}

int cuMemcpyPeerAsync(unsigned long long to, void *to_context, unsigned long long from, void *from_context,
                      size_t bytes, void *stream)
{
    int rc = called("cuMemcpyPeerAsync");
    return rc ? rc
              : copy_across((uintptr_t)to, (int)(uintptr_t)to_context, (uintptr_t)from,
                            (int)(uintptr_t)from_context, bytes, stream);
}

int cuMemsetD32Async(unsigned long long to, unsigned value, size_t count, void *stream)
{
    int rc = called("cuMemsetD32Async");
    return rc ? rc : set_words((uintptr_t)to, value, count, stream);
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    int rc = called("cuMemHostAlloc");
    if (rc) return rc;
    return flags & 2 ? take_block(memory, bytes, 1) : fault("host memory that the device doesn't see");
}

int cuMemFreeHost(void *memory)
{
    return give_block((uintptr_t)memory + DEVICE_MEMORY, 1);
}

int cuMemHostGetDevicePointer_v2(unsigned long long *address, void *memory, unsigned flags)
{
    *address = (uintptr_t)memory + DEVICE_MEMORY;
    return flags ? INVALID_VALUE : called("cuMemHostGetDevicePointer_v2");
}

int cuStreamCreate(void **stream, unsigned flags)
{
    int rc = called("cuStreamCreate");
    return rc ? rc : flags ? INVALID_VALUE : make_stream(stream);
}

int cuStreamDestroy_v2(void *stream)
{
    return free_stream(stream);
}

int cuStreamSynchronize(void *stream)
{
    int rc = called("cuStreamSynchronize");
    if (rc) ((fake_stream *)stream)->fault = rc;
    return wait_for(stream);
}

int cuEventCreate(void **event, unsigned flags)
{
    int rc = called("cuEventCreate");
    return rc ? rc : flags ? INVALID_VALUE : make_event(event);
}

int cuEventDestroy_v2(void *event)
{
    return free_event(event);
}

int cuEventRecord(void *event, void *stream)
{
    int rc = called("cuEventRecord");
    return rc ? rc : record_event(event, stream);
}

int cuEventSynchronize(void *event)
{
    int rc = called("cuEventSynchronize");
    return rc ? rc : wait_for_event(event);
}

#ifndef WITHOUT_ELAPSED
int cuEventElapsedTime(float *ms, void *start, void *end)
{
    const fake_event *first = start, *last = end;
    *ms = last->ms - first->ms;
    return first->recorded && last->recorded ? called("cuEventElapsedTime") : INVALID_HANDLE;
}
#endif
