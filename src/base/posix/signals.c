#include "base/signals.h"

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

const char *khub__signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } known[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"},
                 {SIGFPE, "SIGFPE"},   {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"}, {SIGKILL, "SIGKILL"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].number == number) return known[i].name;
    return NULL;
}

const char *khub__signal_words(int number)
{
    return strsignal(number);
}

static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
enum { CRASHES = sizeof(crashes) / sizeof(*crashes) };

void khub__signals_end_it(void)
{
    for (int i = 0; i < CRASHES; i++)
        signal(crashes[i], SIG_DFL);
}

void *khub__dlopen(const char *path, int flags)
{
    struct sigaction before[CRASHES], after;
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], NULL, &before[i]);
    void *handle = dlopen(path, flags);
    for (int i = 0; i < CRASHES; i++) {
        sigaction(crashes[i], NULL, &after);
        if (after.sa_sigaction != before[i].sa_sigaction) sigaction(crashes[i], &before[i], NULL);
    }
    return handle;
}
