#include "base/signals.h"

const char *khub__signal_words(int number)
{
    (void)number; /* a process that Windows ends has a status instead */
    return "a signal";
}
