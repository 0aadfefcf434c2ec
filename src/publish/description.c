#include "publish/description.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "kernel/metadata.h"
#include "publish/strict.h"

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "packing a kernel");
}

const char *khub__described_text(const khub__described *build, const char *key)
{
    const khub_pack_options *o = build->options;
    const struct {
        const char *key, *value;
    } given[] = {{"name", o->name},
                 {"id", o->id},
                 {"license", o->license},
                 {"upstream", o->upstream},
                 {"source", o->source}};
    for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
        if (!strcmp(key, given[i].key) && given[i].value) return given[i].value;
    return json_string_value(json_object_get(build->base, key));
}

/* What a build for any CPU or system is for, by the last part of its name. */
static const char *noarch_backend(khub__word word)
{
    static const char *const same[] = {"cpu", "cuda", "metal", "rocm", "xpu", "tpu", "neuron"};
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
        if (khub__word_is(word, same[i])) return same[i];
    return khub__word_is(word, "npu") ? "cann" : NULL;
}

const char *khub__described_backend(const khub__described *build)
{
    const char *named =
        build->name->backend ? build->name->backend->name : noarch_backend(build->name->noarch);
    return named ? named
                 : json_string_value(json_object_get(json_object_get(build->base, "backend"), "type"));
}

/* Takes over `value`; NULL: nothing is set. */
static int set(json_t *to, const char *key, json_t *value, khub_error *err)
{
    return !value || json_object_set_new(to, key, value) == 0 ? KHUB_OK : no_memory(err);
}

static json_t *copied(const khub__described *build, const char *key)
{
    return json_incref(json_object_get(build->base, key));
}

static int set_texts(json_t *to, const khub__described *build, const char *const *keys, khub_error *err)
{
    int rc = KHUB_OK;
    for (; *keys && rc == KHUB_OK; keys++) {
        const char *text = khub__described_text(build, *keys);
        json_t *value =
            text ? json_string(text) : copied(build, *keys); /* of a wrong type: said when it is read */
        if (text && !value) return no_memory(err);
        rc = set(to, *keys, value, err);
    }
    return rc;
}

static int set_version(json_t *to, const khub__described *build, khub_error *err)
{
    if (!build->options->version) return set(to, "version", copied(build, "version"), err);
    json_t *value = json_integer(*build->options->version);
    return value ? set(to, "version", value, err) : no_memory(err);
}

static int set_archs(json_t *backend, const char *const *archs, khub_error *err)
{
    json_t *list = json_array();
    for (size_t i = 0; list && archs[i]; i++)
        if (json_array_append_new(list, json_string(archs[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list ? set(backend, "archs", list, err) : no_memory(err);
}

/* What `from` has beside what is there. A digest would be that of other files. (json_copy loses members in
 * silence when there is no memory.) */
static int add_others(json_t *to, const json_t *from, khub_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)from, key, value) {
        if (json_object_get(to, key) || !strcmp(key, "digest")) continue;
        if (json_object_set(to, key, value) != 0) return no_memory(err);
    }
    return KHUB_OK;
}

/* The directory's own, as far as it doesn't contradict the build's name. */
static int set_backend(json_t *to, const khub__described *build, khub_error *err)
{
    const json_t *base = json_object_get(build->base, "backend");
    const char *type = khub__described_backend(build),
               *said = json_string_value(json_object_get(base, "type"));
    if (!type)
        return khub__fail(
            err, KHUB_E_INVAL,
            "%s: which backend it is for neither the build's name (%s) nor a metadata.json says",
            build->directory, build->variant);
    if (said && strcmp(said, type) != 0)
        return khub__fail(err, KHUB_E_INVAL,
                          "%s/metadata.json: the backend's \"type\" is \"%.32s\", the build is named %s",
                          build->directory, said, build->variant);
    json_t *backend = json_object();
    int rc = json_object_set_new(backend, "type", json_string(type)) == 0 ? KHUB_OK : no_memory(err);
    if (rc == KHUB_OK) rc = add_others(backend, base, err);
    if (rc == KHUB_OK && build->options->archs) rc = set_archs(backend, build->options->archs, err);
    if (rc == KHUB_OK) return set(to, "backend", backend, err);
    json_decref(backend);
    return rc;
}

static int set_python_depends(json_t *to, const khub__described *build, khub_error *err)
{
    json_t *value =
        json_object_get(build->base, "python-depends") ? copied(build, "python-depends") : json_array();
    return value ? set(to, "python-depends", value, err) : no_memory(err);
}

/* Those that the reader would miss too, said in the words of who packs. */
static int check_missing(const json_t *made, const khub__described *build, khub_error *err)
{
    static const char *const needed[] = {"name", "version", "license"};
    khub__text missing = {0};
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        if (!json_object_get(made, needed[i]))
            khub__text_addf(&missing, "%skhub_pack_options.%s", missing.length ? ", " : "", needed[i]);
    int rc = missing.failed ? no_memory(err)
             : missing.length
                 ? khub__fail(err, KHUB_E_INVAL, "%s: missing, here or in a metadata.json there: %s",
                              build->directory, missing.data)
                 : KHUB_OK;
    khub__text_free(&missing);
    return rc;
}

/* As it will be read. */
static int check_whole(const json_t *made, khub_error *err)
{
    static const char name[] = "the build's metadata.json";
    khub__metadata metadata;
    khub__text text = {0};
    khub__json_add(&text, made, JSON_COMPACT);
    int rc =
        text.failed ? no_memory(err) : khub__metadata_parse(&metadata, text.data, text.length, name, err);
    if (rc == KHUB_OK) khub__metadata_free(&metadata);
    khub__text_free(&text);
    return rc == KHUB_OK ? khub__strict_check(made, name, err) : rc;
}

static int fill(json_t *to, const khub__described *build, const char *id, khub_error *err)
{
    static const char *const first[] = {"name", NULL}, *const last[] = {"license", "upstream", "source",
                                                                        NULL};
    int rc = set_texts(to, build, first, err);
    if (rc == KHUB_OK && json_object_set_new(to, "id", json_string(id)) != 0) rc = no_memory(err);
    if (rc == KHUB_OK) rc = set_version(to, build, err);
    if (rc == KHUB_OK) rc = set_texts(to, build, last, err);
    if (rc == KHUB_OK) rc = set_python_depends(to, build, err);
    if (rc == KHUB_OK) rc = set_backend(to, build, err);
    if (rc == KHUB_OK) rc = add_others(to, build->base, err);
    if (rc == KHUB_OK) rc = check_missing(to, build, err);
    return rc == KHUB_OK ? check_whole(to, err) : rc;
}

int khub__describe(json_t **out, const khub__described *build, const char *id, khub_error *err)
{
    *out = json_object();
    int rc = *out ? fill(*out, build, id, err) : no_memory(err);
    if (rc == KHUB_OK) return rc;
    json_decref(*out);
    *out = NULL;
    return rc;
}
