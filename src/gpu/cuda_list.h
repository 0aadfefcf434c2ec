/* The functions of libcuda.so.1 that khub calls, as (member, exported name, parameters). The names are those
 * that its headers of CUDA 12 and 13 give the functions, or older ones that are exported for good; prototypes
 * are those of "CUDA Driver API" (docs.nvidia.com/cuda/cuda-driver-api), by its sections. All return a
 * CUresult, an enum of int's size. tests/unit/test_gpu_cuda.c holds them against cuda.h where there is one.
 * Whoever includes this defines CU_CONTEXT, CU_STREAM, CU_EVENT (pointers to incomplete structs), CU_DEVICE
 * (int), CU_ADDRESS (64 bits unsigned) and CU_FUNCTION. */

/* Initialization; Device Management; Error Handling (since 6.0) */
CU_FUNCTION(init, cuInit, (unsigned flags))
CU_FUNCTION(count, cuDeviceGetCount, (int *count))
CU_FUNCTION(get, cuDeviceGet, (CU_DEVICE * device, int ordinal))
CU_FUNCTION(name, cuGetErrorName, (CU_RESULT code, const char **text))
CU_FUNCTION(words, cuGetErrorString, (CU_RESULT code, const char **text))
/* Primary Context Management (7.0; _v2 since 11.0); Context Management (4.0) */
CU_FUNCTION(retain, cuDevicePrimaryCtxRetain, (CU_CONTEXT * context, CU_DEVICE device))
CU_FUNCTION(release, cuDevicePrimaryCtxRelease_v2, (CU_DEVICE device))
CU_FUNCTION(get_current, cuCtxGetCurrent, (CU_CONTEXT * context))
CU_FUNCTION(set_current, cuCtxSetCurrent, (CU_CONTEXT context))
/* Memory Management (_v2: 64-bit addresses, since 3.2) */
CU_FUNCTION(alloc, cuMemAlloc_v2, (CU_ADDRESS * address, size_t bytes))
CU_FUNCTION(free, cuMemFree_v2, (CU_ADDRESS address))
CU_FUNCTION(put, cuMemcpyHtoDAsync_v2, (CU_ADDRESS to, const void *from, size_t bytes, CU_STREAM stream))
CU_FUNCTION(take, cuMemcpyDtoHAsync_v2, (void *to, CU_ADDRESS from, size_t bytes, CU_STREAM stream))
CU_FUNCTION(set32, cuMemsetD32Async, (CU_ADDRESS to, unsigned value, size_t count, CU_STREAM stream))
CU_FUNCTION(host_alloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))
CU_FUNCTION(host_free, cuMemFreeHost, (void *memory))
CU_FUNCTION(host_address, cuMemHostGetDevicePointer_v2, (CU_ADDRESS * address, void *memory, unsigned flags))
/* Stream Management (_v2 since 4.0); Event Management (_v2 since 4.0) */
CU_FUNCTION(stream_new, cuStreamCreate, (CU_STREAM * stream, unsigned flags))
CU_FUNCTION(stream_free, cuStreamDestroy_v2, (CU_STREAM stream))
CU_FUNCTION(synchronize, cuStreamSynchronize, (CU_STREAM stream))
CU_FUNCTION(event_new, cuEventCreate, (CU_EVENT * event, unsigned flags))
CU_FUNCTION(event_free, cuEventDestroy_v2, (CU_EVENT event))
CU_FUNCTION(event_record, cuEventRecord, (CU_EVENT event, CU_STREAM stream))
CU_FUNCTION(event_wait, cuEventSynchronize, (CU_EVENT event))
CU_FUNCTION(event_elapsed, cuEventElapsedTime, (float *ms, CU_EVENT start, CU_EVENT end))
