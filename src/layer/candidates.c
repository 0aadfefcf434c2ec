#include "layer/candidates.h"

#include "base/error.h"

#include <stdio.h>

/* Up to the last "." of a path. */
static size_t parent_length(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

static int same_parent(const char *a, const char *b)
{
    size_t n = parent_length(a);
    return n == parent_length(b) && !memcmp(a, b, n);
}

static int takes_part(const khub__key_part *part, const khub__wanted_slot *slot)
{
    return !strcmp(part->layer, slot->layer) && khub__pattern_takes(part->pattern, slot->path);
}

/* A key of one part takes a slot by its own layer, also one that stands for a run. */
static int takes(const khub__key *key, const khub__wanted_slot *slot)
{
    if (!key) return 0;
    if (key->part_count == 1) return takes_part(&key->part[0], slot);
    if (key->part_count != slot->part_count) return 0;
    for (size_t i = 0; i < key->part_count; i++)
        if (!takes_part(&key->part[i], &slot->parts[i]) ||
            !same_parent(slot->parts[0].path, slot->parts[i].path))
            return 0;
    return 1;
}

/* 1: nothing says where the entry would apply. */
static int is_nowhere(const khub__entry *entry)
{
    return entry->read != KHUB__ENTRY_ALL;
}

static int holds(const khub__target *target, khub__on on)
{
    return target->device == on.device &&
           (khub__target_is_whole(target) || (on.capability >= target->min && on.capability <= target->max));
}

/* Smaller ranges first; of two of one size the one that starts higher. */
static int is_smaller(const khub__target *a, const khub__target *b)
{
    int64_t na = (int64_t)a->max - a->min, nb = (int64_t)b->max - b->min;
    return na != nb ? na < nb : a->min > b->min;
}

/* The target of a key's entries that counts on the device; NULL: none, and *miss is told when more of it fits
 * than of the keys before. */
static const khub__target *find_target(const khub__mapped *mapped, khub__on on, khub__miss *miss)
{
    const khub__target *best = NULL, *any = NULL;
    khub__miss own = KHUB__MISS_DEVICE;
    for (size_t i = 0; i < mapped->count; i++) {
        const khub__entry *entry = mapped->entries[i];
        if (is_nowhere(entry)) continue;
        if (entry->target.device == KHUB__DEVICE_ANY) any = &entry->target;
        if (entry->target.device == on.device) own = KHUB__MISS_CAPABILITY;
        if (holds(&entry->target, on) && (!best || is_smaller(&entry->target, best))) best = &entry->target;
    }
    if (!best && !any && own > *miss) *miss = own;
    return best ? best : any;
}

static void add_modes(khub__candidates *out, const khub__mapped *mapped, const khub__target *target, int mode)
{
    for (const int *m = khub__mode_order(mode); m && *m; m++)
        for (size_t i = 0; i < mapped->count; i++) {
            const khub__entry *entry = mapped->entries[i];
            if (!is_nowhere(entry) && entry->line.mode == *m && khub__target_same(&entry->target, target))
                out->entry[out->count++] = entry;
        }
}

/* What couldn't be read might have been meant for this slot: it is the last candidate, so that its fault is
 * told. */
static void add_fault(khub__candidates *out, const khub__mapped *mapped)
{
    for (size_t i = 0; i < mapped->count && out->count < KHUB__CANDIDATES; i++)
        if (is_nowhere(mapped->entries[i])) {
            out->entry[out->count++] = mapped->entries[i];
            return;
        }
}

static int has_faults(const khub__mapped *mapped)
{
    for (size_t i = 0; i < mapped->count; i++)
        if (is_nowhere(mapped->entries[i])) return 1;
    return 0;
}

void khub__candidates_find(khub__candidates *out, const khub_mapping *mapping, const khub__wanted_slot *slot,
                           khub__on on, int mode)
{
    const khub__mapped *best = NULL;
    const khub__target *target = NULL;
    out->count = 0;
    out->miss = mapping->forbidden_by ? KHUB__MISS_FORBIDDEN : KHUB__MISS_LAYER;
    for (size_t i = 0; i < mapping->key_count; i++) {
        const khub__mapped *mapped = &mapping->keys[i];
        if (!mapped->count || !takes(mapped->key, slot)) continue;
        const khub__target *own = find_target(mapped, on, &out->miss);
        if (!own && !has_faults(mapped)) continue;
        if (best && khub__key_compare(mapped->key, best->key) < 0) continue;
        best = mapped; /* of two alike the later one */
        target = own;
    }
    if (!best) return;
    if (target) add_modes(out, best, target, mode);
    add_fault(out, best);
    if (!out->count) out->miss = KHUB__MISS_MODE;
}

int khub__candidates_miss(khub_error *err, const khub__candidates *candidates, const khub_mapping *mapping,
                          const char *layer, khub__on on, int mode)
{
    char device[KHUB__TARGET_MAX];
    khub__target one = {on.device, on.capability, on.capability};
    if (on.capability == KHUB__CAPABILITY_UNKNOWN) one = (khub__target){on.device, 0, KHUB__CAPABILITY_LAST};
    khub__target_text(device, &one);
    switch (candidates->miss) {
    case KHUB__MISS_FORBIDDEN:
        return khub__fail(err, KHUB_E_NOTFOUND, "kernels are switched off by %s", mapping->forbidden_by);
    case KHUB__MISS_DEVICE:
        return khub__fail(err, KHUB_E_NOTFOUND, "the mapping has no kernel for %s on %s", layer,
                          khub__device_name(on.device));
    case KHUB__MISS_CAPABILITY:
        return khub__fail(
            err, KHUB_E_NOTFOUND,
            "the mapping has kernels for %s on %s, but for no range of capabilities that holds %s", layer,
            khub__device_name(on.device), one.min == one.max ? device : "an unknown one");
    case KHUB__MISS_MODE:
        return khub__fail(err, KHUB_E_NOTFOUND, "the mapping has no kernel for %s in mode %s on %s", layer,
                          khub__mode_text(mode), device);
    default:
        return khub__fail(err, KHUB_E_NOTFOUND, "the mapping has no kernel for %s", layer);
    }
}

int khub_mapping_find(const khub_mapping_line *out[KHUB_MAPPING_CANDIDATES], size_t *count,
                      const khub_mapping *mapping, const char *layer, const char *path, const char *device,
                      int mode, khub_error *err)
{
    khub__on on;
    khub__candidates all;
    int rc = khub__given("khub_mapping_find", out && count && mapping && layer && path && device, err);
    if (rc == KHUB_OK) rc = khub__on_parse(&on, device, err);
    if (rc == KHUB_OK && !khub__mode_order(mode))
        rc = khub__fail(err, KHUB_E_INVAL, "khub_mapping_find: %d is no mode of a slot", mode);
    if (rc != KHUB_OK) return rc;
    khub__wanted_slot slot = {layer, path, NULL, 0};
    khub__candidates_find(&all, mapping, &slot, on, mode);
    for (*count = 0; *count < all.count; ++*count)
        out[*count] = &all.entry[*count]->line;
    return all.count ? KHUB_OK : khub__candidates_miss(err, &all, mapping, layer, on, mode);
}
