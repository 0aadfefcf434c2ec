/* A mapping from JSON: keys, tables by device, tables by mode. */
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "layer/mapping.h"

#include <stdio.h>

static const khub__target everywhere = {KHUB__DEVICE_ANY, 0, KHUB__CAPABILITY_LAST};
static const khub__target nowhere = {KHUB__DEVICES, 0, KHUB__CAPABILITY_LAST};

typedef struct reader {
    khub_mapping *mapping;
    const khub__mapping_place *place;
    khub__mapped *mapped; /* the key at hand */
    khub_error *err;
} reader;

/* Rows of one key are compared with each other. */
enum { MAX_ROWS = 1000 };

static int add(const reader *r, khub__entry *entry)
{
    if (r->mapped->count < MAX_ROWS) return khub__mapped_add(r->mapped, entry, r->err);
    khub__entry_free(entry);
    return khub__fail(r->err, KHUB_E_FORMAT, "%s: %.200s: has more than %d entries", r->place->name,
                      r->mapped->text, MAX_ROWS);
}

static int add_fault(const reader *r, khub__entry_read read, const khub__target *target, const char *word,
                     const json_t *value, const char *fault)
{
    khub__entry *entry;
    int rc = khub__entry_faulty(&entry, r->mapped->text, read, target, word, value, fault, r->place, r->err);
    return rc == KHUB_OK ? add(r, entry) : rc;
}

/* A fault that may never become the reason of a slot. */
static void warn(const khub_error *why)
{
    khub__log(KHUB_LOG_WARNING, "layer", "", "%s", why->message);
}

static int add_leaf(const reader *r, const khub__target *target, int mode, const json_t *value)
{
    khub__entry *entry;
    int rc = khub__entry_parse(&entry, r->mapped->key, target, mode, value, r->place, r->err);
    return rc == KHUB_OK ? add(r, entry) : rc;
}

/* 1: an entry rather than a table of them. */
static int is_leaf(const json_t *value)
{
    return !json_is_object(value) || json_object_get(value, "kernel") || json_object_get(value, "function");
}

/* 1: one of the keys is a device's, or a mode's. */
static int has_words(const json_t *table, int (*is_word)(const char *text))
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)table, key, value)
        if (is_word(key)) return 1;
    return 0;
}

/* 1: another row says it already. */
static int has_row(const khub__mapped *mapped, const khub__target *target, int mode)
{
    for (size_t i = 0; i < mapped->count; i++)
        if (khub__target_same(&mapped->entries[i]->target, target) &&
            (!mode || mapped->entries[i]->line.mode == mode))
            return 1;
    return 0;
}

/* As with a key that stands twice in JSON, nobody knows which of them is meant. */
static int fail_again(const reader *r, const char *where, const char *word)
{
    return khub__fail(r->err, KHUB_E_FORMAT, "%s: \"%.60s\" says again what another row says", where, word);
}

/* One row of a table by mode. */
static int read_mode(const reader *r, const khub__target *target, const char *word, const json_t *value)
{
    char where[KHUB__WHERE_MAX];
    khub_error why = {0};
    int mode;
    khub__mapping_where(where, r->place, r->mapped->text, target, KHUB_MODE_FALLBACK);
    if (khub__mode_parse(&mode, word, where, &why) != KHUB_OK) {
        warn(&why);
        return add_fault(r, KHUB__ENTRY_MODE, target, word, value, why.message);
    }
    return has_row(r->mapped, target, mode) ? fail_again(r, where, word) : add_leaf(r, target, mode, value);
}

static int read_modes(const reader *r, const khub__target *target, const json_t *table)
{
    const char *word;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)table, word, value) {
        int rc = read_mode(r, target, word, value);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* What stands for one device: an entry, or a table by mode. `word`: as the device is written. */
static int read_device_value(const reader *r, const khub__target *target, const char *word,
                             const json_t *value)
{
    if (is_leaf(value)) return add_leaf(r, target, KHUB_MODE_FALLBACK, value);
    if (json_object_size(value)) return read_modes(r, target, value);
    char where[KHUB__WHERE_MAX], fault[KHUB__WHERE_MAX + 40];
    khub__mapping_where(where, r->place, r->mapped->text, target, KHUB_MODE_FALLBACK);
    snprintf(fault, sizeof(fault), "%s: is an empty table", where);
    return add_fault(r, KHUB__ENTRY_DEVICE, target, word, value, fault);
}

/* One row of a table by device. */
static int read_device(const reader *r, const char *word, const json_t *value)
{
    char where[KHUB__WHERE_MAX];
    khub_error why = {0};
    khub__target target;
    khub__mapping_where(where, r->place, r->mapped->text, NULL, KHUB_MODE_FALLBACK);
    int rc = khub__is_mode_word(word)
                 ? khub__fail(&why, KHUB_E_FORMAT,
                              "%s: the mode \"%.60s\" stands among devices; modes stand within a device",
                              where, word)
                 : khub__target_parse(&target, word, where, &why);
    if (rc != KHUB_OK) {
        warn(&why);
        return add_fault(r, KHUB__ENTRY_DEVICE, &nowhere, word, value, why.message);
    }
    return has_row(r->mapped, &target, 0) ? fail_again(r, where, word)
                                          : read_device_value(r, &target, word, value);
}

static int read_devices(const reader *r, const json_t *table)
{
    const char *word;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)table, word, value) {
        int rc = read_device(r, word, value);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

static int read_value(const reader *r, const json_t *value)
{
    if (is_leaf(value)) return add_leaf(r, &everywhere, KHUB_MODE_FALLBACK, value);
    if (has_words(value, khub__is_device_word)) return read_devices(r, value);
    if (has_words(value, khub__is_mode_word)) return read_modes(r, &everywhere, value);
    char where[KHUB__WHERE_MAX], fault[KHUB__WHERE_MAX + 200];
    khub__mapping_where(where, r->place, r->mapped->text, NULL, KHUB_MODE_FALLBACK);
    const char *first = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)value));
    snprintf(fault, sizeof(fault), "%s: \"kernel\" is missing%s%.60s%s", where, first ? ", and \"" : "",
             first ? first : "", first ? "\" is neither a device nor a mode" : "");
    return add_fault(r, KHUB__ENTRY_KEY, &everywhere, NULL, value, fault);
}

static int check_layers(const khub__key *key, const char *where, khub_error *err)
{
    for (size_t i = 0; i < key->part_count; i++) {
        int rc = khub__layer_check(key->part[i].layer, where, err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* A text that is no key is an entry of its own, with a fault. */
static int read_key(reader *r, const char *text, const json_t *value)
{
    char where[KHUB__WHERE_MAX];
    khub_error why = {0};
    khub__key *key;
    khub__mapping_where(where, r->place, text, NULL, KHUB_MODE_FALLBACK);
    int rc = khub__key_parse(&key, text, where, &why);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(r->err, "reading a mapping");
    if (rc == KHUB_OK && khub__mapping_find(r->mapping, key->text)) {
        rc = khub__fail(r->err, KHUB_E_FORMAT, "%s: the key \"%.200s\" stands twice", r->place->name,
                        key->text);
        khub__free(key);
        return rc;
    }
    if (rc == KHUB_OK) khub__mapping_where(where, r->place, key->text, NULL, KHUB_MODE_FALLBACK);
    if (rc == KHUB_OK) rc = check_layers(key, where, &why);
    r->mapped = khub__mapping_add_key(r->mapping, text, key);
    if (!r->mapped) return khub__fail_memory(r->err, "reading a mapping");
    if (rc == KHUB_OK) return read_value(r, value);
    warn(&why);
    return add_fault(r, KHUB__ENTRY_KEY, &everywhere, NULL, value, why.message);
}

static int read_all(reader *r, const json_t *root)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)root, key, value) {
        int rc = read_key(r, key, value);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

int khub__mapping_from(khub_mapping **out, json_t *root, const khub__mapping_place *place, khub_error *err)
{
    int rc = khub__mapping_begin(out, place->name, err);
    if (rc == KHUB_OK) {
        reader r = {*out, place, NULL, err};
        (*out)->built_in = place->built_in;
        rc = read_all(&r, root);
    }
    json_decref(root);
    if (rc == KHUB_OK) return KHUB_OK;
    khub_mapping_free(*out);
    *out = NULL;
    return rc;
}

int khub_mapping_parse(khub_mapping **out, const char *json, const char *name, khub_error *err)
{
    json_t *root;
    khub__mapping_place place = {name ? name : "mapping", NULL, 0};
    int rc = khub__given("khub_mapping_parse", out && json, err);
    if (rc != KHUB_OK) return rc;
    *out = NULL;
    size_t length = strlen(json);
    if (length > KHUB__MAPPING_MAX_BYTES)
        return khub__fail(err, KHUB_E_FORMAT, "%s: has %zu bytes, at most %zu are read", place.name, length,
                          KHUB__MAPPING_MAX_BYTES);
    rc = khub__json_parse(&root, json, length, place.name, err);
    return rc == KHUB_OK ? khub__mapping_from(out, root, &place, err) : rc;
}

int khub_mapping_read(khub_mapping **out, const char *file, khub_error *err)
{
    json_t *root;
    int rc = khub__given("khub_mapping_read", out && file, err);
    if (rc != KHUB_OK) return rc;
    *out = NULL;
    rc = khub__json_read(&root, file, KHUB__MAPPING_MAX_BYTES, err);
    if (rc != KHUB_OK) return rc;
    char *folder = khub__path_parent(file);
    khub__mapping_place place = {file, folder, 0};
    if (folder) {
        rc = khub__mapping_from(out, root, &place, err);
    } else {
        json_decref(root);
        rc = khub__fail_memory(err, "reading a mapping");
    }
    khub__free(folder);
    return rc;
}
