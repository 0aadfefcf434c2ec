#include "paths.h"

#include <ctype.h>

/* Length of the part of a path up to its next "." or its end. */
static size_t part_length(const char *path)
{
    return strcspn(path, ".");
}

static int is_number(const char *part, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)part[i])) return 0;
    return length > 0;
}

int cli_paths_alike(const char *a, const char *b)
{
    for (;;) {
        size_t n = part_length(a), m = part_length(b);
        if (!(is_number(a, n) && is_number(b, m)) && (n != m || memcmp(a, b, n) != 0)) return 0;
        if (!a[n] || !b[m]) return a[n] == b[m];
        a += n + 1, b += m + 1;
    }
}

int cli_print_paths(FILE *to, const char *path, size_t count)
{
    int length = 0;
    for (;;) {
        size_t n = part_length(path);
        int star = count > 1 && is_number(path, n), shown = star ? 1 : (int)n;
        if (to) cli_print(to, "%.*s%s", shown, star ? "*" : path, path[n] ? "." : "");
        length += shown + (path[n] == '.');
        if (!path[n]) return length;
        path += n + 1;
    }
}
