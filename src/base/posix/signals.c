#include "base/signals.h"

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

void khub__signals_end_it(void)
{
    static const int numbers[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        signal(numbers[i], SIG_DFL);
}
