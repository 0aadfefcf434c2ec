/* Whether something of the process would take the place of a library's own. */
#ifndef KERNEL_POSIX_INTERPOSE_H
#define KERNEL_POSIX_INTERPOSE_H

#include "kernel/posix/elf.h"
#include "trust/proven.h"

/* The loader knows a library that others need by its name alone: one of that name in the process is taken,
 * and the one beside the kernel isn't looked at. KHUB_E_LOAD when they are different files of different
 * content. `proven` (NULL: the directory's files): what there is beside it. */
int khub__interpose_siblings(const khub__elf *elf, const khub__proven *proven, khub_error *err);

/* What it needs is looked for in places that don't depend on the directory that the program is run in, where
 * anybody's file may lie. KHUB_E_LOAD names the place. */
int khub__interpose_search(const khub__elf *elf, khub_error *err);

/* Decides how to open the library so that its own symbols are its own (user reports, F5): *flags is 0 or
 * RTLD_DEEPBIND. KHUB_E_LOAD names the symbol and who has it when the process can't keep them apart. */
int khub__interpose_flags(int *flags, const khub__elf *elf, khub_error *err);

#endif
