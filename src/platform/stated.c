#include "platform/stated.h"

#include "base/file.h"
#include "base/path.h"
#include "platform/version.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TEXT_FILE = 1 << 20, MAX_VERSION = 60 };

/* The file's text, or an empty one; freed with khub__bytes_free. */
static khub__bytes text_of(const char *dir, const char *file, khub__pool *pool)
{
    khub__bytes bytes = {0};
    const char *path = khub__pool_textf(pool, "%s/%s", dir, file);
    if (path && khub__file_read(&bytes, path, MAX_TEXT_FILE, NULL) == KHUB_E_NOMEM) pool->failed = 1;
    return bytes;
}

const char *khub__stated_name(const char *path, const char *name, khub__pool *pool)
{
    const char *file = khub__path_name(path);
    size_t n = strlen(name);
    khub__version version;
    if (strncmp(file, name, n) != 0 || file[n] != '.') return NULL;
    return khub__version_parse(&version, file + n + 1) == 0 ? khub__pool_text(pool, file + n + 1) : NULL;
}

static const char *quoted_after(const char *text, const char *key, khub__pool *pool)
{
    khub__version version;
    for (const char *at = text ? strstr(text, key) : NULL; at; at = strstr(at + 1, key)) {
        const char *line_end = at + strcspn(at, "\n"), *start = at + strcspn(at, "'\"\n");
        const char *end = start < line_end ? start + 1 + strcspn(start + 1, "'\"\n") : start;
        if (start >= line_end || end - start > MAX_VERSION) continue;
        const char *copy = khub__pool_textf(pool, "%.*s", (int)(end - start - 1), start + 1);
        if (copy && khub__version_parse(&version, copy) == 0) return copy;
    }
    return NULL;
}

const char *khub__stated_quoted(const char *dir, const char *file, const char *key, khub__pool *pool)
{
    khub__bytes bytes = text_of(dir, file, pool);
    const char *version = quoted_after(bytes.data, key, pool);
    khub__bytes_free(&bytes);
    return version;
}

/* The number that the text has behind "define PREFIX_PART"; -1: none, or none of a version. */
static int defined(const char *text, const char *prefix, const char *part)
{
    char key[80], *end;
    snprintf(key, sizeof(key), "define %s_%s", prefix, part);
    const char *at = text ? strstr(text, key) : NULL;
    if (!at) return -1;
    at += strlen(key);
    unsigned long n = strtoul(at, &end, 10);
    return end == at || n > 99999 ? -1 : (int)n;
}

const char *khub__stated_defines(const char *dir, const char *file, const char *prefix, khub__pool *pool)
{
    khub__bytes bytes = text_of(dir, file, pool);
    int major = defined(bytes.data, prefix, "MAJOR"), minor = defined(bytes.data, prefix, "MINOR");
    int patch = defined(bytes.data, prefix, "PATCH");
    khub__bytes_free(&bytes);
    return major < 0 || minor < 0 || patch < 0 ? NULL
                                               : khub__pool_textf(pool, "%d.%d.%d", major, minor, patch);
}

const char *khub__stated_word(const char *dir, const char *file, khub__pool *pool)
{
    const char *version = NULL;
    khub__version parsed;
    khub__bytes bytes = text_of(dir, file, pool);
    if (bytes.length && bytes.length < MAX_VERSION) {
        bytes.data[strcspn(bytes.data, " \r\n")] = 0;
        if (khub__version_parse(&parsed, bytes.data) == 0) version = khub__pool_text(pool, bytes.data);
    }
    khub__bytes_free(&bytes);
    return version;
}

const char *khub__above(const char *path, int up, khub__pool *pool)
{
    size_t n = strlen(path);
    for (int i = 0; i <= up; i++)
        while (n > 0 && path[--n] != '/') {}
    return khub__pool_textf(pool, "%.*s", (int)n, path);
}
