/* Answers for the text of a kernels.lock, a JSON string a line: {"text": …} as khub would write it, or
 * {"refused": WORDS}; of the older form, which can't be written as it is, {"older": number of entries}. */
#include "base/memory.h"
#include "fetch/lockfile.h"

#include <jansson.h>
#include <stdio.h>

static json_t *answer(const char *text, size_t length)
{
    khub__lockfile lock;
    khub_error err = {0};
    char *written;
    if (khub__lockfile_parse(&lock, text, length, "kernels.lock", &err) != KHUB_OK)
        return json_pack("{s: s}", "refused", err.message);
    json_t *reply = khub__lockfile_text(&written, &lock, &err) == KHUB_OK
                        ? json_pack("{s: s}", "text", written)
                        : json_pack("{s: I}", "older", (json_int_t)lock.count);
    khub__free(written);
    khub__lockfile_free(&lock);
    return reply;
}

int main(void)
{
    json_t *question;
    json_error_t why;
    while ((question = json_loadf(stdin, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &why))) {
        json_t *reply = answer(json_string_value(question), json_string_length(question));
        json_dumpf(reply, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(reply);
        json_decref(question);
    }
    return 0;
}
