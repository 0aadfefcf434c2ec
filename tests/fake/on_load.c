/* Does to the process while it is loaded what FAKE_WAY says. */
#include "fake.h"

#include <signal.h>

__attribute__((constructor)) static void on_load(void)
{
    FAKE_WAY;
}

FAKE(nothing)
{
    UNUSED;
    return 0;
}
