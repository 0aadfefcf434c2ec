/* The kernels that this process got already: the same name asked for again costs neither disk nor network, of
 * a directory of this machine a look at whether it is what it was. */
#ifndef KERNEL_MEMO_H
#define KERNEL_MEMO_H

#include "kernel/kernel.h"

/* What was asked: the name, those options that decide, and what of the environment counts. The caller's
 * (khub_free); NULL: no memory, or a request that isn't to be remembered (a platform of the caller's, a
 * refresh, a path that starts from the current directory). */
char *khub__memo_key(const char *name, const khub_get_options *options);

/* Fills a kernel that has its name, from what was kept under `key`. 1: found; 0: not, or no memory. Any
 * thread. */
int khub__memo_find(khub_kernel *kernel, const char *key);

/* Keeps it, for good. What can't be kept is looked for again the next time. `since_ns`: when the getting
 * began (khub__file_clock_ns). */
void khub__memo_keep(const khub_kernel *kernel, const char *key, int64_t since_ns);

#endif
