/* What this machine is. */
#include "platform/platform.h"

#include "base/error.h"
#include "base/options.h"

#include <sys/utsname.h>

int khub_platform_detect(khub_platform **out, const khub_platform_options *given, khub_error *err)
{
    khub_platform_options options;
    *out = NULL;
    int rc = khub__options(&options, sizeof(options), given, "khub_platform_options", err);
    if (rc != KHUB_OK) return rc;
    rc = khub__platform_new(out, err);
    if (rc != KHUB_OK) return rc;
    struct utsname u;
    uname(&u);
    (*out)->os = "linux";
    (*out)->arch = khub__pool_text(&(*out)->pool, u.machine);
    (*out)->backend = khub__backend_find("cpu");
    (*out)->tvm_ffi = (khub__version){0, 1, 15};
    return khub__platform_finish(*out, err);
}
