/* Whether a symbol of the process would take the place of a library's own. */
#ifndef KERNEL_POSIX_INTERPOSE_H
#define KERNEL_POSIX_INTERPOSE_H

#include "kernel/posix/elf.h"

/* Decides how to open the library so that its own symbols are its own (user reports, F5): *flags is 0 or
 * RTLD_DEEPBIND. KHUB_E_LOAD names the symbol and who has it when the process can't keep them apart. */
int khub__interpose_flags(int *flags, const khub__elf *elf, khub_error *err);

#endif
