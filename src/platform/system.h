/* The operating system at hand. */
#ifndef PLATFORM_SYSTEM_H
#define PLATFORM_SYSTEM_H

#include "platform/pool.h"
#include "platform/version.h"

/* "linux" and "x86_64", as builds are named; NULL: no memory. */
void khub__system_names(const char **os, const char **arch, khub__pool *pool);

/* "2.36", of the C library in the process; NULL: another C library. Static. */
const char *khub__system_glibc(void);

/* What names this start of the machine, "3cf3067a-…", into `out`; "" where the system has no name for it. */
enum { KHUB__BOOT_MAX = 64 };
void khub__system_boot(char out[KHUB__BOOT_MAX]);

/* Of macOS; unknown elsewhere. */
khub__version khub__system_macos(void);

#endif
