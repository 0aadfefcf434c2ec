/* Ends the process when it is called, or when it describes itself. */
#include "fake.h"

#include <signal.h>

FAKE(abort_now)
{
    UNUSED;
    abort();
}

FAKE(exit_now)
{
    UNUSED;
    exit(5);
}

FAKE(nothing)
{
    UNUSED;
    return 0;
}

FAKE(_doc_nothing)
{
    UNUSED;
    if (getenv("FAKE_ABORT_IN_DOC")) abort();
    return give_text(result, "Does nothing.");
}
