#include "gpu/bound.h"

static int call(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    const khub__gpu_bound *bound = self;
    khub_error why = {0};
    int rc = khub_gpu_call(bound->gpu, bound->what, &bound->function, args, n, result, &why);
    return rc == KHUB_OK ? 0 : khub_raise(NULL, "%s", why.message);
}

khub_function khub__gpu_bound_function(khub__gpu_bound *bound)
{
    return (khub_function){call, bound};
}
