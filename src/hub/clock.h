/* Time that only goes forward, what a thread must be kept from, and what a process may. One source per
 * operating system. */
#ifndef HUB_CLOCK_H
#define HUB_CLOCK_H

#include <stdint.h>

/* Milliseconds since some moment; a change of the clock on the wall doesn't show in it. */
uint64_t khub__now_ms(void);

/* Writing to a connection that the other side closed must not end the process: between the two calls this
 * thread gets no SIGPIPE. */
typedef struct khub__hush {
    int had, done;
} khub__hush;
void khub__hush_begin(khub__hush *hush);
void khub__hush_end(khub__hush *hush);

/* How many files and connections this process may have open. */
unsigned khub__descriptors(void);

/* The process's number: connections don't survive a fork. */
int64_t khub__process(void);

#endif
