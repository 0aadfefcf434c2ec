#include "measure/device.h"

#include "base/options.h"

int khub__get_on(khub_get_options *out, const khub_get_options *given, const char *device, khub_error *err)
{
    int rc = khub__options(out, sizeof(*out), given, "khub_get_options", err);
    out->struct_size = sizeof(*out);
    if (device) out->backend = device;
    return rc;
}

int khub__get_with_device(khub_kernel **out, khub_gpu **gpu, const char *name, const khub_get_options *how,
                          khub_error *err)
{
    *gpu = NULL;
    int rc = khub_get(out, name, how, err);
    if (rc == KHUB_OK) rc = khub_gpu_open_for(gpu, *out, how->backend, how->platform, err);
    if (rc == KHUB_OK) return KHUB_OK;
    khub_kernel_close(*out);
    *out = NULL;
    return rc;
}
