/* Where a kernel that is measured is called. */
#ifndef MEASURE_DEVICE_H
#define MEASURE_DEVICE_H

#include <khub/gpu.h>

/* Options of khub_get for builds of `device` ("cuda:1"; NULL: as `given`, which may be NULL, says). */
int khub__get_on(khub_get_options *out, const khub_get_options *given, const char *device, khub_error *err);

/* The kernel, and the device that its build is for; *gpu NULL: the host. Both are the caller's. As khub_get
 * and khub_gpu_open_for. */
int khub__get_with_device(khub_kernel **out, khub_gpu **gpu, const char *name, const khub_get_options *how,
                          khub_error *err);

#endif
