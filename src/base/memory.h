/* The one place memory comes from, so that a host can replace it and a test can make it fail. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <khub/memory.h>

void *khub__malloc(size_t bytes);
void *khub__calloc(size_t count, size_t size); /* NULL too when count * size overflows */
void *khub__realloc(void *p, size_t bytes);
void khub__free(void *p);
char *khub__strdup(const char *text);                /* NULL for NULL */
char *khub__strndup(const char *text, size_t bytes); /* copies exactly `bytes`, adds a NUL */

/* Makes room for `need` elements of `size` bytes in *items, of which *capacity fit now: doubling, never
 * past `max` elements. 0, or -1 (memory, or past `max`) with everything as before. */
int khub__grow(void **items, size_t *capacity, size_t need, size_t size, size_t max);

#endif
