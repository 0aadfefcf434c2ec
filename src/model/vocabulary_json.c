/* The vocabulary out of a tokenizer.json. It is nine tenths of the file and read here, in place, since a JSON
 * library that allocates every token takes ten times as long; the rest of the file is left to the library. */
#include "model/tokenizer.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/utf8.h"

typedef struct scanner {
    char *start, *at, *end;
    const char *file;
    khub_error *err;
} scanner;

static int line_of(const scanner *s, const char *place)
{
    int line = 1;
    for (const char *c = s->start; c < place; c++)
        line += *c == '\n';
    return line;
}

static int malformed(const scanner *s, const char *what)
{
    return khub__fail(s->err, KHUB_E_FORMAT, "%s:%d: not valid JSON: %s", s->file, line_of(s, s->at), what);
}

static int peek(const scanner *s)
{
    return s->at < s->end ? (unsigned char)*s->at : -1;
}

static int skip_space(scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
    return peek(s);
}

static int hex4(const char *digits, const char *end, uint32_t *value)
{
    *value = 0;
    if (end - digits < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit > 15) return -1;
        *value = *value << 4 | digit;
    }
    return 0;
}

/* "\uXXXX" or a pair of them, s->at behind the u; writes the character. */
static int unescape_unicode(scanner *s, char **to)
{
    uint32_t c, low;
    if (hex4(s->at, s->end, &c) != 0) return malformed(s, "a \\u without four hex digits");
    s->at += 4;
    if (c == 0) return malformed(s, "\\u0000 is not allowed");
    if (c >= 0xD800 && c < 0xE000) {
        if (c >= 0xDC00 || s->end - s->at < 6 || s->at[0] != '\\' || s->at[1] != 'u' ||
            hex4(s->at + 2, s->end, &low) != 0 || low < 0xDC00 || low > 0xDFFF)
            return malformed(s, "half of a surrogate pair");
        s->at += 6;
        c = 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00));
    }
    *to = khub__utf8_put(*to, c);
    return KHUB_OK;
}

/* What follows a backslash, s->at on it; what is written is never longer than what is read. */
static int unescape(scanner *s, char **to)
{
    static const char letters[] = "\"\\/bfnrtu", meanings[] = "\"\\/\b\f\n\r\t";
    int letter = peek(s);
    const char *which = letter > 0 ? strchr(letters, letter) : NULL;
    if (!which) return malformed(s, "a backslash before nothing that it can stand before");
    s->at++;
    if (*which == 'u') return unescape_unicode(s, to);
    *(*to)++ = meanings[which - letters];
    return KHUB_OK;
}

/* A string, s->at on its quote: unescaped in place and NUL-terminated; valid UTF-8 already. */
static int read_string(scanner *s, const char **text, size_t *length)
{
    char *to = ++s->at;
    *text = to;
    for (;;) {
        int c = peek(s);
        if (c < 0) return malformed(s, "a string without an end");
        if (c < 0x20) return malformed(s, "a control character in a string");
        s->at++;
        if (c == '"') break;
        if (c != '\\')
            *to++ = (char)c;
        else if (unescape(s, &to) != KHUB_OK)
            return KHUB_E_FORMAT;
    }
    *length = (size_t)(to - *text);
    *to = 0;
    return KHUB_OK;
}

static int read_id(scanner *s, const char *token, int64_t *id)
{
    const char *start = s->at;
    *id = 0;
    for (; peek(s) >= '0' && peek(s) <= '9'; s->at++)
        if (*id <= INT32_MAX) *id = *id * 10 + (*s->at - '0');
    int after = peek(s);
    if (s->at == start || after == '.' || after == 'e' || after == 'E' ||
        (*start == '0' && s->at > start + 1))
        return khub__fail(s->err, KHUB_E_FORMAT, "%s:%d: the id of token \"%s\" is no whole number from 0 on",
                          s->file, line_of(s, start), token);
    return KHUB_OK;
}

static int read_pair(scanner *s, khub__vocabulary *vocabulary)
{
    const char *token = NULL;
    size_t length = 0;
    int64_t id;
    if (skip_space(s) != '"') return malformed(s, "a token in quotes is expected");
    if (read_string(s, &token, &length) != KHUB_OK) return KHUB_E_FORMAT;
    if (skip_space(s) != ':') return malformed(s, "a colon is expected");
    s->at++;
    skip_space(s);
    if (read_id(s, token, &id) != KHUB_OK) return KHUB_E_FORMAT;
    return khub__vocabulary_set(vocabulary, token, length, id, s->file, s->err);
}

/* The object, s->at on its "{"; ends behind its "}". */
static int read_pairs(scanner *s, khub__vocabulary *vocabulary)
{
    s->at++;
    if (skip_space(s) == '}') {
        s->at++;
        return KHUB_OK;
    }
    for (;;) {
        int rc = read_pair(s, vocabulary);
        if (rc != KHUB_OK) return rc;
        int c = skip_space(s);
        if (c != ',' && c != '}') return malformed(s, "a comma or the end of \"vocab\" is expected");
        s->at++;
        if (c == '}') return KHUB_OK;
    }
}

/* Behind the string that s->at is on; leaves it as it is. */
static void skip_string(scanner *s)
{
    for (s->at++; s->at < s->end && *s->at != '"'; s->at++)
        if (*s->at == '\\') s->at++;
    s->at = s->at < s->end ? s->at + 1 : s->end;
}

/* Moves to the "{" of the object that is the value of "vocab" in the object "model" of the file; 0: there is
 * none. Takes a wrong turn only in a file that isn't JSON, which the JSON library then says. */
static int find_vocab(scanner *s)
{
    int depth = 0, in_model = 0;
    while (s->at < s->end) {
        char c = *s->at;
        if (c != '"') {
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
            s->at++;
            continue;
        }
        const char *key = s->at + 1;
        skip_string(s);
        size_t length = (size_t)(s->at - key) - 1;
        if (depth > 2 || skip_space(s) != ':') continue;
        s->at++;
        if (depth == 1) in_model = length == 5 && !memcmp(key, "model", 5);
        if (depth == 2 && in_model && length == 5 && !memcmp(key, "vocab", 5) && skip_space(s) == '{')
            return 1;
    }
    return 0;
}

/* The file without what is between `start` and `stop`, but for its line ends. */
static char *without(const scanner *s, const char *start, const char *stop, size_t lines)
{
    size_t head = (size_t)(start - s->start), tail = (size_t)(s->end - stop);
    char *rest = khub__malloc(head + 2 + lines + tail + 1);
    if (!rest) return NULL;
    memcpy(rest, s->start, head);
    memcpy(rest + head, "{", 1);
    memset(rest + head + 1, '\n', lines);
    memcpy(rest + head + 1 + lines, "}", 1);
    memcpy(rest + head + 2 + lines, stop, tail);
    rest[head + 2 + lines + tail] = 0;
    return rest;
}

int khub__vocabulary_read_json(khub__vocabulary *vocabulary, char **rest, int *found, khub__bytes *json,
                               const char *file, khub_error *err)
{
    scanner s = {json->data, json->data, json->data + json->length, file, err};
    *rest = NULL;
    *found = 0;
    size_t valid = khub__utf8_valid(json->data, json->length);
    if (valid < json->length)
        return khub__fail(err, KHUB_E_FORMAT, "%s:%d: is not UTF-8", file, line_of(&s, s.start + valid));
    *found = find_vocab(&s);
    const char *start = s.at;
    int rc = *found ? read_pairs(&s, vocabulary) : KHUB_OK;
    if (rc != KHUB_OK) return rc;
    size_t lines = 0;
    for (const char *c = start; c < s.at; c++)
        lines += *c == '\n';
    *rest = *found ? without(&s, start, s.at, lines) : khub__strndup(json->data, json->length);
    return *rest ? KHUB_OK : khub__fail_memory(err, "reading a vocabulary");
}
