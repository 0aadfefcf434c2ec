#include "kernel/machine.h"

#include "base/error.h"
#include "base/memory.h"
#include "platform/platform.h"
#include "torch/torch.h"

/* A platform is data, and JSON is its form. */
int khub__machine_copy(khub_platform **out, const khub_platform *platform, khub_error *err)
{
    char *json = khub_platform_json(platform);
    if (!json) return khub__fail_memory(err, "choosing a build");
    int rc = khub_platform_parse(out, json, strlen(json), "this platform", err);
    khub__free(json);
    return rc;
}

int khub__machine_is_narrowed(const khub_get_options *options)
{
    return options->backend || options->torch || options->no_torch;
}

int khub__machine(const khub_platform **out, khub_platform **owned, const khub_get_options *options,
                  int torch, khub_error *err)
{
    *owned = NULL;
    *out = options->platform;
    if (options->torch && options->no_torch)
        return khub__fail(err, KHUB_E_INVAL, "khub_get_options.torch and khub_get_options.no_torch at once");
    int rc = options->platform ? KHUB_OK
                               : khub__this_machine(out, torch && !options->torch && !options->no_torch, err);
    if (rc != KHUB_OK || !khub__machine_is_narrowed(options)) return rc;
    rc = khub__machine_copy(owned, *out, err);
    if (rc == KHUB_OK && options->backend) rc = khub_platform_select(*owned, options->backend, err);
    if (rc == KHUB_OK && (options->torch || options->no_torch))
        rc = khub_platform_use_torch(*owned, options->torch, err);
    if (rc != KHUB_OK) {
        khub_platform_free(*owned);
        *owned = NULL;
    }
    *out = *owned;
    return rc;
}

static const khub_library_info *torch_of(const khub_platform *platform)
{
    return khub__platform_library_of(platform, "libtorch");
}

int khub__machine_open_torch(const khub_get_options *options, int for_cuda, khub_error *err)
{
    const khub_platform *machine;
    khub_platform *owned = NULL;
    int rc = khub__machine(&machine, &owned, options, 1, err);
    const khub_library_info *torch = rc == KHUB_OK ? torch_of(machine) : NULL;
    if (rc == KHUB_OK && !torch) rc = khub__this_machine(&machine, 1, err);
    if (rc == KHUB_OK) rc = khub__torch_open(torch ? torch : torch_of(machine), for_cuda, err);
    khub_platform_free(owned);
    return rc;
}
