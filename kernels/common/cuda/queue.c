/* A call's device and stream, by CUDA's runtime, which the library has inside: it opens the driver at the
 * first call. */
#include "ffi.h"

#include <cuda_runtime_api.h>
#include <tvm/ffi/extra/c_env_api.h>

static _Thread_local void *stream;

void *khub__stream(void); /* gpu.h, which is for kernels */
void *khub__stream(void)
{
    return stream;
}

static int failed(const khub__call *call, cudaError_t error)
{
    if (error == cudaSuccess) return 0;
    return khub__raise(call, "RuntimeError", "CUDA device %d: %s (%s)", (int)call->device.device_id,
                       cudaGetErrorString(error), cudaGetErrorName(error));
}

/* Leaves the thread's device as it was. The runtime is this library's own: an error that it holds is of this
 * call, or of what an earlier one launched. */
int khub__run(const khub__call *call, int (*run)(const khub__call *))
{
    int before, device = call->device.device_id;
    if (failed(call, cudaGetDevice(&before)) || (before != device && failed(call, cudaSetDevice(device))))
        return -1;
    stream = TVMFFIEnvGetStream(kDLCUDA, device);
    int rc = run(call);
    if (rc == 0) rc = failed(call, cudaGetLastError());
    if (before != device) cudaSetDevice(before);
    return rc;
}
