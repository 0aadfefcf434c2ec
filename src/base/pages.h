/* What the system may do with pages of memory: advice, whose refusal changes nothing. One source per
 * operating system. */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>

/* Pages of a read-only file mapping that aren't needed for now: they stop counting as ours and come back when
 * touched. */
void khub__pages_drop(const void *data, size_t length);

/* Memory of a huge page's alignment and length, not touched yet: it may be made of huge pages. */
enum { KHUB__HUGE_PAGE = 2 << 20 };
void khub__pages_be_huge(void *data, size_t length);

#endif
