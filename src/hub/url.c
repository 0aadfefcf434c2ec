#include "hub/url.h"

#include "base/error.h"
#include "base/memory.h"

#include <ctype.h>

/* Length of "http://" or "https://" at the start; 0: neither. */
static size_t scheme(int *https, const char *text)
{
    size_t length = strcspn(text, ":");
    *https = khub__is_word(text, length, "https");
    if (strncmp(text + length, "://", 3) != 0 || (!*https && !khub__is_word(text, length, "http"))) return 0;
    return length + 3;
}

static size_t host_length(const char *text)
{
    if (*text != '[')
        return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
    size_t n = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
    return n > 2 && text[n] == ']' ? n + 1 : 0;
}

/* Reads ":PORT" if it is there; returns what follows, NULL when it is no port. */
static const char *read_port(unsigned *port, const char *text)
{
    if (*text != ':') return text;
    size_t digits = strspn(++text, "0123456789");
    if (digits == 0 || digits > 5) return NULL;
    *port = 0;
    for (size_t i = 0; i < digits; i++)
        *port = *port * 10 + (unsigned)(text[i] - '0');
    return *port > 0 && *port < 65536 ? text + digits : NULL;
}

static int is_plain(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text >= 127 || strchr("\\\"<>^`{|}", *text)) return 0;
    return 1;
}

int khub__url_parse(khub__url *out, const char *text)
{
    memset(out, 0, sizeof(*out));
    size_t start = scheme(&out->https, text);
    if (!start || strlen(text) > KHUB__URL_MAX || !is_plain(text)) return -1;
    out->host = text + start;
    out->host_length = host_length(out->host);
    out->port = out->https ? 443 : 80;
    out->path = out->host_length ? read_port(&out->port, out->host + out->host_length) : NULL;
    return out->path && strchr("/?", *out->path) ? 0 : -1; /* strchr finds the NUL too */
}

void khub__url_tidy(char *text)
{
    int https;
    if (scheme(&https, text)) memcpy(text, https ? "https" : "http", https ? 5 : 4);
}

int khub__url_same_origin(const khub__url *a, const khub__url *b)
{
    return a->https == b->https && a->port == b->port && a->host_length == b->host_length &&
           khub__same_letters(a->host, b->host, a->host_length);
}

static void add_encoded(khub__text *text, const char *piece, const char *also)
{
    for (; *piece; piece++) {
        unsigned char c = (unsigned char)*piece;
        if (isalnum(c) || strchr("-._~", c) || (also && strchr(also, c)))
            khub__text_add_bytes(text, piece, 1);
        else
            khub__text_addf(text, "%%%02X", c);
    }
}

void khub__url_add_segment(khub__text *text, const char *part)
{
    add_encoded(text, part, NULL);
}

void khub__url_add_path(khub__text *text, const char *path)
{
    add_encoded(text, path, "/");
}

/* Adds the start of `base` that `location` goes on from. */
static void add_base(khub__text *text, const khub__url *base, const char *start, const char *location)
{
    if (location[0] == '/' && location[1] == '/') {
        khub__text_add(text, base->https ? "https:" : "http:");
        return;
    }
    size_t keep = strcspn(base->path, location[0] == '#' ? "#" : "?#");
    if (location[0] == '/')
        keep = 0;
    else if (location[0] && !strchr("?#", location[0]))
        while (keep > 0 && base->path[keep - 1] != '/')
            keep--;
    khub__text_add_bytes(text, start, (size_t)(base->path - start) + keep);
    if (keep == 0 && location[0] && location[0] != '/') khub__text_add(text, "/");
}

/* 1 for "SCHEME:..." */
static int has_scheme(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || (n && text[n] && strchr("+-.", text[n])))
        n++;
    return n > 0 && text[n] == ':';
}

/* Adds `location` without its fragment, encoded where it must be. */
static void add_location(khub__text *text, const char *location)
{
    for (const char *at = location; *at && *at != '#'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c <= ' ' || c >= 127 || strchr("\"<>^`{|}", c))
            khub__text_addf(text, "%%%02X", c);
        else
            khub__text_add_bytes(text, at, 1);
    }
}

int khub__url_resolve_any(char **out, const char *base, const char *location, khub_error *err)
{
    khub__url from, to;
    khub__text text = {0};
    int https;
    char shown[208];
    *out = NULL;
    khub__url_shown(shown, base);
    if (khub__url_parse(&from, base) != 0)
        return khub__fail(err, KHUB_E_NETWORK, "%s: isn't an address", shown);
    if (has_scheme(location) && !scheme(&https, location))
        return khub__fail(err, KHUB_E_NETWORK,
                          "%s: sends us to a %.*s address, only http and https are followed", shown,
                          (int)strcspn(location, ":") < 16 ? (int)strcspn(location, ":") : 16, location);
    if (!has_scheme(location)) add_base(&text, &from, base, location);
    add_location(&text, location);
    char *url = khub__text_take(&text);
    if (!url) return khub__fail_memory(err, "following a redirect");
    khub__url_tidy(url);
    if (khub__url_parse(&to, url) == 0) {
        *out = url;
        return KHUB_OK;
    }
    khub__free(url);
    return khub__fail(err, KHUB_E_NETWORK, "%s: sends us to something that isn't an address", shown);
}

int khub__url_resolve(char **out, const char *base, const char *location, khub_error *err)
{
    khub__url from, to;
    char shown[208];
    int rc = khub__url_resolve_any(out, base, location, err);
    if (rc != KHUB_OK) return rc;
    khub__url_parse(&from, base);
    khub__url_parse(&to, *out);
    if (!from.https || to.https) return KHUB_OK;
    khub__free(*out);
    *out = NULL;
    return khub__fail(err, KHUB_E_NETWORK, "%s: sends us from https to http, which isn't followed",
                      khub__url_shown(shown, base));
}

const char *khub__url_shown(char out[208], const char *url)
{
    size_t length = strcspn(url, "?#"), n = length < 200 ? length : 200;
    for (size_t i = 0; i < n; i++)
        out[i] = url[i] > ' ' && url[i] < 127 ? url[i] : '?';
    khub__copy(out + n, 208 - n, length > n ? "..." : "");
    return out;
}

void khub__url_hide_user(char *words)
{
    char *quote = strstr(words, " '"), *start = quote ? quote + 2 : strstr(words, "://");
    if (!start) return;
    char *scheme_end = strstr(start, "://"), *end = strrchr(start, '@');
    if (!end && quote && !strchr(start, '\'')) end = words + strlen(words); /* the quote is cut short */
    if (!end) return;
    if (scheme_end && scheme_end < end) start = scheme_end + 3;
    size_t dots = (size_t)(end - start) < 3 ? (size_t)(end - start) : 3;
    memmove(start + dots, end, strlen(end) + 1);
    memset(start, '.', dots);
}
