/* Where libkhub's memory comes from. */
#ifndef KHUB_MEMORY_H
#define KHUB_MEMORY_H

#include <khub/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Like malloc, realloc and free; called from any thread. */
typedef struct khub_allocator {
    void *(*alloc)(size_t bytes);
    void *(*realloc)(void *p, size_t bytes);
    void (*free)(void *p);
} khub_allocator;

/* Replaces the allocator of the whole process; NULL: the C library's. Call it before anything else of
 * khub, from one thread: memory is freed with the allocator in force at that time. */
KHUB_API void khub_set_allocator(const khub_allocator *allocator);

/* Frees what the library handed over as plain memory (strings, arrays). NULL is a no-op. */
KHUB_API void khub_free(void *p);

#ifdef __cplusplus
}
#endif

#endif
