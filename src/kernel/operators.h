/* The functions of a library that registers operators with Torch when it is loaded. */
#ifndef KERNEL_OPERATORS_H
#define KERNEL_OPERATORS_H

#include "kernel/library.h"

/* Before such a library is loaded: nobody may have operators in its namespace, since one that is registered a
 * second time ends the process. `path` stands for the library in messages. KHUB_E_LOAD;
 * khub__torch_operators' errors. */
int khub__operators_check(const char *namespace, const char *path, khub_error *err);

/* After it: *out is one allocation, sorted by name, the caller's. KHUB_E_LOAD: it registered none. */
int khub__operators_read(khub__library_function **out, size_t *count, const char *namespace, const char *path,
                         khub_error *err);

#endif
