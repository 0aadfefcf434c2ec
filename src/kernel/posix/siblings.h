/* The libraries that a kernel brings along. The loader knows one that others need by its name alone: of two
 * of a name the one that is in the process already is taken, and it looks into LD_LIBRARY_PATH before it
 * looks beside the kernel. */
#ifndef KERNEL_POSIX_SIBLINGS_H
#define KERNEL_POSIX_SIBLINGS_H

#include "kernel/posix/elf.h"
#include "kernel/posix/entrance.h"

/* Of a library in a directory that nobody proved: KHUB_E_LOAD when the process has another one, of other
 * content, under the name of one that lies beside it and that it needs. */
int khub__siblings_check(const khub__elf *elf, khub_error *err);

/* Of a proven build: opens what its library needs of it, and what these need, each before the one that needs
 * it and by its own path, so that the loader comes upon it by name whatever lies elsewhere. KHUB_E_LOAD when
 * the process has another one of that name already, or when the loader wouldn't take the one that was opened.
 */
int khub__siblings_open(const khub__entrance *entrance, khub_error *err);

#endif
