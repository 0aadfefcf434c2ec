#include "serve/answer.h"

#include "serve/digest.h"
#include "serve/range.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void serve_answer_header(serve_answer *answer, const char *name, const char *value)
{
    if (answer->response) MHD_add_response_header(answer->response, name, value);
}

static serve_answer answer_of(unsigned status, const char *type, char *body, size_t length)
{
    serve_answer answer = {status, NULL, length, 0};
    if (!body) return answer;
    answer.response = MHD_create_response_from_buffer_with_free_callback(length, body, free);
    if (!answer.response) free(body);
    serve_answer_header(&answer, "Content-Type", type);
    return answer;
}

serve_answer serve_answer_json(unsigned status, json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(body);
    char hex[KHUB__HASH_HEX_MAX + 1], tag[KHUB__HASH_HEX_MAX + 3];
    size_t length = text ? strlen(text) : 0;
    int named =
        status == 200 && text && serve_digest(hex, KHUB__HASH_GIT_BLOB, text, length, NULL) == KHUB_OK;
    serve_answer answer = answer_of(status, "application/json; charset=utf-8", text, length);
    if (!named) return answer;
    snprintf(tag, sizeof(tag), "\"%s\"", hex);
    serve_answer_header(&answer, "ETag", tag);
    return answer;
}

void serve_answer_unless(serve_answer *answer, const char *if_none_match)
{
    static const char *const kept[] = {"ETag", "Link", "X-Repo-Commit"};
    const char *tag = answer->response && answer->status == 200 && !answer->shared
                          ? MHD_get_response_header(answer->response, "ETag")
                          : NULL;
    char name[KHUB__HASH_HEX_MAX + 1];
    if (!tag || !if_none_match) return;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(tag + 1, "\""), tag + 1);
    if (!serve_etag_matches(if_none_match, name)) return;
    struct MHD_Response *whole = answer->response;
    *answer = (serve_answer){.status = 304,
                             .response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)};
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
        const char *value = MHD_get_response_header(whole, kept[i]);
        if (value) serve_answer_header(answer, kept[i], value);
    }
    MHD_destroy_response(whole);
}

serve_answer serve_answer_text(const char *type, const char *text)
{
    return answer_of(200, type, strdup(text), strlen(text));
}

serve_answer serve_answer_error(unsigned status, const char *code, const char *format, ...)
{
    char message[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    serve_answer answer = serve_answer_json(status, json_pack("{s:s}", "error", message));
    if (code) serve_answer_header(&answer, "X-Error-Code", code);
    serve_answer_header(&answer, "X-Error-Message", message);
    return answer;
}
