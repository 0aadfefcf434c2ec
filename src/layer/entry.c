/* What stands behind a key, a device and a mode of a mapping: the kernel, and how it serves. */
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/path.h"
#include "hub/repo.h"
#include "kernel/layers_json.h"
#include "layer/mapping.h"

#include <khub/hub.h>

#include <stdio.h>
#include <stdlib.h>

void khub__entry_free(khub__entry *entry)
{
    if (!entry || atomic_fetch_sub(&entry->refs, 1) > 1) return;
    char *const texts[] = {entry->key,  entry->kernel, entry->layer, entry->fault,
                           entry->from, entry->word,   entry->value};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        khub__free(texts[i]);
    khub__free(entry->spec);
    khub__free(entry);
}

int khub__entry_names_kernel(const khub__entry *entry)
{
    return !entry->kernel || *entry->kernel;
}

/* "./kernels" of "maps/m.json" is "./maps/kernels"; whatever isn't a path that starts here stays. NULL: no
 * memory. */
static char *from_folder(const char *folder, char *kernel)
{
    if (!kernel || !folder || !khub__path_is_local(kernel)) return kernel;
    char *base = khub__path_join(khub__path_is_local(folder) ? "" : "./", folder);
    char *path = base ? khub__path_join(base, strncmp(kernel, "./", 2) ? kernel : kernel + 2) : NULL;
    khub__free(base);
    khub__free(kernel);
    return path;
}

static int is_built_in(const char *kernel)
{
    return !strncmp(kernel, "khub/", 5) && !strchr(kernel, '@');
}

/* "org/repo" is its version 1; a built-in kernel has none. */
static char *with_version(char *kernel)
{
    if (!kernel || khub_name_kind_of(kernel) != KHUB_NAME_HUB || strchr(kernel, '@') || is_built_in(kernel))
        return kernel;
    size_t length = strlen(kernel);
    char *grown = khub__realloc(kernel, length + sizeof("@v1"));
    if (!grown) {
        khub__free(kernel);
        return NULL;
    }
    memcpy(grown + length, "@v1", sizeof("@v1"));
    return grown;
}

/* "khub/norm:RMSNorm" in two. What follows the last ":" is a layer unless it holds a "/" (then it is part of
 * a path). */
static int split_target(khub__entry *entry, const char *target, const char *folder, khub_error *err)
{
    const char *colon = strrchr(target, ':');
    size_t length = strlen(target);
    if (colon && colon[1] && !strchr(colon, '/')) {
        entry->layer = khub__strdup(colon + 1);
        if (!entry->layer) return khub__fail_memory(err, "reading a mapping");
        length = (size_t)(colon - target);
    }
    entry->kernel = with_version(from_folder(folder, khub__strndup(target, length)));
    return entry->kernel ? KHUB_OK : khub__fail_memory(err, "reading a mapping");
}

static int check_name(const char *kernel, const char *where, khub_error *err)
{
    khub_name_kind kind = khub_name_kind_of(kernel);
    khub__wanted wanted;
    khub_error why = {0};
    if (!*kernel || kind == KHUB_NAME_PATH || is_built_in(kernel)) return KHUB_OK;
    if (kind != KHUB_NAME_HUB)
        return khub__fail(
            err, KHUB_E_FORMAT,
            "%s: \"%.200s\" names no kernel: ORG/NAME@REV:LAYER, khub/NAME, a path (\"./DIR\"), or "
            "\"\" to leave the layer standard",
            where, kernel);
    if (khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, kernel, &why) == KHUB_OK) return KHUB_OK;
    return khub__fail(err, KHUB_E_FORMAT, "%s: %s", where, why.message);
}

/* 1: each of the layer's arguments stands among `args` once, and nothing else does. */
static int has_args(const khub__layer_def *layer, const khub_layer_spec *spec)
{
    if (spec->returns && khub__layer_position(layer, spec->returns) < 0) return 0;
    if (spec->arg_count + (spec->returns != NULL) != (size_t)layer->arg_count) return 0;
    for (size_t i = 0; i < spec->arg_count; i++) /* no name stands twice in "args" */
        if (khub__layer_position(layer, spec->args[i]) < 0) return 0;
    return 1;
}

/* A layer's arguments are known before any kernel is there. */
static int check_args(const khub__entry *entry, const char *where, khub_error *err)
{
    const khub_layer_spec *spec = entry->spec;
    const khub__layer_def *layer = khub__layer_find(spec->layer); /* NULL: a run */
    if (!layer || !spec->args || has_args(layer, spec)) return KHUB_OK;
    khub__text text = {0};
    for (size_t i = 0; i < spec->arg_count; i++)
        khub__text_addf(&text, "%s%s", i ? ", " : "", spec->args[i]);
    khub__text_add(&text, "; the layer has: ");
    for (int32_t i = 0; i < layer->arg_count; i++)
        khub__text_addf(&text, "%s%s", i ? ", " : "", layer->args[i].name);
    int rc = text.failed
                 ? khub__fail_memory(err, "reading a mapping")
                 : khub__fail(err, KHUB_E_FORMAT,
                              "%s: %s: arguments of %s for %s don't match the layer's, each once: found: %s",
                              where, entry->kernel, spec->function, layer->name, text.data);
    khub__text_free(&text);
    return rc;
}

static char *dump(const json_t *value)
{
    if (json_is_string(value)) { /* a caller's bytes may be any */
        khub__text own = {0};
        khub__json_add_string(&own, json_string_value(value));
        return khub__text_take(&own);
    }
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    char *own = khub__strdup(text);
    free(text);
    return own;
}

/* All but the kernel's name, for writing it again. (json_copy loses members in silence when there is no
 * memory.) */
static int keep_rest(khub__entry *entry, const json_t *value, khub_error *err)
{
    json_t *rest = json_object(), *item;
    const char *key;
    int lost = !rest;
    json_object_foreach ((json_t *)(uintptr_t)value, key, item)
        if (!lost && strcmp(key, "kernel") != 0) lost = json_object_set(rest, key, item) != 0;
    entry->value = lost ? NULL : dump(rest);
    json_decref(rest);
    return entry->value ? KHUB_OK : khub__fail_memory(err, "reading a mapping");
}

/* An entry that says itself how it serves. */
static int parse_inline(khub__entry *entry, const khub__key *key, const json_t *value,
                        const khub__mapping_place *place, const char *where, khub_error *err)
{
    const char *target = NULL;
    khub__json_source source = {where, err};
    int rc = khub__json_string(&target, value, "kernel", &source);
    if (rc == KHUB_OK && !target) rc = khub__fail(err, KHUB_E_FORMAT, "%s: \"kernel\" is missing", where);
    if (rc == KHUB_OK) rc = split_target(entry, target, place->folder, err);
    if (rc == KHUB_OK) rc = check_name(entry->kernel, where, err);
    if (rc != KHUB_OK || json_object_size(value) == 1) return rc;
    rc = khub__layer_spec_parse(&entry->spec, key->part_count == 1 ? key->part[0].layer : key->text, value,
                                where, "kernel", err);
    if (rc == KHUB_OK) rc = check_args(entry, where, err);
    return rc == KHUB_OK ? keep_rest(entry, value, err) : rc;
}

static int parse_leaf(khub__entry *entry, const khub__key *key, const json_t *value,
                      const khub__mapping_place *place, const char *where, khub_error *err)
{
    if (json_is_object(value)) return parse_inline(entry, key, value, place, where, err);
    if (!json_is_string(value))
        return khub__fail(err, KHUB_E_FORMAT, "%s: is %s, a string or an object is expected", where,
                          khub__json_type_name(value));
    int rc = split_target(entry, json_string_value(value), place->folder, err);
    return rc == KHUB_OK ? check_name(entry->kernel, where, err) : rc;
}

/* What was read before the fault is no entry's any more. */
static int make_faulty(khub__entry *entry, const json_t *value, const char *fault)
{
    khub__free(entry->kernel);
    khub__free(entry->layer);
    khub__free(entry->spec);
    khub__free(entry->value);
    entry->kernel = entry->layer = NULL;
    entry->spec = NULL;
    entry->fault = khub__strdup(fault);
    entry->value = value ? dump(value) : NULL;
    return entry->fault && (entry->value || !value) ? KHUB_OK : KHUB_E_NOMEM;
}

static void write_line(khub__entry *entry, int mode)
{
    khub__device device = entry->target.device;
    int is_one = device != KHUB__DEVICE_ANY && device != KHUB__DEVICES;
    entry->line =
        (khub_mapping_line){entry->key,   is_one ? khub__target_text(entry->device, &entry->target) : NULL,
                            mode,         entry->kernel,
                            entry->layer, entry->spec ? entry->spec->function : NULL,
                            entry->fault, entry->from};
}

static khub__entry *new_entry(const char *key, const khub__target *target, const khub__mapping_place *place)
{
    khub__entry *entry = khub__calloc(1, sizeof(*entry));
    if (!entry) return NULL;
    atomic_init(&entry->refs, 1);
    entry->target = *target;
    entry->built_in = place->built_in;
    entry->key = khub__strdup(key);
    entry->from = khub__strdup(place->name);
    if (entry->key && entry->from) return entry;
    khub__entry_free(entry);
    return NULL;
}

void khub__mapping_where(char out[KHUB__WHERE_MAX], const khub__mapping_place *place, const char *key,
                         const khub__target *target, int mode)
{
    char device[KHUB__TARGET_MAX] = "";
    if (target && target->device != KHUB__DEVICE_ANY) khub__target_text(device, target);
    snprintf(out, KHUB__WHERE_MAX, "%.400s: %.400s%s%s%s%s", place->name, key, *device ? ": " : "", device,
             mode == KHUB_MODE_FALLBACK ? "" : ": ", mode == KHUB_MODE_FALLBACK ? "" : khub__mode_text(mode));
}

int khub__entry_parse(khub__entry **out, const khub__key *key, const khub__target *target, int mode,
                      const json_t *value, const khub__mapping_place *place, khub_error *err)
{
    char where[KHUB__WHERE_MAX];
    khub_error why = {0};
    *out = new_entry(key->text, target, place);
    if (!*out) return khub__fail_memory(err, "reading a mapping");
    (*out)->read = KHUB__ENTRY_ALL;
    khub__mapping_where(where, place, key->text, target, mode);
    int rc = parse_leaf(*out, key, value, place, where, &why);
    if (rc != KHUB_OK && rc != KHUB_E_NOMEM) rc = make_faulty(*out, value, why.message);
    if (rc == KHUB_OK) {
        write_line(*out, mode);
        return KHUB_OK;
    }
    khub__entry_free(*out);
    *out = NULL;
    return khub__fail_memory(err, "reading a mapping");
}

int khub__entry_faulty(khub__entry **out, const char *key, khub__entry_read read, const khub__target *target,
                       const char *word, const json_t *value, const char *fault,
                       const khub__mapping_place *place, khub_error *err)
{
    *out = new_entry(key, target, place);
    if (!*out) return khub__fail_memory(err, "reading a mapping");
    (*out)->read = read;
    (*out)->word = khub__strdup(word);
    if ((word && !(*out)->word) || make_faulty(*out, value, fault) != KHUB_OK) {
        khub__entry_free(*out);
        *out = NULL;
        return khub__fail_memory(err, "reading a mapping");
    }
    write_line(*out, 0);
    return KHUB_OK;
}
