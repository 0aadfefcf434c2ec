#include "base/memory.h"

#include <stdlib.h>

static khub_allocator current = {malloc, realloc, free};

void khub_set_allocator(const khub_allocator *allocator)
{
    static const khub_allocator c_library = {malloc, realloc, free};
    current = allocator ? *allocator : c_library;
}

void khub_free(void *p)
{
    khub__free(p);
}

void *khub__malloc(size_t bytes)
{
    return current.alloc(bytes ? bytes : 1);
}

void *khub__calloc(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) return NULL;
    void *p = khub__malloc(count * size);
    return p ? memset(p, 0, count * size) : NULL;
}

void *khub__realloc(void *p, size_t bytes)
{
    return current.realloc(p, bytes ? bytes : 1);
}

void khub__free(void *p)
{
    if (p) current.free(p);
}

char *khub__strdup(const char *text)
{
    return text ? khub__strndup(text, strlen(text)) : NULL;
}

char *khub__strndup(const char *text, size_t bytes)
{
    char *copy = khub__malloc(bytes + 1);
    if (!copy) return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

int khub__grow(void **items, size_t *capacity, size_t need, size_t size, size_t max)
{
    if (need <= *capacity) return 0;
    if (need > max) return -1;
    size_t wanted = *capacity ? *capacity : 8;
    while (wanted < need)
        wanted = wanted > max / 2 ? max : wanted * 2;
    if (wanted > SIZE_MAX / size) return -1;
    void *grown = khub__realloc(*items, wanted * size);
    if (!grown) return -1;
    *items = grown;
    *capacity = wanted;
    return 0;
}
