/* Needs another library, found beside it or not at all. */
#include "fake.h"

extern int fake_sibling(void);

FAKE(ask_sibling)
{
    UNUSED;
    return give_int(result, fake_sibling());
}
