/* The functions that a loaded library exports, read from its symbol table in memory. */
#ifndef KERNEL_POSIX_EXPORTS_H
#define KERNEL_POSIX_EXPORTS_H

#include "kernel/library.h"

/* *out is one allocation, sorted; texts are the library's. KHUB_E_UNSUPPORTED: a compiled module, which only
 * tvm-ffi's own loader can set up. KHUB_E_LOAD: no symbol table. KHUB_E_NOMEM. */
int khub__exports_read(khub__library_function **out, size_t *count, void *handle, const char *path,
                       khub_error *err);

#endif
