/* How an options struct of the caller's version becomes one of ours. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <khub/error.h>

/* Copies min(*(size_t *)given, size) bytes of `given` (NULL: nothing) over the zeroed `ours`. KHUB_E_INVAL
 * when struct_size is 0, or when bytes beyond `size` that we don't know are set. */
int khub__options(void *ours, size_t size, const void *given, const char *name, khub_error *err);

#endif
