/* Getting several kernels at the same time. One source per operating system. */
#ifndef LAYER_GETS_H
#define LAYER_GETS_H

#include <khub/kernel.h>

/* One kernel to get, and what came of it. */
typedef struct khub__get {
    const char *name;
    const char *backend; /* NULL: the platform's own */
    khub_kernel *kernel; /* the caller's; NULL: why not */
    khub_error why;
} khub__get;

/* What holds for all of them: as for khub_get. `offline` is set once the Hub couldn't be reached: a mapping
 * of many kernels waits for a Hub that is away once, not for each of them. */
typedef struct khub__gets {
    const khub_platform *platform;
    khub_hub_options hub;
    int offline;
} khub__gets;

/* Gets them one after the other in this thread, with the caller's progress function. Stops at KHUB_E_CANCELED
 * and KHUB_E_NOMEM, which it returns. */
int khub__gets_here(khub__gets *with, khub__get *const *list, size_t count, khub_error *err);

/* The same for kernels of the Hub, some at a time, in threads that end with the call. The caller's progress
 * function is called from this thread alone, with what all of them have done together. */
int khub__gets_together(khub__gets *with, khub__get *const *list, size_t count, khub_error *err);

#endif
