/* Calls a function that nobody has: FAKE_SYMBOL. */
#include "fake.h"

extern void FAKE_SYMBOL(void);

FAKE(call_it)
{
    UNUSED;
    FAKE_SYMBOL();
    return 0;
}
