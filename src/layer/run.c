/* Runs: slots that one kernel may serve together. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "layer/slot.h"

enum { MAX_PARTS = 16 };

static size_t parent_length(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

static int check_parts(const khub_layers *layers, const char *path, khub_slot *const *parts, size_t count,
                       khub_error *err)
{
    if (count < 2 || count > MAX_PARTS)
        return khub__fail(err, KHUB_E_INVAL, "%s: a run has 2 to %d slots, %zu were given", path, MAX_PARTS,
                          count);
    for (size_t i = 0; i < count; i++) {
        if (!parts[i]) return khub__fail(err, KHUB_E_INVAL, "%s: part %zu is NULL", path, i);
        const char *part = parts[i]->path, *first = parts[0]->path;
        int64_t at = khub__index_find(&layers->by_path, part);
        size_t parent = parent_length(part);
        if (at < 0 || layers->slots[at] != parts[i])
            return khub__fail(err, KHUB_E_INVAL, "%s: the slot %s is of other layers", path, part);
        if (parent != parent_length(first) || memcmp(part, first, parent) != 0)
            return khub__fail(err, KHUB_E_INVAL, "%s: %s and %s have no common parent", path, first, part);
    }
    return KHUB_OK;
}

/* A run is where its parts are. */
static int check_device(const char *path, const khub_slot_options *options, khub_slot *const *parts,
                        size_t count, khub_error *err)
{
    khub__on on = parts[0]->on;
    int is_said = options->device || options->gpu;
    int rc = is_said ? khub__on_take(&on, options->device, options->gpu, err) : KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < count; i++)
        if (memcmp(&parts[i]->on, &on, sizeof(on)) != 0)
            rc = khub__fail(err, KHUB_E_INVAL, "%s: the slot %s isn't said to be on the same device", path,
                            parts[i]->path);
    return rc;
}

int khub_layers_add_run(khub_layers *layers, const char *path, const char *layer, khub_function standard,
                        const khub_slot_options *given, khub_slot *const *parts, size_t count,
                        khub_slot **slot, khub_error *err)
{
    khub_slot_options options;
    if (slot) *slot = NULL;
    int rc = khub__given("khub_layers_add_run", layers && path && layer && parts, err);
    if (rc == KHUB_OK) rc = check_parts(layers, path, parts, count, err);
    if (rc == KHUB_OK) rc = khub__options(&options, sizeof(options), given, "khub_slot_options", err);
    if (rc == KHUB_OK) rc = check_device(path, &options, parts, count, err);
    if (rc != KHUB_OK) return rc;
    khub_slot *added, **own = khub__malloc(count * sizeof(*own));
    if (!own) return khub__fail_memory(err, "adding a slot");
    memcpy(own, parts, count * sizeof(*own));
    rc = khub_layers_add(layers, path, layer, standard, given, &added, err);
    if (rc != KHUB_OK) {
        khub__free(own);
        return rc;
    }
    added->on = parts[0]->on;
    added->parts = own;
    added->part_count = count;
    if (slot) *slot = added;
    return KHUB_OK;
}

int khub_slot_is_served(const khub_slot *slot)
{
    return slot->now != &slot->standard;
}
