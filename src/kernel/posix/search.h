/* Where the loader is told to look for what a library needs. */
#ifndef KERNEL_POSIX_SEARCH_H
#define KERNEL_POSIX_SEARCH_H

#include "kernel/posix/elf.h"
#include "trust/proven.h"

/* KHUB_OK when nothing is looked for in a place that depends on the directory that the program is run in,
 * which nobody means. Of a proven library (`proven` not NULL, `name` in it) also: where others may put files,
 * and outside the build by a path of its own. KHUB_E_LOAD or KHUB_E_UNTRUSTED names the place. */
int khub__search_check(const khub__elf *elf, const khub__proven *proven, const char *name, khub_error *err);

/* The proven file that the library `name` means by `needed`, which has a "/" and starts with $ORIGIN; NULL:
 * none of them. */
const khub__proven_file *khub__search_beside(const khub__proven *proven, const char *name,
                                             const char *needed);

#endif
