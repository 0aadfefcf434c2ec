/* The head of an HTTP answer of any bytes, line by line: no crash, and what is kept can be shown and used. */
#include "hub/answer.h"
#include "hub/retry.h"
#include "hub/url.h"

#include "base/memory.h"

#include <stdlib.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static void check_words(const char *text, size_t max)
{
    check(strlen(text) <= max);
    for (; *text; text++)
        check(*text >= ' ' && *text < 127);
}

static void check_answer(const khub__answer *answer)
{
    char *to;
    check_words(answer->error_code, sizeof(answer->error_code) - 1);
    check_words(answer->error_message, sizeof(answer->error_message) - 1);
    check(!answer->commit[0] || khub__is_commit(answer->commit));
    check(answer->status >= 0 && answer->status <= 999);
    check(khub__retry_wait_ms(answer, 1) >= -1);
    if (answer->location && khub__url_resolve(&to, "https://h/a/b", answer->location, NULL) == KHUB_OK) {
        check(strncasecmp(to, "https:", 6) == 0);
        khub__free(to);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__answer answer = {0};
    khub_error err = {0};
    khub__answer_clear(&answer);
    const char *at = (const char *)data, *end = at + size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = newline ? (size_t)(newline - at) + 1 : (size_t)(end - at);
        if (khub__answer_line(&answer, at, length, &err) != KHUB_OK) break;
        at += length;
    }
    check_answer(&answer);
    khub__answer_clear(&answer);
    return 0;
}
