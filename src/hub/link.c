/* Link headers (RFC 8288): <ADDRESS>; name=value; name="value", <ADDRESS>... */
#include "hub/answer.h"

#include "base/text.h"

typedef struct reader {
    const char *at, *end;
} reader;

static void skip(reader *in, const char *set)
{
    while (in->at < in->end && *in->at && strchr(set, *in->at))
        in->at++;
}

static int take(reader *in, char c)
{
    skip(in, " \t");
    if (in->at == in->end || *in->at != c) return 0;
    in->at++;
    return 1;
}

/* A name or a value: quoted (backslashes are left in), or up to a separator. */
static const char *word(size_t *length, reader *in)
{
    skip(in, " \t");
    if (in->at < in->end && *in->at == '"') {
        const char *start = ++in->at;
        while (in->at < in->end && *in->at != '"')
            in->at += *in->at == '\\' && in->at + 1 < in->end ? 2 : 1;
        *length = (size_t)(in->at - start);
        if (in->at < in->end) in->at++;
        return start;
    }
    const char *start = in->at;
    while (in->at < in->end && (!*in->at || !strchr("=;, \t\"", *in->at)))
        in->at++;
    *length = (size_t)(in->at - start);
    return start;
}

/* "next" is one of the words of a rel. */
static int has_next(const char *words, size_t length)
{
    reader in = {words, words + length};
    while (in.at < in.end) {
        skip(&in, " \t");
        const char *start = in.at;
        while (in.at < in.end && *in.at != ' ' && *in.at != '\t')
            in.at++;
        if (khub__is_word(start, (size_t)(in.at - start), "next")) return 1;
    }
    return 0;
}

/* Reads the parameters behind an address. 1: it is the next one. */
static int parameters(reader *in)
{
    int is_next = 0, seen = 0;
    while (take(in, ';')) {
        size_t name_length, length = 0;
        const char *name = word(&name_length, in), *value = take(in, '=') ? word(&length, in) : "";
        if (seen || !khub__is_word(name, name_length, "rel")) continue;
        seen = 1; /* the first rel counts */
        is_next = has_next(value, length);
    }
    return is_next;
}

const char *khub__link_next(size_t *address_length, const char *value, size_t length)
{
    reader in = {value, value + length};
    for (;;) {
        skip(&in, " \t,");
        if (!take(&in, '<')) return NULL;
        const char *start = in.at, *end = memchr(start, '>', (size_t)(in.end - start));
        if (!end) return NULL;
        in.at = end + 1;
        *address_length = (size_t)(end - start);
        if (parameters(&in) && *address_length > 0) return start;
        if (in.at < in.end && *in.at != ',') return NULL; /* not what the standard says: believe none of it */
    }
}
