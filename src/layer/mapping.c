#include "layer/mapping.h"

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
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

/* Where a mapping stands: what it is called in messages, and the folder of its file, from which its paths
 * start (NULL: no file, the current directory). */
typedef struct place {
    const char *name;
    char *folder;
} place;

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

/* "khub/norm:RMSNorm" in two. What follows the last ":" is a layer unless it holds a "/" (then it is part of
 * a path). */
static int split_target(khub__mapping_entry *entry, const char *target, const place *at)
{
    const char *colon = strrchr(target, ':');
    size_t length = strlen(target);
    if (colon && colon[1] && !strchr(colon, '/')) {
        entry->served = khub__strdup(colon + 1);
        if (!entry->served) return KHUB_E_NOMEM;
        length = (size_t)(colon - target);
    }
    entry->kernel = from_folder(at->folder, khub__strndup(target, length));
    return entry->kernel ? KHUB_OK : KHUB_E_NOMEM;
}

/* An entry that says everything itself. */
static int parse_inline(khub__mapping_entry *entry, const json_t *value, const place *at, const char *where,
                        khub_error *err)
{
    const char *target = NULL;
    khub__json_source source = {where, err};
    int rc = khub__json_string(&target, value, "kernel", &source);
    if (rc == KHUB_OK && !target) rc = khub__fail(err, KHUB_E_FORMAT, "%s: \"kernel\" is missing", where);
    if (rc == KHUB_OK) rc = split_target(entry, target, at);
    if (rc == KHUB_OK && json_object_get(value, "function"))
        rc = khub__layer_spec_parse(&entry->spec, entry->layer, value, where, "kernel", err);
    return rc;
}

static int parse_entry(khub__mapping_entry *entry, const char *layer, const json_t *value, const place *at)
{
    khub_error why = {0};
    char where[1000];
    int rc;
    snprintf(where, sizeof(where), "%s: %s", at->name, layer);
    entry->layer = khub__strdup(layer);
    if (!entry->layer) return KHUB_E_NOMEM;
    if (json_is_string(value))
        rc = split_target(entry, json_string_value(value), at);
    else if (json_is_object(value))
        rc = parse_inline(entry, value, at, where, &why);
    else
        rc = khub__fail(&why, KHUB_E_FORMAT, "%s: is %s, a string or an object is expected", where,
                        khub__json_type_name(value));
    if (rc == KHUB_OK || rc == KHUB_E_NOMEM) return rc;
    entry->fault = khub__strdup(why.message);
    return entry->fault ? KHUB_OK : KHUB_E_NOMEM;
}

static int parse_entries(khub__mapping *out, json_t *root, const place *at, khub_error *err)
{
    const char *layer;
    json_t *value;
    out->name = khub__strdup(at->name);
    out->entries = khub__calloc(json_object_size(root), sizeof(*out->entries));
    if (!out->name || !out->entries) return khub__fail_memory(err, "reading a mapping");
    json_object_foreach (root, layer, value) {
        if (!khub__layer_find(layer))
            khub__log(KHUB_LOG_WARNING, "layer", at->name,
                      "names the layer \"%s\", which docs/layers.md doesn't have", layer);
        if (parse_entry(&out->entries[out->count++], layer, value, at) != KHUB_OK)
            return khub__fail_memory(err, "reading a mapping");
    }
    return KHUB_OK;
}

static int parse_all(khub__mapping *out, json_t *root, const place *at, khub_error *err)
{
    int rc = parse_entries(out, root, at, err);
    json_decref(root);
    if (rc != KHUB_OK) khub__mapping_free(out);
    return rc;
}

int khub__mapping_parse(khub__mapping *out, const char *text, khub_error *err)
{
    json_t *root;
    place at = {text ? "mapping" : "built-in kernels", NULL};
    memset(out, 0, sizeof(*out));
    out->built_in = !text;
    if (!text) text = builtin;
    int rc = khub__json_parse(&root, text, strlen(text), at.name, err);
    return rc == KHUB_OK ? parse_all(out, root, &at, err) : rc;
}

int khub__mapping_read(khub__mapping *out, const char *file, khub_error *err)
{
    json_t *root;
    memset(out, 0, sizeof(*out));
    int rc = khub__json_read(&root, file, KHUB__MAPPING_MAX_BYTES, err);
    if (rc != KHUB_OK) return rc;
    place at = {file, khub__path_parent(file)};
    if (at.folder) {
        rc = parse_all(out, root, &at, err);
    } else {
        json_decref(root);
        rc = khub__fail_memory(err, "reading a mapping");
    }
    khub__free(at.folder);
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
    khub__free(mapping->name);
    memset(mapping, 0, sizeof(*mapping));
}

const khub__mapping_entry *khub__mapping_find(const khub__mapping *mapping, const char *layer)
{
    for (size_t i = 0; i < mapping->count; i++)
        if (!strcmp(mapping->entries[i].layer, layer)) return &mapping->entries[i];
    return NULL;
}
