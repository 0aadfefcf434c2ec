/* What a khub_gpu holds. */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include "gpu/driver.h"
#include "tensor/value.h"

#include <khub/gpu.h>

#include <stdatomic.h>

enum { GPU_PENDING = 16 };

/* A function that was called, and whose work may not be done. Further calls of the same one are the same. */
typedef struct khub__gpu_pending {
    unsigned number;
    char what[256];
} khub__gpu_pending;

struct khub_gpu {
    const khub__gpu_driver *driver;
    atomic_int users; /* its opener, and every tensor that a function allocated */
    char name[32];    /* "cuda:0" */
    char model[128];  /* "NVIDIA H200"; "": unknown */
    char arch[64];    /* "9.0"; "": unknown */
    int index;
    int is_open; /* the driver counts this opening */
    void *context;
    void *stream, *own_stream; /* the one in use, and the one that is freed */

    /* Between two functions the stream writes the number of the first onto the board, which the host can
     * read after the device failed, too: the first number above it is whose work wasn't done. */
    void *board, *board_address; /* of an unsigned, as the host and as the device see it */
    khub__gpu_pending pending[GPU_PENDING];
    int pending_count;
    unsigned last; /* number given */

    char lost[900]; /* why the device can't be used any more; empty: it can */
};

/* Makes the device this thread's until khub__gpu_leave(gpu, before). */
int khub__gpu_enter(khub_gpu *gpu, void **before, khub_error *err);
void khub__gpu_leave(khub_gpu *gpu, void *before);

/* What the driver's code, not 0, says of `doing` ("copying to it"), in a khub_error. */
int khub__gpu_fail(khub_gpu *gpu, int code, const char *doing, khub_error *err);

/* Frees memory of the device, also of one that is lost. Any thread. */
void khub__gpu_free(khub_gpu *gpu, void *memory);

/* All its bytes become 0, on the stream. As khub_gpu_put. */
int khub__gpu_clear(khub_gpu *gpu, const khub_gpu_array *array, khub_error *err);

const char *khub__gpu_arch(const khub_gpu *gpu); /* "9.0"; "": unknown */

/* What the device can do at most, as khub__gpu_driver.flops. */
double khub__gpu_flops(const khub_gpu *gpu);

/* One user more, one less; with the last it is freed. Any thread. */
void khub__gpu_keep(khub_gpu *gpu);
void khub__gpu_drop(khub_gpu *gpu);

/* Notes that `what` is about to be called. */
int khub__gpu_note(khub_gpu *gpu, const char *what, khub_error *err);

/* The allocator for tvm-ffi, of the device that this thread calls on: set while a function is called. */
extern _Thread_local khub_gpu *khub__gpu_calling;
int khub__gpu_allocate(khub_tensor *prototype, khub__managed_tensor **out, void *user,
                       void (*set_error)(void *user, const char *kind, const char *message));

#endif
