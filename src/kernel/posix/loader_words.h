/* What the loader's words mean, in plain ones. */
#ifndef KERNEL_POSIX_LOADER_WORDS_H
#define KERNEL_POSIX_LOADER_WORDS_H

#include <khub/error.h>

/* KHUB_E_LOAD for the library at `path`, which the loader refused with `words` (dlerror's). */
int khub__loader_fail(khub_error *err, const char *path, const char *words);

#endif
