/* libtorch as a library of this process. One source per operating system. */
#ifndef TORCH_LIBRARY_H
#define TORCH_LIBRARY_H

#include <khub/platform.h>

/* Opens it, or takes the one that is in the process (*was_there). With `for_cuda` 0 only what the CPU needs,
 * with our empty library in place of libtorch.so, which pulls in CUDA's; it also has the functions of Python
 * that a kernel's module refers to and never calls from here. May be called again for the other. It stays
 * open for good. One thread at a time. KHUB_E_LOAD, KHUB_E_NOMEM. */
int khub__torch_library_open(void **out, int *was_there, const khub_library_info *from, int for_cuda,
                             khub_error *err);

/* NULL: it has no such symbol. */
void *khub__torch_library_symbol(void *library, const char *name);

#endif
