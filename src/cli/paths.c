#include "paths.h"

#include <ctype.h>
#include <stdlib.h>

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

/* A number before any text, and equal to any other. */
static int parts_order(const char *a, size_t n, const char *b, size_t m)
{
    int number_a = is_number(a, n), number_b = is_number(b, m);
    if (number_a || number_b) return number_b - number_a;
    int order = memcmp(a, b, n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

int cli_paths_order(const char *a, const char *b)
{
    for (;;) {
        size_t n = part_length(a), m = part_length(b);
        int order = parts_order(a, n, b, m);
        if (order) return order;
        if (!a[n] || !b[m]) return (a[n] != 0) - (b[m] != 0);
        a += n + 1, b += m + 1;
    }
}

typedef struct thing {
    const void *it;
    size_t number;
    int (*order)(const void *a, const void *b);
} thing;

static int by_order(const void *a, const void *b)
{
    const thing *x = a, *y = b;
    int order = x->order(x->it, y->it);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

size_t *cli_first_alike(const void *const *things, size_t count, int (*order)(const void *a, const void *b))
{
    thing *sorted = calloc(count + 1, sizeof(*sorted));
    size_t *first = calloc(count + 1, sizeof(*first));
    if (!sorted || !first) {
        free(sorted), free(first);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = (thing){things[i], i, order};
    qsort(sorted, count, sizeof(*sorted), by_order);
    for (size_t i = 0; i < count; i++) {
        int is_first = !i || order(sorted[i - 1].it, sorted[i].it) != 0;
        first[sorted[i].number] = is_first ? sorted[i].number : first[sorted[i - 1].number];
    }
    free(sorted);
    return first;
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
