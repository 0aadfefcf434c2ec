#include "serve/answer.h"

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
    return answer_of(status, "application/json; charset=utf-8", text, text ? strlen(text) : 0);
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
