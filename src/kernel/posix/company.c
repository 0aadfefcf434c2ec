#include "kernel/rehearsal.h"

#include "platform/system.h"
#include "trust/held.h"

#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_MAX = 4400, FIELDS = 5 /* before the path */ };

/* "loaded by khub 0.1.0 since 1f0a…, LD_LIBRARY_PATH=/opt/lib". 0: no line can hold it. */
static int write_first(char out[LINE_MAX])
{
    char start[KHUB__BOOT_MAX]; /* a kernel may ask what the processor can, which is another then */
    const char *search = getenv("LD_LIBRARY_PATH");
    khub__system_boot(start);
    if (!*start || (search && strchr(search, '\n'))) return 0;
    int n = snprintf(out, LINE_MAX, "loaded by khub %s since %s, LD_LIBRARY_PATH=%s\n", khub_version(), start,
                     search ? search : "");
    return n > 0 && n < LINE_MAX;
}

/* "with 2049 7 105144 1764511234000000000 /usr/lib/libm.so.6"; 0: there is none. */
static int write_library(char out[LINE_MAX], const char *path)
{
    khub__identity is;
    if (strchr(path, '\n') || khub__identify(&is, NULL, path, 0) != 0) return 0;
    int n = snprintf(out, LINE_MAX, "with %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %s\n", is.device,
                     is.inode, is.size, is.changed_ns, path);
    return n > 0 && n < LINE_MAX;
}

/* The program, and what the system has without a file, have no path. */
static int is_library(const struct dl_phdr_info *info)
{
    return strchr(info->dlpi_name, '/') != NULL;
}

/* ---- writing ---- */

static int add_library(struct dl_phdr_info *info, size_t size, void *text)
{
    char line[LINE_MAX];
    (void)size;
    if (!is_library(info)) return 0;
    if (!write_library(line, info->dlpi_name)) return 1;
    khub__text_add(text, line);
    return 0;
}

int khub__company_write(khub__text *text)
{
    char line[LINE_MAX];
    if (!write_first(line)) return 0;
    khub__text_add(text, line);
    return dl_iterate_phdr(add_library, text) == 0 && !text->failed;
}

/* ---- comparing ---- */

/* 1: it isn't among the lines. */
static int is_missing(struct dl_phdr_info *info, size_t size, void *lines)
{
    char end[LINE_MAX];
    (void)size;
    if (!is_library(info)) return 0;
    int n = snprintf(end, sizeof(end), " %s\n", info->dlpi_name);
    return n < 0 || n >= LINE_MAX || !strstr(lines, end);
}

/* What stands behind the numbers of a line of write_library's. 0: it is none. */
static int read_path(char out[LINE_MAX], const char *line, size_t length)
{
    char text[LINE_MAX];
    if (length >= LINE_MAX) return 0;
    memcpy(text, line, length);
    text[length] = 0;
    const char *at = text;
    for (int i = 0; at && i < FIELDS; i++)
        at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
    if (at) khub__copy(out, LINE_MAX, at);
    return at != NULL;
}

/* Each library is as it was. */
static int is_unchanged(const char *lines)
{
    char path[LINE_MAX], now[LINE_MAX];
    for (const char *end; *lines; lines = end + 1) {
        end = strchr(lines, '\n');
        if (!end || !read_path(path, lines, (size_t)(end - lines)) || !write_library(now, path)) return 0;
        if (strncmp(now, lines, (size_t)(end - lines) + 1) != 0) return 0;
    }
    return 1;
}

int khub__company_is(const char *lines)
{
    char line[LINE_MAX];
    size_t n = *lines && write_first(line) ? strlen(line) : 0;
    if (!n || strncmp(lines, line, n) != 0) return 0;
    union {
        const char *to;
        void *user; /* only read */
    } rest = {lines + n};
    return dl_iterate_phdr(is_missing, rest.user) == 0 && is_unchanged(lines + n);
}
