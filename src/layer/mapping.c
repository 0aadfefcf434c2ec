#include "layer/mapping.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"

#include <stdlib.h>

enum { MAX_KEYS = 1 << 20, MAX_ENTRIES = 1 << 20 };

int khub__mapping_begin(khub_mapping **out, const char *name, khub_error *err)
{
    *out = khub__calloc(1, sizeof(**out));
    if (*out && ((*out)->name = khub__strdup(name)) != NULL) return KHUB_OK;
    khub__free(*out);
    *out = NULL;
    return khub__fail_memory(err, "making a mapping");
}

int khub_mapping_new(khub_mapping **out, khub_error *err)
{
    int rc = khub__given("khub_mapping_new", out != NULL, err);
    return rc == KHUB_OK ? khub__mapping_begin(out, "mapping", err) : rc;
}

static void free_mapped(khub__mapped *mapped)
{
    for (size_t i = 0; i < mapped->count; i++)
        khub__entry_free(mapped->entries[i]);
    khub__free(mapped->entries);
    khub__free(mapped->key);
    khub__free(mapped->text);
}

void khub_mapping_free(khub_mapping *mapping)
{
    if (!mapping) return;
    for (size_t i = 0; i < mapping->key_count; i++)
        free_mapped(&mapping->keys[i]);
    khub__index_free(&mapping->by_text);
    khub__free(mapping->keys);
    khub__free(mapping->name);
    khub__free(mapping);
}

khub__mapped *khub__mapping_find(const khub_mapping *mapping, const char *key)
{
    int64_t i = khub__index_find(&mapping->by_text, key);
    return i < 0 ? NULL : &mapping->keys[i];
}

khub__mapped *khub__mapping_add_key(khub_mapping *mapping, const char *text, khub__key *key)
{
    khub__mapped *mapped = NULL;
    char *own = khub__strdup(key ? key->text : text);
    if (own &&
        !khub__grow((void **)&mapping->keys, &mapping->key_capacity, mapping->key_count + 1, sizeof(*mapped),
                    MAX_KEYS) &&
        !khub__index_add(&mapping->by_text, own, (uint32_t)mapping->key_count)) {
        mapped = &mapping->keys[mapping->key_count++];
        *mapped = (khub__mapped){key, own, NULL, 0, 0};
        return mapped;
    }
    khub__free(own);
    khub__free(key);
    return NULL;
}

int khub__mapped_add(khub__mapped *mapped, khub__entry *entry, khub_error *err)
{
    if (khub__grow((void **)&mapped->entries, &mapped->capacity, mapped->count + 1, sizeof(entry),
                   MAX_ENTRIES)) {
        khub__entry_free(entry);
        return khub__fail_memory(err, "making a mapping");
    }
    mapped->entries[mapped->count++] = entry;
    return KHUB_OK;
}

static khub__entry *share(khub__entry *entry)
{
    atomic_fetch_add(&entry->refs, 1);
    return entry;
}

static int copy_key(khub__key **out, const khub__key *key, khub_error *err)
{
    *out = NULL;
    return key ? khub__key_parse(out, key->text, "", err) : KHUB_OK;
}

/* All of a key that `keep` takes, behind what the key has already. */
static int copy_mapped(khub_mapping *to, const khub__mapped *from,
                       int (*keep)(const khub__entry *entry, const khub__mapped *from,
                                   const khub_mapping *over),
                       const khub_mapping *over, khub_error *err)
{
    khub__mapped *mapped = khub__mapping_find(to, from->text);
    for (size_t i = 0; i < from->count; i++) {
        if (keep && !keep(from->entries[i], from, over)) continue;
        khub__key *key;
        if (!mapped) {
            if (copy_key(&key, from->key, err) != KHUB_OK) return KHUB_E_NOMEM;
            mapped = khub__mapping_add_key(to, from->text, key);
        }
        if (!mapped) return khub__fail_memory(err, "making a mapping");
        int rc = khub__mapped_add(mapped, share(from->entries[i]), err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* 1: says something for every device. */
static int covers_all(const khub__mapped *mapped)
{
    for (size_t i = 0; i < mapped->count; i++)
        if (mapped->entries[i]->target.device == KHUB__DEVICE_ANY) return 1;
    return 0;
}

/* 1: is about the same devices, or has the same word in place of them. */
static int same_place(const khub__entry *a, const khub__entry *b)
{
    return khub__target_same(&a->target, &b->target) &&
           (a->target.device != KHUB__DEVICES || !strcmp(a->word, b->word));
}

/* A layer without a pattern stands for each of its paths, too. */
static const khub__mapped *whole_layer(const khub_mapping *mapping, const khub__mapped *of)
{
    return of->key && of->key->part_count == 1 ? khub__mapping_find(mapping, of->key->part[0].layer) : NULL;
}

static int stays(const khub__entry *entry, const khub__mapped *from, const khub_mapping *over)
{
    const khub__mapped *layer = whole_layer(over, from), *same = khub__mapping_find(over, from->text);
    if ((layer && covers_all(layer)) || (same && covers_all(same))) return 0;
    for (size_t i = 0; same && i < same->count; i++)
        if (entry->read == KHUB__ENTRY_KEY || same_place(same->entries[i], entry)) return 0;
    return 1;
}

static int copy_all(khub_mapping *to, const khub_mapping *from,
                    int (*keep)(const khub__entry *, const khub__mapped *, const khub_mapping *),
                    const khub_mapping *over, khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t i = 0; i < from->key_count && rc == KHUB_OK; i++)
        rc = copy_mapped(to, &from->keys[i], keep, over, err);
    return rc;
}

int khub_mapping_merge(khub_mapping *mapping, const khub_mapping *over, khub_error *err)
{
    khub_mapping *merged;
    int rc = khub__given("khub_mapping_merge", mapping && over, err);
    if (rc != KHUB_OK || !over->key_count) return rc;
    rc = khub__mapping_begin(&merged, mapping->built_in ? over->name : mapping->name, err);
    if (rc == KHUB_OK) rc = copy_all(merged, mapping, stays, over, err);
    if (rc == KHUB_OK) rc = copy_all(merged, over, NULL, NULL, err);
    if (rc == KHUB_OK) {
        khub_mapping before = *mapping;
        merged->built_in = mapping->built_in && over->built_in;
        *mapping = *merged;
        *merged = before;
    }
    khub_mapping_free(merged);
    return rc;
}

/* Where the entry is for. */
static int place_given(khub__target *target, int *mode, const khub_mapping_entry *given, const char *where,
                       khub_error *err)
{
    *target = (khub__target){KHUB__DEVICE_ANY, 0, KHUB__CAPABILITY_LAST};
    *mode = given->mode ? given->mode : KHUB_MODE_FALLBACK;
    int rc = given->device ? khub__target_parse(target, given->device, where, err) : KHUB_OK;
    if (rc == KHUB_OK && !khub__mode_is_entry(*mode))
        rc = khub__fail(err, KHUB_E_FORMAT, "%s: %d is no mode of an entry", where, *mode);
    return rc;
}

/* Adds the kernel's name to the object. */
static int add_kernel(json_t *spec, const char *kernel, const char *where, khub_error *err)
{
    json_t *name = json_string(kernel), *bytes = name ? NULL : json_string_nocheck(kernel);
    int rc = bytes ? khub__fail(err, KHUB_E_FORMAT, "%s: the kernel's name isn't UTF-8", where) : KHUB_OK;
    json_decref(bytes);
    if (rc == KHUB_OK && json_object_set_new(spec, "kernel", name) != 0)
        rc = khub__fail_memory(err, "making a mapping");
    return rc;
}

/* As it would stand in a file. */
static int value_given(json_t **out, const khub_mapping_entry *given, const char *where, khub_error *err)
{
    if (!given->spec) {
        *out = json_string_nocheck(given->kernel);
        return *out ? KHUB_OK : khub__fail_memory(err, "making a mapping");
    }
    int rc = khub__json_parse(out, given->spec, strlen(given->spec), where, err);
    if (rc == KHUB_OK) rc = add_kernel(*out, given->kernel, where, err);
    if (rc != KHUB_OK) json_decref(*out);
    return rc;
}

static int entry_given(khub__entry **out, const khub__key *key, const khub_mapping_entry *given,
                       const char *from, khub_error *err)
{
    const khub__mapping_place place = {from, NULL, 0};
    char where[KHUB__WHERE_MAX];
    khub__target target;
    json_t *value;
    int mode;
    khub__mapping_where(where, &place, key->text, NULL, KHUB_MODE_FALLBACK);
    int rc = place_given(&target, &mode, given, where, err);
    if (rc == KHUB_OK) rc = value_given(&value, given, where, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__entry_parse(out, key, &target, mode, value, &place, err);
    json_decref(value);
    if (rc != KHUB_OK || !(*out)->fault) return rc;
    rc = khub__fail(err, KHUB_E_FORMAT, "%s", (*out)->fault);
    khub__entry_free(*out);
    return rc;
}

/* Takes the entry over, in the place of what is there for the same. */
static int put(khub__mapped *mapped, khub__entry *entry, khub_error *err)
{
    for (size_t i = 0; i < mapped->count; i++) {
        khub__entry *there = mapped->entries[i];
        int is_row = there->read == KHUB__ENTRY_DEVICE ||
                     (there->read == KHUB__ENTRY_ALL && there->line.mode == entry->line.mode);
        if (there->read != KHUB__ENTRY_KEY && !(is_row && khub__target_same(&there->target, &entry->target)))
            continue;
        mapped->entries[i] = entry;
        khub__entry_free(there);
        return KHUB_OK;
    }
    return khub__mapped_add(mapped, entry, err);
}

/* Key and entry are taken over. */
static int set(khub_mapping *mapping, khub__key *key, khub__entry *entry, khub_error *err)
{
    khub__mapped *mapped = khub__mapping_find(mapping, key->text);
    if (mapped)
        khub__free(key);
    else
        mapped = khub__mapping_add_key(mapping, key->text, key);
    if (mapped) return put(mapped, entry, err);
    khub__entry_free(entry);
    return khub__fail_memory(err, "making a mapping");
}

int khub__mapping_put(khub_mapping *mapping, const char *key, const khub_mapping_entry *given,
                      const char *from, khub_error *err)
{
    khub__key *parsed = NULL;
    khub__entry *entry;
    khub_error why = {0};
    int rc = khub__key_parse(&parsed, key, from, &why);
    for (size_t i = 0; rc == KHUB_OK && i < parsed->part_count; i++)
        rc = khub__layer_check(parsed->part[i].layer, from, &why);
    if (rc == KHUB_OK) rc = entry_given(&entry, parsed, given, from, &why);
    if (rc == KHUB_OK) {
        mapping->built_in = 0;
        return set(mapping, parsed, entry, err);
    }
    khub__free(parsed);
    return khub__fail(err, rc == KHUB_E_NOMEM ? rc : KHUB_E_INVAL, "%s", why.message);
}

int khub_mapping_set(khub_mapping *mapping, const char *key, const khub_mapping_entry *given, khub_error *err)
{
    khub_mapping_entry own;
    int rc = khub__given("khub_mapping_set", mapping && key && given && given->kernel, err);
    if (rc == KHUB_OK) rc = khub__options(&own, sizeof(own), given, "khub_mapping_entry", err);
    return rc == KHUB_OK ? khub__mapping_put(mapping, key, &own, "khub_mapping_set", err) : rc;
}

const khub_mapping_line *khub_mapping_at(const khub_mapping *mapping, size_t i)
{
    for (size_t k = 0; k < mapping->key_count; k++) {
        if (i < mapping->keys[k].count) return &mapping->keys[k].entries[i]->line;
        i -= mapping->keys[k].count;
    }
    return NULL;
}
