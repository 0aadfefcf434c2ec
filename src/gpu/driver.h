/* A backend's driver, as the rest of src/gpu sees it. */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include <khub/function.h>

/* A function of the driver's library, and the pointer that it goes to. */
typedef struct khub__gpu_symbol {
    const char *name;
    void *to; /* of a pointer to a function */
} khub__gpu_symbol;

/* Functions return the driver's own code, 0 for success; addresses in the device's memory are pointers that
 * nobody on the host follows. */
typedef struct khub__gpu_driver {
    const char *name; /* "cuda" */
    int32_t device_type;
    const char *library;             /* as the loader finds it */
    const khub__gpu_symbol *symbols; /* up to a NULL name */
    int (*start)(int *devices);      /* once for each open: says how many there are */
    int (*open)(void **context, int index);
    int (*close)(int index);
    int (*enter)(void *context, void **before); /* makes it this thread's; `before` to leave it */
    int (*leave)(void *before);
    int (*alloc)(void **out, size_t bytes);
    int (*free)(void *p);
    int (*put)(void *to, const void *from, size_t bytes, void *stream);
    int (*take)(void *to, const void *from, size_t bytes, void *stream);
    int (*set)(void *to, unsigned value, size_t count, void *stream); /* `count` times 4 bytes */
    int (*stream_new)(void **stream);
    int (*stream_free)(void *stream);
    int (*synchronize)(void *stream);
    int (*event_new)(void **event);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_elapsed)(float *ms, void *start, void *end); /* waits for `end` */
    int (*board_new)(void **host, void **device);            /* 4 bytes that both can write */
    int (*board_free)(void *host);
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
