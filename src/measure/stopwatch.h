/* Time on a device's own clock. */
#ifndef MEASURE_STOPWATCH_H
#define MEASURE_STOPWATCH_H

#include <khub/gpu.h>

/* {0} is none. */
typedef struct khub__stopwatch {
    khub_gpu_event *start, *end;
} khub__stopwatch;

/* *out is to be given to khub__stopwatch_free whatever happens. As khub_gpu_event_new. */
int khub__stopwatch_new(khub__stopwatch *out, khub_gpu *gpu, khub_error *err);
void khub__stopwatch_free(khub__stopwatch *watch);

/* Runs `run`, which puts work on the device's stream, waits for it, and says how long the stream was at it.
 * What `run` returns, or what went wrong on the device. */
int khub__stopwatch_run(khub__stopwatch *watch, double *seconds,
                        int (*run)(void *user, uint64_t calls, khub_error *err), void *user, uint64_t calls,
                        khub_error *err);

#endif
