#include "layer/idle.h"

enum { WHY = 600 };

/* 1: somebody wrote it, and named a kernel. */
static int is_named(const khub__mapped *mapped)
{
    int named = 0;
    for (size_t i = 0; i < mapped->count; i++)
        named |= !mapped->entries[i]->built_in && khub__entry_names_kernel(mapped->entries[i]);
    return named;
}

static int is_of(const khub__key_part *part, const khub_slot *slot)
{
    return !strcmp(part->layer, slot->layer->name);
}

static int takes_part(const khub__key_part *part, const khub_slot *slot)
{
    if (part->first && slot->first && part->first != slot->first) return 0;
    return is_of(part, slot) && khub__pattern_takes(part->pattern, slot->path);
}

/* As the mapping's own choice (candidates.c): one part takes a slot by its own layer, also a run's. */
static int takes(const khub__key *key, const khub_slot *slot)
{
    if (key->part_count == 1) return takes_part(&key->part[0], slot);
    if (key->part_count != slot->part_count) return 0;
    for (size_t i = 0; i < key->part_count; i++)
        if (!takes_part(&key->part[i], slot->parts[i])) return 0;
    return 1;
}

static int takes_any(const khub__key *key, const khub_layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        if (takes(key, layers->slots[i])) return 1;
    return 0;
}

/* How many of the pattern's segments stand in the path at the same place, up to a "**". */
static size_t likeness(const char *pattern, const char *path)
{
    size_t same = 0;
    while (*pattern && *path) {
        size_t n = strcspn(pattern, "."), m = strcspn(path, ".");
        if (n == 2 && !memcmp(pattern, "**", n)) return same;
        same += (n == 1 && *pattern == '*') || (n == m && !memcmp(pattern, path, n));
        pattern += n + (pattern[n] == '.');
        path += m + (path[m] == '.');
    }
    return same;
}

/* Why one part takes no slot; 0: it takes some. */
static int part_why(char why[WHY], const khub__key_part *part, const khub_layers *layers)
{
    const khub_slot *nearest = NULL;
    size_t count = 0, best = 0;
    for (size_t i = 0; i < layers->count; i++) {
        const khub_slot *slot = layers->slots[i];
        if (!is_of(part, slot)) continue;
        if (takes_part(part, slot)) return 0;
        size_t like = likeness(part->pattern, slot->path);
        if (!count++ || like > best) nearest = slot, best = like;
    }
    if (nearest)
        snprintf(why, WHY, "none of the %zu slots of %s has such a path, as %s has", count, part->layer,
                 nearest->path);
    else
        snprintf(why, WHY, "no slot is of this layer");
    return 1;
}

static void find_why(char why[WHY], const khub__key *key, const khub_layers *layers)
{
    for (size_t i = 0; key && i < key->part_count; i++)
        if (part_why(why, &key->part[i], layers)) return;
    snprintf(why, WHY, key ? "no slots are such a run" : "no slot is of this layer");
}

void khub__idle_keys(const khub__decision *d,
                     void (*tell)(void *to, const khub__mapped *mapped, const char *why), void *to)
{
    const khub_mapping *mapping = d->sources->mapping;
    char why[WHY];
    for (size_t i = 0; i < mapping->key_count; i++) {
        const khub__mapped *mapped = &mapping->keys[i];
        if (d->counted[i] || !is_named(mapped)) continue;
        if (mapped->key && takes_any(mapped->key, d->layers)) continue;
        find_why(why, mapped->key, d->layers);
        tell(to, mapped, why);
    }
}
