#include "fetch/glob.h"

#include <stddef.h>
#include <string.h>

/* The "]" that ends the set whose "[" stands before `set`; NULL: "[" stands for itself. The first one in a
 * set is a member. */
static const char *set_end(const char *set)
{
    if (*set == '!') set++;
    return *set ? strchr(set + 1, ']') : NULL;
}

static int in_set(const char *set, const char *end, unsigned char c)
{
    int negated = *set == '!', found = 0;
    for (set += negated; set < end; set++) {
        unsigned char first = (unsigned char)*set, last = first;
        if (set[1] == '-' && set + 2 < end) last = (unsigned char)set[2], set += 2;
        found |= c >= first && c <= last;
    }
    return found != negated;
}

/* One step of the pattern that isn't "*" against one byte; the pattern behind it, or NULL: it doesn't fit. */
static const char *step(const char *pattern, unsigned char c)
{
    const char *end = *pattern == '[' ? set_end(pattern + 1) : NULL;
    if (end) return in_set(pattern + 1, end, c) ? end + 1 : NULL;
    return *pattern == '?' || (unsigned char)*pattern == c ? pattern + 1 : NULL;
}

/* Goes back to the last "*" only: an earlier one can't take more than it has to. */
int khub__glob(const char *pattern, const char *path)
{
    const char *star = NULL, *from = NULL, *next;
    size_t length = strlen(pattern);
    if (length && pattern[length - 1] == '/') return !strncmp(pattern, path, length);
    while (*path) {
        if (*pattern == '*') {
            star = ++pattern;
            from = path;
        } else if (*pattern && (next = step(pattern, (unsigned char)*path))) {
            pattern = next;
            path++;
        } else if (star) {
            pattern = star;
            path = ++from;
        } else {
            return 0;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}
