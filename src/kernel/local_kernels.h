/* LOCAL_KERNELS: kernels of this machine in the place of named ones, as the Python package has it. */
#ifndef KERNEL_LOCAL_KERNELS_H
#define KERNEL_LOCAL_KERNELS_H

#include <khub/error.h>

/* What LOCAL_KERNELS ("org/a=/path:org/b=./path") has for `name`, whose "@REV" counts for nothing. *path is
 * the caller's (khub_free); NULL when it has nothing. KHUB_E_INVAL (an entry that isn't NAME=PATH),
 * KHUB_E_NOMEM. */
int khub__local_kernel(char **path, const char *name, khub_error *err);

#endif
