/* Which failures are worth another try, and after how long. */
#include "unit.h"

#include "hub/retry.h"

START_TEST(passing)
{
    for (int status = 0; status < 600; status++) {
        int expected = status == 0 || status == 408 || status == 429 || status == 500 || status == 502 ||
                       status == 503 || status == 504;
        ck_assert_int_eq(khub__is_passing(status), expected);
    }
}
END_TEST

START_TEST(waits_double)
{
    static const int64_t expected[] = {1000, 2000, 4000, 8000, 8000, 8000};
    khub__answer answer = {0};
    khub__answer_clear(&answer);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_eq(khub__retry_wait_ms(&answer, i + 1), expected[i]);
}
END_TEST

START_TEST(waits_that_are_asked_for)
{
    static const struct {
        int status;
        const char *header;
        int64_t wait_ms;
    } table[] = {
        {429, "Retry-After: 7", 8000},
        {503, "Retry-After: 7", 8000},
        {429, "retry-after: 0", 1000},
        {429, "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", 1000},
        {429, "ratelimit: \"api\";r=0;t=55", 56000},
        {429, "RateLimit: \"api\"; r=0; t=55", 56000},
        {429, "ratelimit: \"api\";r=3;t=55", 1000},
        {500, "ratelimit: \"api\";r=0;t=55", 1000},
        {429, "ratelimit: t=;;;=", 1000},
        {429, "Retry-After: 86400", -1},
        {429, "Retry-After: 99999999999999999999999", 1000},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_error err = {0};
        khub__answer answer = {0};
        khub__answer_clear(&answer);
        answer.status = table[i].status;
        ck_khub_ok(khub__answer_line(&answer, table[i].header, strlen(table[i].header), &err), &err);
        ck_assert_int_eq(khub__retry_wait_ms(&answer, 1), table[i].wait_ms);
        khub__answer_clear(&answer);
    }
}
END_TEST

UNIT("hub_retry", passing, waits_double, waits_that_are_asked_for)
