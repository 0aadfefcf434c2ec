/* The kernels that this process got already: the same name asked for again costs neither disk nor network, of
 * a directory of this machine a look at whether it is what it was. */
#ifndef KERNEL_MEMO_H
#define KERNEL_MEMO_H

#include "kernel/kernel.h"

/* What was asked: the name, those options that decide, and what of the environment counts. The caller's
 * (khub_free); *out NULL: it isn't to be remembered (a platform of the caller's, a refresh, a path that
 * starts from the current directory). KHUB_E_NOMEM. */
int khub__memo_key(char **out, const char *name, const khub_get_options *options, khub_error *err);

/* 1: fills a kernel that has its name with what was kept under `key`; 0: nothing was. Any thread. */
int khub__memo_find(khub_kernel *kernel, const char *key);

/* Keeps it, for good, unless it can't be known whether it stays what it is; its layers are everybody's then.
 * `since_ns`: when the getting began (khub__file_clock_ns). KHUB_E_NOMEM. */
int khub__memo_keep(khub_kernel *kernel, const char *key, int64_t since_ns, khub_error *err);

#endif
