/* The backends and how builds are named after them. */
#include "platform/version.h"

#include <stdio.h>

static const khub__backend backends[] = {
    {"cpu", "cpu", 0},     {"cuda", "cu", 1},   {"rocm", "rocm", 1},     {"xpu", "xpu", 1},
    {"metal", "metal", 0}, {"cann", "cann", 1}, {"neuron", "neuron", 0}, {"tpu", "tpu", 0},
};
enum { BACKEND_COUNT = sizeof(backends) / sizeof(*backends), MAX_DIGITS = 6 };

const khub__backend *khub__backend_find(const char *name)
{
    for (size_t i = 0; i < BACKEND_COUNT; i++)
        if (!strcmp(backends[i].name, name)) return &backends[i];
    return NULL;
}

/* "128" as 12.8: at least two digits, nothing else. */
static int parse_digits(khub__version *version, const char *text)
{
    size_t n = strspn(text, "0123456789");
    if (n < 2 || n > MAX_DIGITS || text[n]) return 0;
    int major = 0;
    for (size_t i = 0; i + 1 < n; i++)
        major = major * 10 + (text[i] - '0');
    *version = (khub__version){major, text[n - 1] - '0', -1};
    return 1;
}

const khub__backend *khub__backend_parse(khub__version *version, const char *text)
{
    static const khub__version unknown = KHUB__VERSION_UNKNOWN;
    *version = unknown;
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        size_t n = strlen(backends[i].prefix);
        if (strncmp(text, backends[i].prefix, n) != 0) continue;
        if (backends[i].versioned ? parse_digits(version, text + n) : !text[n]) return &backends[i];
    }
    return NULL;
}

const char *khub__backend_text(const khub__backend *backend, khub__version v, char buffer[KHUB__VERSION_TEXT])
{
    if (backend->versioned && v.major >= 0 && v.minor >= 0 && v.minor <= 9)
        snprintf(buffer, KHUB__VERSION_TEXT, "%s%d%d", backend->prefix, v.major, v.minor);
    else
        snprintf(buffer, KHUB__VERSION_TEXT, "%s", backend->name);
    return buffer;
}
