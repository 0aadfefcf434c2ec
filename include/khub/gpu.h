/* A GPU that kernels are called on: its memory, its stream, its time, and whose fault an error is. */
#ifndef KHUB_GPU_H
#define KHUB_GPU_H

#include <khub/kernel.h>
#include <khub/npy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A device with one stream. One thread at a time; which one doesn't matter. What other libraries of this
 * process use of the same device (its context, their streams) stays theirs: each function here makes the
 * device current for its own duration only. */
typedef struct khub_gpu khub_gpu;

/* Opens a device by its name as khub_platform_select takes it: "cuda", "cuda:1", the second one that is
 * visible. `platform` (may be NULL: this machine) says where the driver is; its library is opened here, and
 * by nothing before. *out is the caller's; NULL after a failure: KHUB_E_INVAL (no such name),
 * KHUB_E_UNSUPPORTED (a backend that khub calls nothing on), KHUB_E_NOTFOUND (no driver, no such device),
 * KHUB_E_LOAD (the driver's library, or a function that it lacks), KHUB_E_KERNEL (the driver's words),
 * KHUB_E_NOMEM. */
KHUB_API int khub_gpu_open(khub_gpu **out, const char *name, const khub_platform *platform, khub_error *err);

/* The device that a kernel's build is for: `name` when it is given, else the first one of the build's
 * backend. *out is NULL for a build for the CPU. As khub_gpu_open; KHUB_E_INVAL when `name` is of another
 * backend. */
KHUB_API int khub_gpu_open_for(khub_gpu **out, const khub_kernel *kernel, const char *name,
                               const khub_platform *platform, khub_error *err);

/* Waits for the stream and gives the device up; what functions allocated on it lives on until it is released.
 * NULL is a no-op. */
KHUB_API void khub_gpu_close(khub_gpu *gpu);

KHUB_API const char *khub_gpu_name(const khub_gpu *gpu);   /* "cuda:0" */
KHUB_API const char *khub_gpu_model(const khub_gpu *gpu);  /* "NVIDIA H200"; "": unknown */
KHUB_API khub_device khub_gpu_device(const khub_gpu *gpu); /* what its tensors have as `device` */
KHUB_API void *khub_gpu_stream(const khub_gpu *gpu);       /* a CUstream or cudaStream_t */

/* From now on everything is on that stream of the program's (borrowed; NULL: on the device's own again),
 * after all that was before is done. KHUB_E_KERNEL. */
KHUB_API int khub_gpu_use_stream(khub_gpu *gpu, void *stream, khub_error *err);

/* A tensor in a device's memory. Don't copy the struct: `tensor.shape` points into it. */
typedef struct khub_gpu_array {
    khub_tensor tensor; /* compact */
    int64_t shape[KHUB_MAX_NDIM];
    khub_gpu *gpu; /* NULL: there is no memory */
} khub_gpu_array;

/* Memory for a tensor like `like` (its dtype and shape; may be on any device), not initialised. *out is the
 * caller's (khub_gpu_array_free). KHUB_E_NOMEM says how much was asked for; KHUB_E_INVAL, KHUB_E_KERNEL. */
KHUB_API int khub_gpu_array_new(khub_gpu_array *out, khub_gpu *gpu, const khub_tensor *like, khub_error *err);

/* Frees the memory, for which the driver waits until nothing uses it, and zeroes *array. NULL and zeroed are
 * no-ops. Before khub_gpu_close. */
KHUB_API void khub_gpu_array_free(khub_gpu_array *array);

/* Copies all elements, on the stream: from the host to the device, and back. Both tensors are compact and of
 * the same size. Until khub_gpu_synchronize the host's memory must stay, and has no result in it yet.
 * KHUB_E_INVAL, KHUB_E_KERNEL. */
KHUB_API int khub_gpu_put(khub_gpu *gpu, const khub_tensor *to, const khub_tensor *from, khub_error *err);
KHUB_API int khub_gpu_take(khub_gpu *gpu, const khub_tensor *to, const khub_tensor *from, khub_error *err);

/* Copies all elements between memories of devices: `to` is of `gpu`, `from` of `from_gpu`. Of one device it
 * is on the stream, as above; between two of one backend everything on both streams is done first, and the
 * copy when this returns; the driver goes the way there is, through the host where they can't reach each
 * other. */
KHUB_API int khub_gpu_copy(khub_gpu *gpu, const khub_tensor *to, khub_gpu *from_gpu, const khub_tensor *from,
                           khub_error *err);

/* khub_function_call on the device: tvm-ffi's kernels find its stream with TVMFFIEnvGetStream, and what they
 * allocate with TVMFFIEnvTensorAlloc is memory of the device (or of the host, when they ask for that).
 * `what` ("ORG/NAME:FUNCTION", copied) is what an error that arrives later is said to be of. Returns when the
 * function does, which is before its work is done. As khub_function_call_on. */
KHUB_API int khub_gpu_call(khub_gpu *gpu, const char *what, const khub_function *f, const khub_value *args,
                           int32_t n, khub_value *result, khub_error *err);

/* Waits until everything on the stream is done. KHUB_E_KERNEL: something on it failed. The message names the
 * call: the first that wasn't done. After such an error the device can't be used any more in this process,
 * and everything on it fails with the same words. */
KHUB_API int khub_gpu_synchronize(khub_gpu *gpu, khub_error *err);

/* A moment on the stream. */
typedef struct khub_gpu_event khub_gpu_event;
KHUB_API int khub_gpu_event_new(khub_gpu_event **out, khub_gpu *gpu, khub_error *err);
KHUB_API void khub_gpu_event_free(khub_gpu_event *event); /* NULL is a no-op; before khub_gpu_close */
/* What is on the stream now, and nothing that comes later, is before the event. */
KHUB_API int khub_gpu_event_record(khub_gpu_event *event, khub_error *err);
/* Waits for `end` and says how many milliseconds (at a resolution of about 0.5 us) it was after `start`. */
KHUB_API int khub_gpu_event_elapsed(double *ms, khub_gpu_event *start, khub_gpu_event *end, khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
