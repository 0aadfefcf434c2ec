#include "hub/answer.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

/* A header's value while it is taken. */
typedef struct value {
    const char *text; /* not NUL-terminated */
    size_t length;
} value;

static uint64_t number(value v)
{
    uint64_t n = 0;
    if (v.length == 0 || v.length > 19) return UINT64_MAX;
    for (size_t i = 0; i < v.length; i++) {
        if (v.text[i] < '0' || v.text[i] > '9') return UINT64_MAX;
        n = n * 10 + (uint64_t)(v.text[i] - '0');
    }
    return n <= INT64_MAX ? n : UINT64_MAX;
}

/* The digits at `text`, at most up to `end`. */
static value digits(const char *text, const char *end)
{
    const char *at = text;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return (value){text, (size_t)(at - text)};
}

static int take_length(khub__answer *answer, value v)
{
    answer->length = number(v);
    return 0;
}

static int take_linked_size(khub__answer *answer, value v)
{
    answer->linked_size = number(v);
    return 0;
}

/* W/"x", "x" and x are the same name. One that doesn't fit is none. */
static void put_etag(khub__answer *answer, value v)
{
    if (v.length >= 2 && (v.text[0] == 'W' || v.text[0] == 'w') && v.text[1] == '/')
        v = (value){v.text + 2, v.length - 2};
    if (v.length >= 2 && v.text[0] == '"' && v.text[v.length - 1] == '"')
        v = (value){v.text + 1, v.length - 2};
    answer->etag[0] = 0;
    if (v.length > KHUB__ETAG_MAX || memchr(v.text, 0, v.length)) return;
    memcpy(answer->etag, v.text, v.length);
    answer->etag[v.length] = 0;
}

static int take_etag(khub__answer *answer, value v)
{
    if (!answer->etag_is_linked) put_etag(answer, v);
    return 0;
}

static int take_linked_etag(khub__answer *answer, value v)
{
    answer->etag_is_linked = 1;
    put_etag(answer, v);
    return 0;
}

static int take_commit(khub__answer *answer, value v)
{
    if (v.length > KHUB__COMMIT_MAX) return 0;
    memcpy(answer->commit, v.text, v.length);
    answer->commit[v.length] = 0;
    if (strlen(answer->commit) != v.length || !khub__is_commit(answer->commit)) answer->commit[0] = 0;
    return 0;
}

/* "bytes 0-99/1234", "bytes *" "/1234" */
static int take_range(khub__answer *answer, value v)
{
    const char *end = v.text + v.length, *slash = memchr(v.text, '/', v.length);
    if (v.length < 6 || !khub__same_letters(v.text, "bytes ", 6) || !slash) return 0;
    answer->range_from = number(digits(v.text + 6, slash));
    answer->range_total = number((value){slash + 1, (size_t)(end - slash - 1)});
    return 0;
}

static int take_retry_after(khub__answer *answer, value v)
{
    uint64_t n = number(v); /* the form with a date isn't the Hub's */
    answer->retry_after_s = n == UINT64_MAX ? -1 : (int64_t)n;
    return 0;
}

/* The number behind "NAME=" in  "api";r=0;t=55  */
static uint64_t parameter(value v, char name)
{
    for (size_t i = 0; i + 2 < v.length; i++)
        if (v.text[i] == ';' && v.text[i + 1 + (v.text[i + 1] == ' ')] == name) {
            size_t at = i + 2 + (v.text[i + 1] == ' ');
            if (at < v.length && v.text[at] == '=') return number(digits(v.text + at + 1, v.text + v.length));
        }
    return UINT64_MAX;
}

static int take_ratelimit(khub__answer *answer, value v)
{
    uint64_t remain = parameter(v, 'r'), seconds = parameter(v, 't');
    if (remain == 0 && seconds != UINT64_MAX) answer->ratelimit_s = (int64_t)seconds;
    return 0;
}

static int take_encoding(khub__answer *answer, value v)
{
    answer->encoded = v.length > 0 && !(khub__is_word(v.text, v.length, "identity"));
    return 0;
}

/* Words of the server's, made fit to be shown. */
static void put_words(char *out, size_t size, value v)
{
    size_t n = v.length < size - 1 ? v.length : size - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = v.text[i] >= ' ' && v.text[i] < 127 ? v.text[i] : '?';
    out[n] = 0;
}

static int take_error_code(khub__answer *answer, value v)
{
    put_words(answer->error_code, sizeof(answer->error_code), v);
    return 0;
}

static int take_error_message(khub__answer *answer, value v)
{
    put_words(answer->error_message, sizeof(answer->error_message), v);
    return 0;
}

static int put_copy(char **out, value v)
{
    if (memchr(v.text, 0, v.length)) return 0;
    khub__free(*out);
    *out = khub__strndup(v.text, v.length);
    return *out ? 0 : -1;
}

static int take_location(khub__answer *answer, value v)
{
    return put_copy(&answer->location, v);
}

static int take_link(khub__answer *answer, value v)
{
    size_t length;
    const char *next = khub__link_next(&length, v.text, v.length);
    return next ? put_copy(&answer->next, (value){next, length}) : 0;
}

static const struct {
    const char *name;
    int (*take)(khub__answer *answer, value v); /* not 0: no memory */
} headers[] = {
    {"Content-Length", take_length},
    {"X-Linked-Size", take_linked_size},
    {"ETag", take_etag},
    {"X-Linked-Etag", take_linked_etag},
    {"X-Repo-Commit", take_commit},
    {"Content-Range", take_range},
    {"Retry-After", take_retry_after},
    {"ratelimit", take_ratelimit},
    {"Content-Encoding", take_encoding},
    {"X-Error-Code", take_error_code},
    {"X-Error-Message", take_error_message},
    {"Location", take_location},
    {"Link", take_link},
};

void khub__answer_clear(khub__answer *answer)
{
    khub__free(answer->location);
    khub__free(answer->next);
    memset(answer, 0, sizeof(*answer));
    answer->length = answer->linked_size = answer->range_from = answer->range_total = UINT64_MAX;
    answer->retry_after_s = answer->ratelimit_s = -1;
}

/* "HTTP/1.1 200 OK", "HTTP/2 200" */
static int status_of(const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length);
    if (length < 5 || memcmp(line, "HTTP/", 5) != 0 || !space) return 0;
    value v = digits(space + 1, line + length);
    return v.length == 3 ? (int)number(v) : 0;
}

static int take_header(khub__answer *answer, const char *name, size_t name_length, value v)
{
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
        if (khub__is_word(name, name_length, headers[i].name)) return headers[i].take(answer, v);
    return 0;
}

int khub__answer_line(khub__answer *answer, const char *line, size_t length, khub_error *err)
{
    int status = status_of(line, length);
    size_t bytes = answer->bytes + length;
    if (length > KHUB__HEADER_MAX || bytes > KHUB__HEADERS_MAX)
        return khub__fail(err, KHUB_E_FORMAT, "the head of the answer is longer than %d KiB",
                          (length > KHUB__HEADER_MAX ? KHUB__HEADER_MAX : KHUB__HEADERS_MAX) >> 10);
    if (status) {
        khub__answer_clear(answer);
        answer->status = status;
    }
    answer->bytes = bytes;
    const char *colon = memchr(line, ':', length);
    if (status || !colon) return KHUB_OK;
    value v = {colon + 1, (size_t)(line + length - colon - 1)};
    while (v.length > 0 && (*v.text == ' ' || *v.text == '\t'))
        v.text++, v.length--;
    while (v.length > 0 && strchr(" \t\r\n", v.text[v.length - 1]))
        v.length--;
    return take_header(answer, line, (size_t)(colon - line), v) ? khub__fail_memory(err, "reading an answer")
                                                                : KHUB_OK;
}
