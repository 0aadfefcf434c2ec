#include "fetch/status.h"

#include "base/error.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

typedef struct reader {
    const char *at, *end, *file;
    size_t line;
    khub_error *err;
} reader;

static int fail(const reader *r, const char *fact)
{
    return khub__fail(r->err, KHUB_E_FORMAT, "%s:%zu: %s", r->file, r->line, fact);
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
}

static int is_key_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* What a backslash and `c` stand for in a basic string; 0: nothing that these values need. */
static char unescape(char c)
{
    static const char table[] = "\"\"\\\\b\bf\fn\nr\rt\t";
    for (size_t i = 0; table[i]; i += 2)
        if (table[i] == c) return table[i + 1];
    return 0;
}

static int read_string(char *out, size_t size, reader *r)
{
    char quote = r->at < r->end ? *r->at : 0;
    if (quote != '"' && quote != '\'') return fail(r, "a string in quotes is expected");
    size_t n = 0;
    for (r->at++; r->at < r->end && *r->at != quote && *r->at != '\n'; r->at++) {
        char c = *r->at;
        if (quote == '"' && c == '\\' && (++r->at == r->end || !(c = unescape(*r->at))))
            return fail(r, "an escape that isn't understood");
        if (!c || n + 1 >= size) return fail(r, c ? "the string is too long" : "a NUL in a string");
        out[n++] = c;
    }
    if (r->at == r->end || *r->at != quote) return fail(r, "the string doesn't end on its line");
    out[n] = 0;
    r->at++;
    skip_blanks(r);
    if (r->at < r->end && *r->at != '#' && *r->at != '\n' && *r->at != '\r')
        return fail(r, "text follows the string");
    return KHUB_OK;
}

/* One line `KEY = VALUE`, a comment or nothing; the values that are asked for go where `fields` says. */
typedef struct field {
    const char *key;
    char *out;
    size_t size;
} field;

static int read_line(reader *r, const field *fields, size_t count)
{
    skip_blanks(r);
    const char *key = r->at;
    while (r->at < r->end && is_key_byte(*r->at))
        r->at++;
    size_t n = (size_t)(r->at - key);
    for (size_t i = 0; i < count; i++) {
        if (n != strlen(fields[i].key) || memcmp(key, fields[i].key, n) != 0) continue;
        skip_blanks(r);
        if (r->at == r->end || *r->at != '=') return fail(r, "\"=\" is expected");
        r->at++;
        skip_blanks(r);
        if (*fields[i].out) return fail(r, "the key is there twice");
        return read_string(fields[i].out, fields[i].size, r);
    }
    return KHUB_OK;
}

static int judge(khub__status *out, const char *kind, const char *file, khub_error *err)
{
    if (!*kind) return khub__fail(err, KHUB_E_FORMAT, "%s: \"kind\" is missing", file);
    if (strcmp(kind, "redirect") != 0) {
        khub__log(KHUB_LOG_NOTICE, "get", file, "says \"%.40s\", which this khub doesn't know", kind);
        memset(out, 0, sizeof(*out));
        return KHUB_OK;
    }
    if (!*out->destination) return khub__fail(err, KHUB_E_FORMAT, "%s: \"destination\" is missing", file);
    if (!*out->revision) snprintf(out->revision, sizeof(out->revision), "main");
    return KHUB_OK;
}

int khub__status_parse(khub__status *out, const char *text, size_t length, const char *file, khub_error *err)
{
    char kind[64] = "";
    memset(out, 0, sizeof(*out));
    const field fields[] = {{"kind", kind, sizeof(kind)},
                            {"destination", out->destination, sizeof(out->destination)},
                            {"revision", out->revision, sizeof(out->revision)}};
    reader r = {text, text + length, file, 1, err};
    for (; r.at < r.end && *r.at != '['; r.line++) {
        int rc = read_line(&r, fields, sizeof(fields) / sizeof(*fields));
        if (rc != KHUB_OK) return rc;
        const char *line_end = r.at < r.end ? memchr(r.at, '\n', (size_t)(r.end - r.at)) : NULL;
        r.at = line_end ? line_end + 1 : r.end;
    }
    return judge(out, kind, file, err);
}
