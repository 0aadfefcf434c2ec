#include "hub/retry.h"

/* The Hub counts requests in windows of 300 s: no wait that it asks for in earnest is longer. */
enum { LONGEST_S = 320, FIRST_MS = 1000, LAST_MS = 8000 };

static uint32_t as_it_is(uint32_t wait_ms)
{
    return wait_ms;
}

uint32_t (*khub__retry_wait)(uint32_t wait_ms) = as_it_is;

int khub__is_passing(int status)
{
    static const int passing[] = {0, 408, 429, 500, 502, 503, 504};
    for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++)
        if (passing[i] == status) return 1;
    return 0;
}

int64_t khub__retry_wait_ms(const khub__answer *answer, unsigned retry)
{
    int64_t asked = answer->retry_after_s;
    if (answer->status == 429 && answer->ratelimit_s > asked) asked = answer->ratelimit_s;
    if (asked > LONGEST_S) return -1;
    int64_t wait = asked >= 0 && answer->status >= 400 ? (asked + 1) * 1000 : FIRST_MS;
    if (asked < 0)
        for (; retry > 1 && wait < LAST_MS; retry--)
            wait *= 2;
    return wait;
}
