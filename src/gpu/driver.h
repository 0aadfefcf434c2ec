/* A backend's driver, as the rest of src/gpu sees it. */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include <khub/function.h>

/* A function of the driver's library, and the pointer that it goes to. */
typedef struct khub__gpu_symbol {
    const char *name;
    void *to; /* of a pointer to a function */
} khub__gpu_symbol;

/* The functions that CUDA's driver API and HIP have under other names and with the same parameters: an
 * address in the device's memory is a pointer, which nobody on the host follows, or 64 bits unsigned, which
 * are passed like one on 64-bit systems. They return the driver's own code, 0 for success, and work on this
 * thread's device. */
typedef struct khub__gpu_calls {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*alloc)(void **address, size_t bytes);
    int (*free)(void *address);
    int (*put)(void *to, const void *from, size_t bytes, void *stream);
    int (*take)(void *to, void *from, size_t bytes, void *stream);
    int (*copy)(void *to, void *from, size_t bytes, void *stream);    /* within the device */
    int (*set)(void *to, unsigned value, size_t count, void *stream); /* `count` times 4 bytes */
    int (*host_alloc)(void **memory, size_t bytes, unsigned flags);
    int (*host_free)(void *memory);
    int (*host_address)(void **address, void *memory, unsigned flags); /* as the device sees it */
    int (*stream_new)(void **stream, unsigned flags);
    int (*stream_free)(void *stream);
    int (*synchronize)(void *stream);
    int (*event_new)(void **event, unsigned flags);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_wait)(void *event);
    int (*event_elapsed)(float *ms, void *start, void *end);
} khub__gpu_calls;

/* CU_STREAM_DEFAULT, hipStreamDefault: ordered with the default stream, where a kernel may work that doesn't
 * ask for a stream; CU_EVENT_DEFAULT, hipEventDefault: with its time; CU_MEMHOSTALLOC_PORTABLE | _DEVICEMAP,
 * hipHostMallocPortable | hipHostMallocMapped. */
enum { GPU_STREAM_DEFAULT = 0, GPU_EVENT_DEFAULT = 0, GPU_HOST_PORTABLE_MAPPED = 3 };

/* The rest each has in its own way. */
typedef struct khub__gpu_driver {
    const char *name; /* "cuda" */
    int32_t device_type;
    const char *library;             /* as the loader finds it */
    const khub__gpu_symbol *symbols; /* up to a NULL name */
    const khub__gpu_calls *calls;
    int (*open)(void **context, int index);
    int (*close)(int index);
    int (*enter)(void *context, void **before); /* makes it this thread's; `before` to leave it */
    int (*leave)(void *before);
    int (*copy_over)(void *to, void *to_context, void *from, void *from_context, size_t bytes, void *stream);
    double (*flops)(int index); /* float32, multiply-adds as two, a second, by its clock; 0: unknown */
    const char *(*code_name)(int code);  /* NULL: it has none */
    const char *(*code_words)(int code); /* NULL: it has none */
} khub__gpu_driver;

extern const khub__gpu_driver khub__gpu_cuda, khub__gpu_hip;

/* Codes that CUDA and HIP share, and that say something of the call that returns them; any other may be of
 * work that was on the device before. */
enum {
    GPU_INVALID_VALUE = 1,
    GPU_OUT_OF_MEMORY = 2,
    GPU_NO_DEVICE = 100,
    GPU_INVALID_DEVICE = 101,
    GPU_INVALID_CONTEXT = 201,
    GPU_INVALID_HANDLE = 400
};

/* Opens the driver's library (at `path`; NULL: where the loader finds it) for good and binds all symbols.
 * Once; any thread. KHUB_E_NOTFOUND, KHUB_E_LOAD. */
int khub__gpu_driver_load(const khub__gpu_driver *driver, const char *path, khub_error *err);

#endif
