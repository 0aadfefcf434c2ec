/* What the system may do with mapped memory. One source per operating system. */
#ifndef MODEL_PAGES_H
#define MODEL_PAGES_H

#include <stddef.h>

/* Pages of a read-only file mapping that aren't needed for now: they stop counting as ours and come back when
 * touched. */
void khub__pages_drop(const void *data, size_t length);

#endif
