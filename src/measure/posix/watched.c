#include "measure/watched.h"

#include "base/contained.h"
#include "base/signals.h"

#include <signal.h>
#include <ucontext.h>

static struct {
    khub__fault *fault;
    const khub__guarded *buffers;
    int count;
} watched;

/* 1 and 0: writing, reading; -1: not known. */
static int is_write(const void *context)
{
#if defined(__linux__) && defined(__x86_64__)
    return (int)(((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] >> 1 &
                 1); /* bit 1 of a page fault */
#else
    (void)context;
    return -1;
#endif
}

/* Tells what was touched; then the process ends as it would have. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    for (int i = 0; i < watched.count && watched.fault; i++) {
        int64_t at;
        if (watched.fault->hit || !khub__guarded_owns(&watched.buffers[i], info->si_addr, &at)) continue;
        watched.fault->buffer = i;
        watched.fault->at = at;
        watched.fault->inside =
            at >= 0 && (size_t)at < (size_t)watched.buffers[i].rows * watched.buffers[i].width;
        watched.fault->is_write = is_write(context);
        watched.fault->hit = 1;
    }
    signal(number, SIG_DFL);
    raise(number); /* delivered when this returns; what was raised, and no access, wouldn't come again */
}

/* A stack overflow needs another stack to be told on. */
static void handle_faults(void)
{
    static char stack[1 << 16];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    khub__signals_end_it();
    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

void khub__watch(khub__fault *fault, const khub__guarded *buffers, int count)
{
    watched.count = 0;
    watched.fault = fault;
    watched.buffers = buffers;
    watched.count = buffers ? count : 0;
    if (buffers && khub__is_contained())
        handle_faults(); /* whatever the program, or a library it loaded, does about its own */
}
