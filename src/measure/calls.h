/* The calls of one case of a layer: its arguments, the kernel's function and the standard one in slots. */
#ifndef MEASURE_CALLS_H
#define MEASURE_CALLS_H

#include "layer/recipe.h"
#include "measure/sampling.h"
#include "measure/stopwatch.h"
#include "measure/work.h"
#include "model/cut.h"
#include "ops/whose.h"

#include <khub/npy.h>

struct khub__case;

/* Arguments in memory of their own, and slots with these as their weights. */
typedef struct khub__call_set {
    khub_array arrays[KHUB__MAX_ARGS];
    khub_gpu_array there[KHUB__MAX_ARGS]; /* on the device, instead */
    khub_value args[KHUB__MAX_ARGS];
    khub_slot *kernel, *standard;
} khub__call_set;

/* What khub__race calls. */
typedef struct khub__caller {
    struct khub__timed_calls *calls;
    int standard; /* 1: the standard function */
    size_t next;  /* set of the next call */
} khub__caller;

/* {0} is none. */
typedef struct khub__timed_calls {
    int32_t n;
    khub__work work;
    khub__call_set **sets;
    size_t count, capacity;
    khub_layers *kernels, *standards; /* the slots; standards NULL: not asked for */
    khub__source source;              /* of the kernel; never given up, since it isn't ours to close */
    khub__threads *pool;              /* borrowed */
    khub_gpu *gpu;                    /* borrowed; NULL: the host */
    khub__stopwatch watch;            /* of the device */
    khub__calls list;                 /* what runs on the pool */
    khub__caller kernel, standard;
} khub__timed_calls;

typedef struct khub__calls_options {
    khub_kernel *kernel;         /* borrowed as long as the calls are */
    const khub_layer_spec *spec; /* how it serves the layer */
    int standard;                /* not 0: the standard function beside it */
    khub__whose whose;           /* standard function */
    uint64_t fill;               /* as many sets as take this many bytes; 0: one */
    khub__threads *pool;
    khub_gpu
        *gpu; /* borrowed likewise: where the kernel is called; without a standard function. NULL: the host */
} khub__calls_options;

/* Makes arguments and fills slots. *out is to be given to khub__timed_calls_free whatever happens.
 * KHUB_E_NOMEM, and those of khub_kernelize: the kernel can't serve the case. */
int khub__timed_calls_new(khub__timed_calls *out, const struct khub__case *c,
                          const khub__calls_options *options, khub_error *err);
void khub__timed_calls_free(khub__timed_calls *calls);

/* For khub__race; `user` is a khub__caller. The second waits for a device, and has the time that it took. */
int khub__timed_calls_run(void *user, uint64_t calls, khub_error *err);
int khub__timed_calls_time(double *seconds, void *user, uint64_t calls, khub_error *err);

#endif
