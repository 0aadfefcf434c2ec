/* Leaves code of its own behind: for the end of a thread, for the end of the process, in a result. */
#include "fake.h"

#include <stdio.h>

extern int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso);
extern void *__dso_handle;

static int64_t ended_threads;

static void end_thread(void *object)
{
    (void)object;
    ended_threads++;
}

static void end_process(void)
{
    fputs("the kernel's atexit function ran\n", stderr);
}

/* for_thread(): something to do when this thread ends */
FAKE(for_thread)
{
    UNUSED;
    return __cxa_thread_atexit_impl(end_thread, NULL, &__dso_handle) == 0
               ? 0
               : raise_error("RuntimeError", "no destructor");
}

/* ended_threads() -> how many threads did it */
FAKE(ended_threads)
{
    UNUSED;
    return give_int(result, ended_threads);
}

/* for_process(): something to do when the process ends */
FAKE(for_process)
{
    UNUSED;
    return atexit(end_process) == 0 ? 0 : raise_error("RuntimeError", "no atexit");
}
