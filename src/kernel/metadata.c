#include "kernel/metadata.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

typedef int read_fn(khub__metadata *out, const json_t *root, const khub__json_source *source);

static int no_memory(const khub__json_source *source)
{
    return khub__fail_memory(source->err, "reading metadata.json");
}

/* Copies a string field; one that is absent leaves *out NULL. */
static int copy_string(char **out, const json_t *object, const char *key, const khub__json_source *source)
{
    const char *text = NULL;
    int rc = khub__json_string(&text, object, key, source);
    if (rc != KHUB_OK || !text) return rc;
    *out = khub__strdup(text);
    return *out ? KHUB_OK : no_memory(source);
}

/* Copies an array of strings. */
static int copy_strings(char ***out, size_t *count, const json_t *object, const char *key,
                        const khub__json_source *source)
{
    const json_t *array = NULL;
    int rc = khub__json_array(&array, object, key, source);
    size_t n = json_array_size(array);
    if (rc != KHUB_OK || n == 0) return rc;
    *out = khub__calloc(n, sizeof(char *));
    if (!*out) return no_memory(source);
    for (; *count < n; ++*count) {
        const json_t *item = json_array_get(array, *count);
        if (!json_is_string(item))
            return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\"[%zu] is %s, a string is expected",
                              source->file, key, *count, khub__json_type_name(item));
        (*out)[*count] = khub__strdup(json_string_value(item));
        if (!(*out)[*count]) return no_memory(source);
    }
    return KHUB_OK;
}

static void note_missing(khub__text *missing, const json_t *object, const char *key, const char *shown)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) khub__text_addf(missing, "%s%s", missing->length ? ", " : "", shown);
}

/* All that is missing in one message: a publisher who learns of one field at a time publishes once for each.
 */
static int check_required(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    static const char *const required[] = {"name", "id", "version", "license", "backend", "python-depends"};
    (void)out;
    khub__text missing = {0};
    for (size_t i = 0; i < sizeof(required) / sizeof(*required); i++)
        note_missing(&missing, root, required[i], required[i]);
    const json_t *backend = json_object_get(root, "backend");
    if (json_is_object(backend)) note_missing(&missing, backend, "type", "backend.type");
    int rc = KHUB_OK;
    if (missing.failed)
        rc = no_memory(source);
    else if (missing.length)
        rc = khub__fail(source->err, KHUB_E_FORMAT,
                        "%s: required and missing: %s (docs/writing.md shows the shortest that will do)",
                        source->file, missing.data);
    khub__text_free(&missing);
    return rc;
}

/* ^[a-z][-a-z0-9]*[a-z0-9]$ */
static int is_kernel_name(const char *name)
{
    size_t n = strlen(name);
    if (n < 2 || strspn(name, "-abcdefghijklmnopqrstuvwxyz0123456789") != n) return 0;
    return name[0] >= 'a' && name[0] <= 'z' && name[n - 1] != '-';
}

static int read_name(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    int rc = copy_string(&out->name, root, "name", source);
    if (rc != KHUB_OK || is_kernel_name(out->name)) return rc;
    return khub__fail(
        source->err, KHUB_E_FORMAT,
        "%s: \"name\" is \"%.64s\"; a name is lower-case letters, digits and dashes, from a letter to a "
        "letter or digit",
        source->file, out->name);
}

/* The id becomes a file name and a symbol's namespace: it must not lead out of the build's directory. */
static int read_id(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    int rc = copy_string(&out->id, root, "id", source);
    if (rc != KHUB_OK) return rc;
    size_t n = strlen(out->id);
    if (n > 0 && n <= 200 && out->id[0] != '.' && !strchr(out->id, '/')) return KHUB_OK;
    return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"id\" is \"%.64s\", which can't be a library's name",
                      source->file, out->id);
}

static int read_version(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    int rc = khub__json_integer(&out->version, root, "version", source);
    if (rc != KHUB_OK || out->version >= 0) return rc;
    return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"version\" is %lld, versions start at 0",
                      source->file, (long long)out->version);
}

static int read_texts(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    const struct {
        char **to;
        const char *key;
    } table[] = {{&out->license, "license"},
                 {&out->upstream, "upstream"},
                 {&out->source, "source"},
                 {&out->kernels_minver, "kernels-minver"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        int rc = copy_string(table[i].to, root, table[i].key, source);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

static int read_backend(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    static const char *const types[] = {"cann", "cpu", "cuda", "metal", "neuron", "rocm", "tpu", "xpu"};
    const json_t *backend = NULL;
    int rc = khub__json_object(&backend, root, "backend", source);
    if (rc == KHUB_OK) rc = copy_string(&out->backend, backend, "type", source);
    if (rc == KHUB_OK) rc = copy_strings(&out->archs, &out->arch_count, backend, "archs", source);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (!strcmp(out->backend, types[i])) return KHUB_OK;
    return khub__fail(
        source->err, KHUB_E_FORMAT,
        "%s: the backend's \"type\" is \"%.64s\", not one of cann, cpu, cuda, metal, neuron, rocm, tpu, "
        "xpu",
        source->file, out->backend);
}

static int read_python_depends(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    return copy_strings(&out->python_depends, &out->python_depend_count, root, "python-depends", source);
}

static int check_need_keys(const json_t *entry, const char *where, const khub__json_source *source)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)entry, key, value)
        if (strcmp(key, "repo-id") != 0 && strcmp(key, "version") != 0 && strcmp(key, "revision") != 0)
            return khub__fail(source->err, KHUB_E_FORMAT, "%s: %s has the unknown key \"%.64s\"",
                              source->file, where, key);
    return KHUB_OK;
}

static int read_need(khub__metadata_need *need, const json_t *entry, size_t index,
                     const khub__json_source *source)
{
    char where[64];
    snprintf(where, sizeof(where), "\"kernel-depends\"[%zu]", index);
    if (!json_is_object(entry))
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: %s is %s, an object is expected", source->file,
                          where, khub__json_type_name(entry));
    need->version = -1;
    int rc = check_need_keys(entry, where, source);
    if (rc == KHUB_OK) rc = copy_string(&need->repo_id, entry, "repo-id", source);
    if (rc == KHUB_OK) rc = khub__json_integer(&need->version, entry, "version", source);
    if (rc == KHUB_OK) rc = copy_string(&need->revision, entry, "revision", source);
    if (rc != KHUB_OK) return rc;
    int has_version = json_is_integer(json_object_get(entry, "version"));
    if (!need->repo_id)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: %s has no \"repo-id\"", source->file, where);
    if (has_version == (need->revision != NULL))
        return khub__fail(source->err, KHUB_E_FORMAT,
                          "%s: %s has %s; one of \"version\" and \"revision\" is expected", source->file,
                          where, has_version ? "both" : "neither");
    if (has_version && need->version < 0)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: %s has version %lld, versions start at 0",
                          source->file, where, (long long)need->version);
    return KHUB_OK;
}

static int read_kernel_depends(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    const json_t *array = NULL;
    int rc = khub__json_array(&array, root, "kernel-depends", source);
    size_t n = json_array_size(array);
    if (rc != KHUB_OK || n == 0) return rc;
    out->needs = khub__calloc(n, sizeof(*out->needs));
    if (!out->needs) return no_memory(source);
    while (rc == KHUB_OK && out->need_count < n) {
        size_t i = out->need_count++; /* counted first: a half-read one is freed too */
        rc = read_need(&out->needs[i], json_array_get(array, i), i, source);
    }
    return rc;
}

static int read_digest(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    const json_t *digest = NULL;
    int rc = khub__json_object(&digest, root, "digest", source);
    if (rc == KHUB_OK && digest) out->digest = json_incref((json_t *)(uintptr_t)digest);
    return rc;
}

/* Older builders wrote "sha" for "commit". */
static int read_git(khub__metadata_git *out, const json_t *state, const khub__json_source *source)
{
    int rc = copy_string(&out->commit, state, "commit", source);
    if (rc == KHUB_OK && !out->commit) rc = copy_string(&out->commit, state, "sha", source);
    if (rc == KHUB_OK) rc = khub__json_bool(&out->dirty, state, "dirty", source);
    return rc;
}

static int read_provenance(khub__metadata *out, const json_t *root, const khub__json_source *source)
{
    const json_t *provenance = NULL, *builder = NULL, *kernel = NULL;
    int rc = khub__json_object(&provenance, root, "provenance", source);
    if (rc != KHUB_OK || !provenance) return rc;
    rc = khub__json_object(&builder, provenance, "kernel-builder", source);
    if (rc == KHUB_OK) rc = khub__json_object(&kernel, provenance, "kernel", source);
    if (rc == KHUB_OK) rc = copy_string(&out->builder_version, builder, "version", source);
    if (rc == KHUB_OK) rc = read_git(&out->builder, builder, source);
    if (rc == KHUB_OK) rc = read_git(&out->kernel, kernel, source);
    return rc;
}

static int read_all(khub__metadata *out, const json_t *root, const char *file, khub_error *err)
{
    static read_fn *const parts[] = {check_required,  read_name,          read_id,     read_version,
                                     read_texts,      read_backend,       read_digest, read_python_depends,
                                     read_provenance, read_kernel_depends};
    khub__json_source source = {file, err};
    memset(out, 0, sizeof(*out));
    int rc = KHUB_OK;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && rc == KHUB_OK; i++)
        rc = parts[i](out, root, &source);
    if (rc != KHUB_OK) khub__metadata_free(out);
    return rc;
}

int khub__metadata_parse(khub__metadata *out, const char *text, size_t length, const char *file,
                         khub_error *err)
{
    memset(out, 0, sizeof(*out));
    json_t *root;
    int rc = khub__json_parse(&root, text, length, file, err);
    if (rc != KHUB_OK) return rc;
    rc = read_all(out, root, file, err);
    json_decref(root);
    return rc;
}

int khub__metadata_read(khub__metadata *out, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    json_t *root;
    khub_error why = {0};
    int rc = khub__json_read(&root, path, KHUB__METADATA_MAX, &why);
    if (rc == KHUB_E_NOTFOUND)
        return khub__fail(err, rc, "%s: is missing; no build is loaded without one (docs/writing.md)", path);
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    rc = read_all(out, root, path, err);
    json_decref(root);
    return rc;
}

static void free_strings(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        khub__free(strings[i]);
    khub__free(strings);
}

void khub__metadata_free(khub__metadata *metadata)
{
    char *const texts[] = {
        metadata->name,           metadata->id,           metadata->license,        metadata->upstream,
        metadata->source,         metadata->backend,      metadata->kernels_minver, metadata->builder_version,
        metadata->builder.commit, metadata->kernel.commit};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        khub__free(texts[i]);
    free_strings(metadata->archs, metadata->arch_count);
    free_strings(metadata->python_depends, metadata->python_depend_count);
    for (size_t i = 0; i < metadata->need_count; i++) {
        khub__free(metadata->needs[i].repo_id);
        khub__free(metadata->needs[i].revision);
    }
    khub__free(metadata->needs);
    json_decref(metadata->digest);
    memset(metadata, 0, sizeof(*metadata));
}
