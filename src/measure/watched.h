/* Memory between guard pages, watched in a child process. One source per operating system. */
#ifndef MEASURE_WATCHED_H
#define MEASURE_WATCHED_H

#include "measure/guarded.h"

/* An access to a guard page, told before the process ends by it. */
typedef struct khub__fault {
    int hit;
    int buffer;   /* which of those watched */
    int64_t at;   /* in bytes from its first element */
    int inside;   /* 1: an element of a frozen one */
    int is_write; /* -1: the processor doesn't say */
} khub__fault;

/* In a child (base/contained.h): writes *fault (shared) when one of `buffers` is touched beside its memory.
 * Both are borrowed until called again; NULL: nobody is watched. */
void khub__watch(khub__fault *fault, const khub__guarded *buffers, int count);

#endif
