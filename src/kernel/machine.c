#include "kernel/machine.h"

#include "base/error.h"
#include "base/memory.h"

/* A copy that may be narrowed; a platform is data, and JSON is its form. */
static int copy(khub_platform **out, const khub_platform *platform, khub_error *err)
{
    char *json = khub_platform_json(platform);
    if (!json) return khub__fail_memory(err, "choosing a backend");
    int rc = khub_platform_parse(out, json, strlen(json), "this platform", err);
    khub__free(json);
    return rc;
}

int khub__machine(const khub_platform **out, khub_platform **owned, const khub_platform *given,
                  const char *backend, khub_error *err)
{
    *owned = NULL;
    *out = given;
    int rc = given ? KHUB_OK : khub__this_machine(out, err);
    if (rc != KHUB_OK || !backend) return rc;
    rc = copy(owned, *out, err);
    if (rc == KHUB_OK) rc = khub_platform_select(*owned, backend, err);
    if (rc != KHUB_OK) {
        khub_platform_free(*owned);
        *owned = NULL;
    }
    *out = *owned;
    return rc;
}
