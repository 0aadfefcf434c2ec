#include "platform/system.h"

/* The machine that this program was built for, also where another one plays it: so must builds be. */
void khub__system_names(const char **os, const char **arch, khub__pool *pool)
{
    (void)pool;
    *os = "windows";
#if defined(__x86_64__)
    *arch = "x86_64";
#elif defined(__aarch64__)
    *arch = "aarch64";
#else
    *arch = "x86";
#endif
}

const char *khub__system_glibc(void)
{
    return NULL;
}

void khub__system_boot(char out[KHUB__BOOT_MAX])
{
    out[0] = 0;
}

khub__version khub__system_macos(void)
{
    return (khub__version)KHUB__VERSION_UNKNOWN;
}
