#include "platform/ask.h"

#include <errno.h>

/* Of all drivers that khub asks none is one of Windows, so that nothing is ever to be asked. */
void khub__ask_all(khub__ask *asks, size_t count, const char *program, uint32_t timeout_ms)
{
    (void)program, (void)timeout_ms;
    for (size_t i = 0; i < count; i++) {
        asks[i].end = KHUB__ASK_NOT_STARTED;
        asks[i].detail = ENOSYS;
    }
}
