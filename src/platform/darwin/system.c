#include "platform/system.h"

#include "platform/platform.h"

#include <string.h>
#include <sys/sysctl.h>
#include <sys/utsname.h>

/* "" where there is no such value. */
static void read_text(char *out, size_t size, const char *name)
{
    size_t length = size - 1;
    memset(out, 0, size);
    if (sysctlbyname(name, out, &length, NULL, 0) != 0) out[0] = 0;
}

/* The machine is what this program was built for, also where Rosetta runs it: so must builds be. */
void khub__system_names(const char **os, const char **arch, khub__pool *pool)
{
    struct utsname names;
    *os = "darwin";
    *arch = uname(&names) == 0 ? khub__pool_text(pool, khub__arch_normal(*os, names.machine)) : NULL;
}

const char *khub__system_glibc(void)
{
    return NULL;
}

void khub__system_boot(char out[KHUB__BOOT_MAX])
{
    read_text(out, KHUB__BOOT_MAX, "kern.bootsessionuuid");
}

/* The kernel says the same to every program, whichever SDK it was built with, from macOS 10.13.4 on. */
khub__version khub__system_macos(void)
{
    char text[32];
    khub__version version;
    read_text(text, sizeof(text), "kern.osproductversion");
    khub__version_parse(&version, text);
    return khub__macos_version(version);
}
