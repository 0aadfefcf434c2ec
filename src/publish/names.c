#include "publish/names.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>

enum { NAMES_MAX = 1 << 24, GROUPS_MAX = 1 << 16, SHOWN = 6 };

void khub__names_add(khub__names *names, const char *name)
{
    if (names->failed) return;
    names->failed = khub__grow((void **)&names->items, &names->capacity, names->count + 1,
                               sizeof(*names->items), NAMES_MAX) != 0;
    if (!names->failed) names->items[names->count++] = name;
}

int khub__names_have(const khub__names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (!strcmp(names->items[i], name)) return 1;
    return 0;
}

void khub__names_free(khub__names *names)
{
    khub__free(names->items);
    memset(names, 0, sizeof(*names));
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void khub__names_sort(khub__names *names)
{
    size_t kept = 0;
    if (names->count) qsort(names->items, names->count, sizeof(*names->items), by_bytes);
    for (size_t i = 0; i < names->count; i++)
        if (!kept || strcmp(names->items[kept - 1], names->items[i]) != 0)
            names->items[kept++] = names->items[i];
    names->count = kept;
}

char *khub__names_words(const khub__names *names)
{
    khub__text text = {0};
    size_t shown = names->count <= SHOWN + 1 ? names->count : SHOWN;
    khub__text_add(&text, "");
    for (size_t i = 0; i < shown; i++)
        khub__text_addf(&text, "%s%s", i ? ", " : "", names->items[i]);
    if (shown < names->count) khub__text_addf(&text, " and %zu more", names->count - shown);
    return khub__text_take(&text);
}

/* NULL: no memory. */
static khub__group *group_of(khub__groups *groups, const char *key)
{
    int64_t at = khub__index_find(&groups->keys, key);
    if (at >= 0) return &groups->items[at];
    groups->failed |= khub__grow((void **)&groups->items, &groups->capacity, groups->count + 1,
                                 sizeof(*groups->items), GROUPS_MAX) != 0 ||
                      khub__index_add(&groups->keys, key, (uint32_t)groups->count) != 0;
    if (groups->failed) return NULL;
    groups->items[groups->count] = (khub__group){.key = key};
    return &groups->items[groups->count++];
}

void khub__groups_add(khub__groups *groups, const char *key, const char *name)
{
    khub__group *group = groups->failed ? NULL : group_of(groups, key);
    if (group) khub__names_add(&group->names, name);
}

int khub__groups_sort(khub__groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        khub__names_sort(&groups->items[i].names);
        groups->failed |= groups->items[i].names.failed;
    }
    return !groups->failed;
}

void khub__groups_free(khub__groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        khub__names_free(&groups->items[i].names);
    khub__free(groups->items);
    khub__index_free(&groups->keys);
    memset(groups, 0, sizeof(*groups));
}
