/* Threads that belong to the caller. One pool per model; what runs on it has no threads of its own. One
 * source per operating system. */
#ifndef MODEL_THREADS_H
#define MODEL_THREADS_H

#include <khub/error.h>

typedef struct khub__threads khub__threads;

/* CPUs that the system lets this process use (affinity mask, control group); at least 1. */
unsigned khub__allowed_cpus(void);

/* A pool of `threads` threads, the caller's own included (0: as many as allowed), at most 1,024. With 1 there
 * is nothing but the caller. Threads are started at the first piece of work that has use for them.
 * KHUB_E_NOMEM, KHUB_E_INVAL. */
int khub__threads_new(khub__threads **out, unsigned threads, khub_error *err);
void khub__threads_free(khub__threads *pool); /* no run may be going on; NULL is a no-op */
unsigned khub__threads_count(const khub__threads *pool);

/* One piece of work. Any thread of the pool. */
typedef int (*khub__task)(void *user, size_t i, khub_error *err);

/* Runs task(user, i) for every i below `count`, each once, on whatever threads are free, and returns when all
 * have ended. Who ran what doesn't show as long as the pieces don't write to the same memory. The first
 * failure by index is returned (later pieces may have run or not). From one thread at a time. A task must not
 * run anything on the same pool. */
int khub__threads_run(khub__threads *pool, size_t count, khub__task task, void *user, khub_error *err);

#endif
