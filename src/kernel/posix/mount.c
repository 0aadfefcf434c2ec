#include "kernel/posix/mount.h"

#include "base/error.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

/* Undoes the \040 (octal) that the kernel writes for blanks and the like. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        int octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3];
        *to = octal ? (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0')) : *from;
        from += octal ? 4 : 1;
    }
    *to = 0;
}

static int is_above(const char *mount, const char *path)
{
    size_t n = strlen(mount);
    return !strcmp(mount, "/") || (!strncmp(mount, path, n) && (path[n] == '/' || !path[n]));
}

/* The mount point above the real path; later lines of mountinfo cover earlier ones. "": not found out. */
static void find_mount(const char *path, char mount[PATH_MAX])
{
    char real[PATH_MAX], line[2 * PATH_MAX + 1];
    mount[0] = 0;
    FILE *f = realpath(path, real) ? fopen("/proc/self/mountinfo", "re") : NULL;
    while (f && fgets(line, sizeof(line), f)) {
        char point[PATH_MAX];
        if (sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1) continue;
        unescape(point);
        if (is_above(point, real) && strlen(point) >= strlen(mount)) memcpy(mount, point, strlen(point) + 1);
    }
    if (f) fclose(f);
}

int khub__mount_check(const char *path, khub_error *err)
{
    struct statvfs fs;
    if (statvfs(path, &fs) != 0 || !(fs.f_flag & ST_NOEXEC)) return KHUB_OK;
    char mount[PATH_MAX];
    find_mount(path, mount);
    return khub__fail(err, KHUB_E_LOAD,
                      "%s: lies on a file system mounted noexec%s%s: no library can be loaded from there",
                      path, mount[0] ? ", at " : "", mount);
}
