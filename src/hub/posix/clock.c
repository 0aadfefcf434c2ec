#include "hub/clock.h"

#include <pthread.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

uint64_t khub__now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int64_t khub__process(void)
{
    return getpid();
}

unsigned khub__descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > UINT_MAX) return UINT_MAX;
    return (unsigned)limit.rlim_cur;
}

static void pipe_signal(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

/* One that is pending already was there before us and stays. */
void khub__hush_begin(khub__hush *hush)
{
    sigset_t set, pending, before;
    pipe_signal(&set);
    hush->done = 0;
    sigpending(&pending);
    hush->had = sigismember(&pending, SIGPIPE);
    if (hush->had) return;
    if (pthread_sigmask(SIG_BLOCK, &set, &before) != 0) return;
    hush->done = !sigismember(&before, SIGPIPE);
}

void khub__hush_end(khub__hush *hush)
{
    sigset_t set;
    if (hush->had) return;
    pipe_signal(&set);
    const struct timespec at_once = {0, 0};
    while (sigtimedwait(&set, NULL, &at_once) > 0)
        ;
    if (hush->done) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
