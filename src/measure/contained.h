/* Work in a child process, so that what crashes, hangs or leaves there ends nothing else. One source per
 * operating system. */
#ifndef MEASURE_CONTAINED_H
#define MEASURE_CONTAINED_H

#include "measure/guarded.h"

/* Zeroed memory that this process and its children have in common. NULL: there is none. */
void *khub__shared_new(size_t bytes);
void khub__shared_free(void *memory, size_t bytes); /* NULL is a no-op */

typedef enum khub__ending {
    KHUB__RETURNED, /* the work is done */
    KHUB__SIGNALED, /* `number`: the signal */
    KHUB__LEFT,     /* it called exit(number), or _exit */
    KHUB__HUNG      /* no sign of life for the time allowed: it was killed */
} khub__ending;

typedef struct khub__end {
    khub__ending how;
    int number;
} khub__end;

/* Runs work(user) in a child. `user` and what it writes to for this process to see must be shared. *beat,
 * shared, is a sign of life: when it is odd and stays what it is for `limit_ms`, the child hangs. KHUB_E_IO:
 * no child could be started. */
int khub__contain(khub__end *end, void (*work)(void *user), void *user, const volatile uint64_t *beat,
                  uint32_t limit_ms, khub_error *err);

/* "SIGSEGV (Segmentation fault)". */
const char *khub__end_words(const khub__end *end, char words[100]);

/* An access to a guard page, told before the process ends by it. */
typedef struct khub__fault {
    int hit;
    int buffer;   /* which of those watched */
    int64_t at;   /* in bytes from its first element */
    int inside;   /* 1: an element of a frozen one */
    int is_write; /* -1: the processor doesn't say */
} khub__fault;

/* In the child: writes *fault (shared) when one of `buffers` is touched beside its memory. Both are borrowed
 * until called again; NULL: nobody is watched. */
void khub__watch(khub__fault *fault, const khub__guarded *buffers, int count);

#endif
