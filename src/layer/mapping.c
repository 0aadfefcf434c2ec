#include "layer/mapping.h"

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "kernel/layers_json.h"
#include "layer/names.h"

/* The kernels that are staged with khub. */
static const char builtin[] =
    "{\"RMSNorm\":\"khub/norm\",\"AddRMSNorm\":\"khub/norm\",\"LayerNorm\":\"khub/norm\","
    "\"AddLayerNorm\":\"khub/norm\",\"GeLU\":\"khub/activation\","
    "\"GeluTanh\":\"khub/activation\",\"SiLU\":\"khub/activation\","
    "\"QuickGELU\":\"khub/activation\",\"ReLU\":\"khub/activation\","
    "\"SiluAndMul\":\"khub/activation\",\"GeluAndMul\":\"khub/activation\","
    "\"Softmax\":\"khub/softmax\",\"rotary_pos_emb\":\"khub/rotary\","
    "\"Attention\":\"khub/attention\",\"Linear\":\"khub/linear\","
    "\"LinearGeLU\":\"khub/linear\",\"LinearGeluTanh\":\"khub/linear\","
    "\"LinearSiLU\":\"khub/linear\",\"LinearReLU\":\"khub/linear\"}";

/* "khub/norm:RMSNorm" in two. What follows the last ":" is a layer unless it holds a "/" (then it is part of
 * a path). */
static int split_target(khub__mapping_entry *entry, const char *target)
{
    const char *colon = strrchr(target, ':');
    size_t length = strlen(target);
    if (colon && colon[1] && !strchr(colon, '/')) {
        entry->served = khub__strdup(colon + 1);
        if (!entry->served) return -1;
        length = (size_t)(colon - target);
    }
    entry->kernel = khub__strndup(target, length);
    return entry->kernel ? 0 : -1;
}

/* An entry that says everything itself. */
static int parse_inline(khub__mapping_entry *entry, const json_t *value, khub_error *err)
{
    const char *target = NULL;
    khub__json_source source = {entry->layer, err};
    int rc = khub__json_string(&target, value, "kernel", &source);
    if (rc == KHUB_OK && !target)
        rc = khub__fail(err, KHUB_E_FORMAT, "%s: \"kernel\" is missing", entry->layer);
    if (rc == KHUB_OK && split_target(entry, target) != 0) rc = khub__fail_memory(err, "reading a mapping");
    if (rc == KHUB_OK && json_object_get(value, "function"))
        rc = khub__layer_spec_parse(&entry->spec, entry->layer, value, "mapping", "kernel", err);
    return rc;
}

static int parse_entry(khub__mapping_entry *entry, const char *layer, const json_t *value)
{
    khub_error why = {0};
    int rc;
    entry->layer = khub__strdup(layer);
    if (!entry->layer) return KHUB_E_NOMEM;
    if (json_is_string(value))
        rc = split_target(entry, json_string_value(value)) == 0 ? KHUB_OK : KHUB_E_NOMEM;
    else if (json_is_object(value))
        rc = parse_inline(entry, value, &why);
    else
        rc = khub__fail(&why, KHUB_E_FORMAT, "%s: is %s, a string or an object is expected", layer,
                        khub__json_type_name(value));
    if (rc == KHUB_OK || rc == KHUB_E_NOMEM) return rc;
    entry->fault = khub__strdup(why.message);
    return entry->fault ? KHUB_OK : KHUB_E_NOMEM;
}

static int parse_entries(khub__mapping *out, json_t *root, khub_error *err)
{
    const char *layer;
    json_t *value;
    out->entries = khub__calloc(json_object_size(root), sizeof(*out->entries));
    if (!out->entries) return khub__fail_memory(err, "reading a mapping");
    json_object_foreach (root, layer, value) {
        if (!khub__layer_find(layer))
            khub__log(KHUB_LOG_WARNING, "layer", layer,
                      "the mapping names a layer that docs/layers.md doesn't have");
        if (parse_entry(&out->entries[out->count++], layer, value) != KHUB_OK)
            return khub__fail_memory(err, "reading a mapping");
    }
    return KHUB_OK;
}

int khub__mapping_parse(khub__mapping *out, const char *text, khub_error *err)
{
    json_t *root;
    memset(out, 0, sizeof(*out));
    if (!text) text = builtin;
    int rc = khub__json_parse(&root, text, strlen(text), "mapping", err);
    if (rc != KHUB_OK) return rc;
    rc = parse_entries(out, root, err);
    json_decref(root);
    if (rc != KHUB_OK) khub__mapping_free(out);
    return rc;
}

void khub__mapping_free(khub__mapping *mapping)
{
    for (size_t i = 0; i < mapping->count; i++) {
        khub__mapping_entry *entry = &mapping->entries[i];
        khub__free(entry->spec);
        khub__free(entry->layer);
        khub__free(entry->kernel);
        khub__free(entry->served);
        khub__free(entry->fault);
    }
    khub__free(mapping->entries);
    memset(mapping, 0, sizeof(*mapping));
}

const khub__mapping_entry *khub__mapping_find(const khub__mapping *mapping, const char *layer)
{
    for (size_t i = 0; i < mapping->count; i++)
        if (!strcmp(mapping->entries[i].layer, layer)) return &mapping->entries[i];
    return NULL;
}
