/* Stands in until loading is built; goes away with it. */
#include <khub/kernel.h>

#include "base/error.h"

#define WEAK __attribute__((weak))

WEAK int khub_get(khub_kernel **out, const char *name, const khub_get_options *options, khub_error *err)
{
    (void)options;
    *out = NULL;
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: not found", name);
}
WEAK void khub_kernel_close(khub_kernel *kernel)
{
    (void)kernel;
}
WEAK const char *khub_kernel_variant(const khub_kernel *kernel)
{
    return kernel ? "" : "";
}
WEAK int khub_kernel_function(khub_function *out, const khub_kernel *kernel, const char *name,
                              khub_error *err)
{
    (void)out, (void)kernel;
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: not found", name);
}
WEAK int khub_kernel_layer(const khub_layer_spec **out, khub_kernel *kernel, const char *layer,
                           khub_error *err)
{
    (void)out, (void)kernel;
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: not found", layer);
}
