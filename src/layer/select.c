/* The slots of a model by their number and by patterns of their paths, and switching them. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "layer/key.h"
#include "layer/slot.h"

size_t khub_layers_count(const khub_layers *layers)
{
    return layers->count;
}

khub_slot *khub_layers_at(const khub_layers *layers, size_t i)
{
    return i < layers->count ? layers->slots[i] : NULL;
}

/* A pattern is written as in a mapping's key, so that is what reads it. */
static int check_pattern(const char *pattern, khub_error *err)
{
    khub__key *key = NULL;
    khub__text text = {0};
    khub_error why = {0};
    khub__text_addf(&text, "Linear(%s)", pattern);
    int rc = text.failed ? khub__fail_memory(&why, "reading a pattern")
                         : khub__key_parse(&key, text.data, pattern, &why);
    if (rc == KHUB_OK && key->part_count != 1)
        rc = khub__fail(&why, KHUB_E_FORMAT, "%s: is no pattern of paths", pattern);
    khub__free(key);
    khub__text_free(&text);
    if (rc == KHUB_OK) return rc;
    return khub__fail(err, rc == KHUB_E_FORMAT ? KHUB_E_INVAL : rc, "%s", why.message);
}

/* A run with any of its parts. */
static int takes(const char *pattern, const khub_slot *slot)
{
    int taken = khub__pattern_takes(pattern, slot->path);
    for (size_t i = 0; !taken && i < slot->part_count; i++)
        taken = khub__pattern_takes(pattern, slot->parts[i]->path);
    return taken;
}

int khub_layers_match(khub_slot ***out, size_t *count, const khub_layers *layers, const char *pattern,
                      khub_error *err)
{
    int rc = khub__given("khub_layers_match", out && count && layers, err);
    if (out) *out = NULL;
    if (count) *count = 0;
    if (rc == KHUB_OK && pattern) rc = check_pattern(pattern, err);
    if (rc != KHUB_OK) return rc;
    khub_slot **found = khub__malloc((layers->count + 1) * sizeof(*found));
    if (!found) return khub__fail_memory(err, "listing slots");
    for (size_t i = 0; i < layers->count; i++)
        if (takes(pattern, layers->slots[i])) found[(*count)++] = layers->slots[i];
    found[*count] = NULL;
    *out = found;
    return KHUB_OK;
}

int khub__layers_select(khub_slot ***out, size_t *count, const khub_layers *layers, const char *pattern,
                        khub_error *err)
{
    int rc = khub_layers_match(out, count, layers, pattern, err);
    if (rc != KHUB_OK || *count) return rc;
    khub__free(*out);
    *out = NULL;
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: none of the %zu slots has such a path%s%s",
                      pattern ? pattern : "**", layers->count, layers->count ? "; the first is " : "",
                      layers->count ? layers->slots[0]->path : "");
}

int khub_layers_disable(khub_layers *layers, const char *pattern, int on, khub_error *err)
{
    khub_slot **slots;
    size_t count;
    int rc = khub__given("khub_layers_disable", layers != NULL, err);
    if (rc == KHUB_OK) rc = khub__layers_select(&slots, &count, layers, pattern, err);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; i < count; i++) {
        slots[i]->disabled = on != 0;
        khub__slot_settle(slots[i]);
    }
    khub__free(slots);
    return KHUB_OK;
}
