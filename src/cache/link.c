/* What a link says, as text. */
#include "cache/link.h"

#include "base/path.h"

#include <stdio.h>

/* "/a/b/../c" without "." and "..", in place. */
static void normalize(char *path)
{
    char *to = path;
    for (const char *at = path; *at;) {
        size_t n = strcspn(at + 1, "/") + 1; /* "/part" */
        if (n == 3 && !strncmp(at, "/..", 3)) {
            while (to > path && *--to != '/')
                ;
        } else if (n > 1 && !(n == 2 && at[1] == '.')) {
            memmove(to, at, n);
            to += n;
        }
        at += n;
    }
    *to = 0;
}

const char *khub__link_blob(const char *repo_path, const char *from, const char *target)
{
    char path[4096];
    int n = target[0] == '/' ? snprintf(path, sizeof(path), "%s", target)
                             : snprintf(path, sizeof(path), "%.*s/%s",
                                        (int)(khub__path_name(from) - from - 1), from, target);
    if (n <= 0 || (size_t)n >= sizeof(path)) return NULL;
    normalize(path);
    size_t length = strlen(repo_path);
    if (strncmp(path, repo_path, length) != 0 || strncmp(path + length, "/blobs/", 7) != 0) return NULL;
    const char *name = khub__path_name(target);
    return path[length + 7] && !strcmp(path + length + 7, name) ? name : NULL;
}
