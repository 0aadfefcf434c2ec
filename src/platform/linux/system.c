#include "platform/system.h"

#include "platform/linux/small.h"

#include <string.h>

#include <sys/utsname.h>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

void khub__system_names(const char **os, const char **arch, khub__pool *pool)
{
    struct utsname names;
    *os = "linux";
    *arch = uname(&names) == 0 ? khub__pool_text(pool, names.machine) : NULL;
}

const char *khub__system_glibc(void)
{
#if defined(__GLIBC__)
    return gnu_get_libc_version();
#else
    return NULL;
#endif
}

void khub__system_boot(char out[KHUB__BOOT_MAX])
{
    khub__small_read(out, KHUB__BOOT_MAX, "", "/proc/sys/kernel/random/boot_id");
    out[strcspn(out, "\n")] = 0;
}

khub__version khub__system_macos(void)
{
    return (khub__version)KHUB__VERSION_UNKNOWN;
}
