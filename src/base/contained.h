/* Work in a child process, so that what crashes, hangs or leaves there ends nothing else. One source per
 * operating system. */
#ifndef BASE_CONTAINED_H
#define BASE_CONTAINED_H

#include <khub/error.h>

#include <stddef.h>
#include <stdint.h>

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

/* Runs work(user) in a child, in which signals do what they do where nobody says otherwise, and what is
 * printed goes to stderr. `user` and what it writes to for this process to see must be shared. *beat,
 * shared, is a sign of life: when it is odd and stays what it is for `limit_ms`, the child hangs. KHUB_E_IO:
 * no child could be started; KHUB_E_NOMEM. */
int khub__contain(khub__end *end, void (*work)(void *user), void *user, const volatile uint64_t *beat,
                  uint32_t limit_ms, khub_error *err);

/* "SIGSEGV (Segmentation fault)". */
const char *khub__end_words(const khub__end *end, char words[100]);

/* 1: this process is a child of khub__contain. */
int khub__is_contained(void);

#endif
