#include "serve/address.h"

#include "hub/repo.h"

#include <string.h>

enum { PARTS_MAX = 512, RAW_MAX = 3 * (SERVE_PATH_MAX + SERVE_REVISION_MAX + SERVE_ID_MAX) + 64 };

/* A path cut at its slashes, each part decoded. */
typedef struct parts {
    char text[RAW_MAX + 1];
    char *part[PARTS_MAX];
    size_t count;
} parts;

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int serve_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex(from[1]), low = high < 0 ? -1 : hex(from[2]);
        if (low < 0 || (high | low) == 0) return -1;
        *to++ = (char)(high << 4 | low);
        from += 2;
    }
    *to = 0;
    return 0;
}

int serve_is_path(const char *text)
{
    return khub__is_repo_path(text, strlen(text));
}

int serve_is_name(const char *text)
{
    size_t length = strlen(text);
    if (!length || length > SERVE_NAME_MAX || text[0] == '.' || strstr(text, "--") || strstr(text, ".."))
        return 0;
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}

void serve_encode(char *out, const char *text, int slashes)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        int plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c && strchr("-._~", c)) || (slashes && c == '/');
        if (plain) {
            *out++ = (char)c;
        } else {
            *out++ = '%';
            *out++ = digits[c >> 4];
            *out++ = digits[c & 15];
        }
    }
    *out = 0;
}

/* NULL, or what is wrong. */
static const char *cut(parts *out, const char *path)
{
    size_t length = strlen(path);
    if (path[0] != '/') return "an address starts with a slash";
    if (length > RAW_MAX) return "the address is too long";
    memcpy(out->text, path, length + 1);
    out->count = 0;
    if (length == 1) return NULL;
    for (char *at = out->text; at;) {
        char *slash = strchr(++at, '/');
        if (slash) *slash = 0;
        if (!*at) return "the address has an empty part";
        if (out->count == PARTS_MAX) return "the address has too many parts";
        if (serve_decode(at) != 0) return "the address isn't percent-encoded as it should be";
        out->part[out->count++] = at;
        at = slash;
    }
    return NULL;
}

/* Puts the parts from `first` on, joined with slashes. */
static const char *put_path(serve_address *out, const parts *in, size_t first)
{
    size_t used = 0;
    for (size_t i = first; i < in->count; i++) {
        size_t length = strlen(in->part[i]);
        if (used + length + 1 > SERVE_PATH_MAX) return "the path is too long";
        if (i > first) out->path[used++] = '/';
        memcpy(out->path + used, in->part[i], length + 1);
        used += length;
    }
    return used && !serve_is_path(out->path) ? "the path isn't one inside a repository" : NULL;
}

static const char *put_revision(serve_address *out, const char *text)
{
    if (strlen(text) > SERVE_REVISION_MAX || !serve_is_path(text)) return "the revision isn't a name of one";
    memcpy(out->revision, text, strlen(text) + 1);
    return NULL;
}

/* "ORG/NAME" from two parts, or "NAME" from one. */
static const char *put_id(serve_address *out, const parts *in, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (!serve_is_name(in->part[i])) return "the repository's name isn't one";
    size_t length = strlen(in->part[first]);
    memcpy(out->id, in->part[first], length + 1);
    if (count == 1) return NULL;
    out->id[length] = '/';
    memcpy(out->id + length + 1, in->part[first + 1], strlen(in->part[first + 1]) + 1);
    return NULL;
}

static int is(const parts *in, size_t i, const char *word)
{
    return i < in->count && !strcmp(in->part[i], word);
}

/* Index of the verb of a repository's address: 2 parts after `first`, or 1 for a model without an owner. */
static size_t verb_at(const parts *in, size_t first, serve_kind kind)
{
    static const char *const verbs[] = {"refs", "revision", "tree", "paths-info", "resolve"};
    for (size_t i = 0; kind == SERVE_MODEL && i < sizeof(verbs) / sizeof(*verbs); i++)
        if (is(in, first + 1, verbs[i]) && !is(in, first + 2, verbs[i])) return first + 1;
    return first + 2;
}

static const char nowhere[] = "there is no such address here";

/* /api/KINDS/ID…, from the ID on */
static const char *parse_repository(serve_address *out, const parts *in)
{
    size_t verb = verb_at(in, 2, out->kind);
    if (in->count < 4 && (out->kind == SERVE_KERNEL || in->count < 3)) return nowhere;
    const char *fault = put_id(out, in, 2, (verb < in->count ? verb : in->count) - 2);
    if (fault) return fault;
    if (verb >= in->count) {
        out->what = SERVE_INFO;
        return NULL;
    }
    if (is(in, verb, "refs") && in->count == verb + 1) {
        out->what = SERVE_REFS;
        return NULL;
    }
    if (in->count < verb + 2) return nowhere;
    out->what = is(in, verb, "tree") ? SERVE_TREE : is(in, verb, "paths-info") ? SERVE_PATHS : SERVE_INFO;
    if (out->what == SERVE_INFO && !is(in, verb, "revision")) return nowhere;
    if (out->what != SERVE_TREE && in->count != verb + 2) return nowhere;
    fault = put_revision(out, in->part[verb + 1]);
    return fault ? fault : put_path(out, in, verb + 2);
}

static const char *parse_api(serve_address *out, const parts *in)
{
    if (in->count == 2 && is(in, 1, "whoami-v2")) {
        out->what = SERVE_WHOAMI;
        return NULL;
    }
    if (in->count == 4 && is(in, 1, "organizations") && is(in, 3, "overview")) {
        out->what = SERVE_OVERVIEW;
        return put_id(out, in, 2, 1);
    }
    if (!is(in, 1, "kernels") && !is(in, 1, "models")) return nowhere;
    out->kind = is(in, 1, "kernels") ? SERVE_KERNEL : SERVE_MODEL;
    return parse_repository(out, in);
}

/* [/kernels]/ID/resolve/REV/PATH */
static const char *parse_resolve(serve_address *out, const parts *in)
{
    size_t first = is(in, 0, "kernels") && is(in, 3, "resolve");
    out->what = SERVE_RESOLVE;
    out->kind = first ? SERVE_KERNEL : SERVE_MODEL;
    size_t verb = verb_at(in, first, out->kind);
    if (!is(in, verb, "resolve") || in->count < verb + 3) return nowhere;
    const char *fault = put_id(out, in, first, verb - first);
    if (!fault) fault = put_revision(out, in->part[verb + 1]);
    return fault ? fault : put_path(out, in, verb + 2);
}

static const char *parse_parts(serve_address *out, const parts *in)
{
    if (!in->count) return NULL;
    if (in->count == 1 && is(in, 0, "metrics")) {
        out->what = SERVE_METRICS;
        return NULL;
    }
    return is(in, 0, "api") ? parse_api(out, in) : parse_resolve(out, in);
}

/* 1 when the query's value (up to "&") is what the Hub's clients send for yes. */
static int is_yes(const char *value, size_t length)
{
    return (length == 1 && value[0] == '1') ||
           (length == 4 && (!memcmp(value, "true", 4) || !memcmp(value, "True", 4)));
}

static uint64_t number(const char *value, size_t length)
{
    uint64_t n = 0;
    for (size_t i = 0; i < length && i < 18 && value[i] >= '0' && value[i] <= '9'; i++)
        n = n * 10 + (uint64_t)(value[i] - '0');
    return n;
}

static void read_query(serve_address *out, const char *query)
{
    while (query && *query) {
        size_t length = strcspn(query, "&"), name = strcspn(query, "=&");
        const char *value = query + name + (name < length);
        size_t rest = (size_t)(query + length - value);
        if (name == 9 && !memcmp(query, "recursive", 9)) out->recursive = is_yes(value, rest);
        if (name == 11 && !memcmp(query, "include_prs", 11)) out->pull_requests = is_yes(value, rest);
        if (name == 6 && !memcmp(query, "cursor", 6)) out->cursor = number(value, rest);
        query += length + (query[length] == '&');
    }
}

const char *serve_address_parse(serve_address *out, unsigned *status, const char *path, const char *query)
{
    parts in;
    memset(out, 0, sizeof(*out));
    const char *fault = cut(&in, path);
    if (!fault) fault = parse_parts(out, &in);
    *status = !fault ? 200 : fault == nowhere ? 404 : 400;
    if (!fault) read_query(out, query);
    return fault;
}
