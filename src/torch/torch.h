/* libtorch in this process. */
#ifndef TORCH_TORCH_H
#define TORCH_TORCH_H

#include <khub/platform.h>

/* Opens the libtorch that the platform found (`from`, with the path of libtorch_cpu.so), for kernels of the
 * CPU
 * (`for_cuda` 0: libtorch_cpu and an empty libtorch.so) or of CUDA (the real libtorch.so). Once for each; any
 * thread. It can't be closed. KHUB_E_LOAD: `from` is NULL or not found (then with its reason), the loader
 * refuses it, in plain words, or another libtorch is in the process; KHUB_E_UNSUPPORTED: it is older
 * than 2.7; KHUB_E_NOMEM. The next call tries again. */
int khub__torch_open(const khub_library_info *from, int for_cuda, khub_error *err);

/* 1: it is open, for CUDA if `for_cuda`. Any thread. */
int khub__torch_is_open(int for_cuda);

/* 1: it was in the process before khub opened it, so that others use it too. Any thread. */
int khub__torch_is_shared(void);

/* How many threads an operator may use, all of them together in one call; also of libtorch's own BLAS. Said
 * before libtorch is open it counts when it is. Any thread. */
void khub__torch_set_threads(int threads);

#endif
