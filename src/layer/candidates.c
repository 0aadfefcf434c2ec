#include "layer/candidates.h"

#include "base/error.h"
#include "base/memory.h"

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
    if (part->first && slot->first && part->first != slot->first) return 0;
    return khub__pattern_takes(part->pattern, slot->path) && !strcmp(part->layer, slot->layer);
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
        const khub__target *target = &mapped->entries[i]->target;
        if (target->device == KHUB__DEVICE_ANY) any = target;
        if (target->device == on.device) own = KHUB__MISS_CAPABILITY;
        if (holds(target, on) && (!best || is_smaller(target, best))) best = target;
    }
    if (!best && !any && own > *miss) *miss = own;
    return best ? best : any;
}

/* The entries for a target: those that can be read by their modes, then one that can't, so that its fault is
 * told. */
static void add_entries(khub__candidates *out, const khub__mapped *mapped, const khub__target *target,
                        int mode)
{
    const khub__entry *fault = NULL;
    for (const int *m = khub__mode_order(mode); m && *m; m++)
        for (size_t i = 0; i < mapped->count; i++) {
            const khub__entry *entry = mapped->entries[i];
            if (!khub__target_same(&entry->target, target)) continue;
            if (entry->read != KHUB__ENTRY_ALL)
                fault = entry;
            else if (entry->line.mode == *m)
                out->entry[out->count++] = entry;
        }
    if (fault) out->entry[out->count++] = fault;
}

/* One of which nobody knows what device it was meant for. */
static const khub__entry *lost_entry(const khub__mapped *mapped)
{
    for (size_t i = 0; i < mapped->count; i++)
        if (mapped->entries[i]->target.device == KHUB__DEVICES) return mapped->entries[i];
    return NULL;
}

void khub__candidates_of(khub__candidates *out, const khub__mapped *mapped, khub__on on, int mode)
{
    out->count = 0;
    out->miss = KHUB__MISS_NONE;
    const khub__target *target = find_target(mapped, on, &out->miss);
    if (!target) return;
    add_entries(out, mapped, target, mode);
    if (!out->count) out->miss = KHUB__MISS_MODE;
}

/* 1: of two keys that take a slot the first counts; of two alike the later one. */
static int is_better(const khub__mapped *mapped, const khub__mapped *best)
{
    int order = best ? khub__key_compare(mapped->key, best->key) : 1;
    return order > 0 || (order == 0 && mapped > best);
}

/* What is known of the keys looked at so far. */
typedef struct search {
    const khub__wanted_slot *slot;
    khub__on on;
    const khub__mapped *best, *lost;
    khub__miss miss;
} search;

static void look_at(search *s, const khub__mapped *mapped)
{
    if (!mapped->count || !takes(mapped->key, s->slot)) return;
    if (find_target(mapped, s->on, &s->miss)) {
        if (is_better(mapped, s->best)) s->best = mapped;
    } else if (lost_entry(mapped) && is_better(mapped, s->lost)) {
        s->lost = mapped;
    }
}

static search begin(const khub_mapping *mapping, const khub__wanted_slot *slot, khub__on on)
{
    khub__miss miss = mapping->forbidden_by ? KHUB__MISS_FORBIDDEN : KHUB__MISS_LAYER;
    return (search){slot, on, NULL, NULL, miss};
}

static khub__counting end(const search *s)
{
    return (khub__counting){s->best ? s->best : s->lost, !s->best && s->lost, s->miss};
}

/* Where a key stands: by the first segment of its only pattern, if that says which paths it takes. */
static size_t shelf_of(const khub__key *key)
{
    uint32_t first = key && key->part_count == 1 && key->part[0].pattern ? key->part[0].first : 0;
    return first ? first % KHUB__SHELVES : KHUB__SHELVES;
}

int khub__shelves_make(khub__shelves *out, const khub_mapping *mapping, khub_error *err)
{
    *out = (khub__shelves){.mapping = mapping};
    out->next = khub__calloc(mapping->key_count, sizeof(*out->next));
    if (!out->next && mapping->key_count) return khub__fail_memory(err, "filling slots");
    for (size_t i = 0; i < mapping->key_count; i++) {
        uint32_t *last = &out->last[shelf_of(mapping->keys[i].key)];
        out->next[i] = *last;
        *last = (uint32_t)i + 1;
    }
    return KHUB_OK;
}

void khub__shelves_free(khub__shelves *shelves)
{
    khub__free(shelves->next);
}

static void look_on(search *s, const khub__shelves *shelves, size_t shelf)
{
    for (uint32_t at = shelves->last[shelf]; at; at = shelves->next[at - 1])
        look_at(s, &shelves->mapping->keys[at - 1]);
}

khub__counting khub__counting_find(const khub__shelves *shelves, const khub__wanted_slot *slot, khub__on on)
{
    search s = begin(shelves->mapping, slot, on);
    uint32_t first = slot->first ? slot->first : khub__first_segment(slot->path);
    for (size_t i = 0; !first && i < KHUB__SHELVES; i++) /* a path that begins with a star */
        look_on(&s, shelves, i);
    if (first) look_on(&s, shelves, first % KHUB__SHELVES);
    look_on(&s, shelves, KHUB__SHELVES);
    return end(&s);
}

void khub__candidates_from(khub__candidates *out, const khub__counting *counting, khub__on on, int mode)
{
    out->count = 0;
    out->miss = counting->miss;
    if (counting->lost)
        out->entry[out->count++] = lost_entry(counting->mapped);
    else if (counting->mapped)
        khub__candidates_of(out, counting->mapped, on, mode);
}

void khub__candidates_find(khub__candidates *out, const khub_mapping *mapping, const khub__wanted_slot *slot,
                           khub__on on, int mode)
{
    search s = begin(mapping, slot, on);
    for (size_t i = 0; i < mapping->key_count; i++)
        look_at(&s, &mapping->keys[i]);
    const khub__counting counting = end(&s);
    khub__candidates_from(out, &counting, on, mode);
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

static int take_question(khub__on *on, const char *device, int mode, khub_error *err)
{
    int rc = khub__on_parse(on, device, err);
    if (rc != KHUB_OK || khub__mode_order(mode)) return rc;
    return khub__fail(err, KHUB_E_INVAL,
                      "\"%s\" is no mode of a model: inference or training, with |compile or without",
                      khub__mode_text(mode));
}

int khub_mapping_find(const khub_mapping_line *out[KHUB_MAPPING_CANDIDATES], size_t *count,
                      const khub_mapping *mapping, const char *layer, const char *path, const char *device,
                      int mode, khub_error *err)
{
    khub__on on;
    khub__candidates all;
    int rc = khub__given("khub_mapping_find", out && count && mapping && layer && path && device, err);
    if (rc == KHUB_OK) rc = take_question(&on, device, mode, err);
    if (rc != KHUB_OK) return rc;
    khub__wanted_slot slot = {layer, path, NULL, 0};
    khub__candidates_find(&all, mapping, &slot, on, mode);
    for (*count = 0; *count < all.count; ++*count)
        out[*count] = &all.entry[*count]->line;
    return all.count ? KHUB_OK : khub__candidates_miss(err, &all, mapping, layer, on, mode);
}

int khub_mapping_rank(int *rank, const khub_mapping *mapping, size_t i, const char *device, int mode,
                      khub_error *err)
{
    khub__on on;
    int rc = khub__given("khub_mapping_rank", rank && mapping && device, err);
    if (rc == KHUB_OK) rc = take_question(&on, device, mode, err);
    if (rc != KHUB_OK) return rc;
    *rank = -1;
    for (size_t k = 0; k < mapping->key_count; i -= mapping->keys[k++].count) {
        if (i >= mapping->keys[k].count) continue;
        khub__candidates all;
        khub__candidates_of(&all, &mapping->keys[k], on, mode);
        for (size_t c = 0; c < all.count; c++)
            if (all.entry[c] == mapping->keys[k].entries[i]) *rank = (int)c;
        return KHUB_OK;
    }
    return khub__fail(err, KHUB_E_INVAL, "khub_mapping_rank: there is no such entry");
}
