#include "model/shards.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

/* An index has about 100 bytes for each tensor, and the largest models some 100,000 of them. */
#define MAX_INDEX ((size_t)64 << 20)
enum { MAX_SHARDS = 4096, MAX_NAME = 255 /* bytes, as file systems have it */ };

/* What an index may call a file: "model-00001-of-00002.safetensors", right beside it. */
static int is_plain(const char *name)
{
    static const char ending[] = ".safetensors";
    size_t length = strlen(name), end = sizeof(ending) - 1;
    if (length <= end || length > MAX_NAME || strcmp(name + length - end, ending) != 0) return 0;
    for (const char *p = name; *p; p++)
        if (*p == '/' || *p == '\\' || (unsigned char)*p < ' ' || *p == 127) return 0;
    return 1;
}

/* Numbers a file that wasn't mentioned before. */
static int add_name(khub__shards *out, const char *name, const char *tensor, const khub__json_source *source)
{
    if (!is_plain(name))
        return khub__fail(source->err, KHUB_E_FORMAT,
                          "%s: the tensor \"%s\" is said to be in \"%s\"; the name of a .safetensors file in "
                          "the same directory is expected",
                          source->file, tensor, name);
    if (out->count == MAX_SHARDS)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: names more than %d files", source->file,
                          MAX_SHARDS);
    if (khub__index_add(&out->numbers, name, (uint32_t)out->count) != 0)
        return khub__fail_memory(source->err, "reading an index of weights");
    out->names[out->count] = name;
    out->tensor[out->count++] = tensor;
    return KHUB_OK;
}

static int read_map(khub__shards *out, const khub__json_source *source)
{
    const char *tensor;
    const json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)out->map, tensor, value) {
        if (!json_is_string(value))
            return khub__fail(source->err, KHUB_E_FORMAT,
                              "%s: \"weight_map\": \"%s\" is %s, a string is expected", source->file, tensor,
                              khub__json_type_name(value));
        const char *name = json_string_value(value);
        if (khub__index_find(&out->numbers, name) >= 0) continue;
        int rc = add_name(out, name, tensor, source);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

static int take_root(khub__shards *out, const khub__json_source *source)
{
    const json_t *metadata = NULL;
    int rc = khub__json_object(&metadata, out->root, "metadata", source); /* nothing of it is needed */
    if (rc == KHUB_OK) rc = khub__json_object(&out->map, out->root, "weight_map", source);
    if (rc != KHUB_OK) return rc;
    if (!out->map || json_object_size(out->map) == 0)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"weight_map\" is %s", source->file,
                          out->map ? "empty" : "missing");
    size_t most = json_object_size(out->map) < MAX_SHARDS ? json_object_size(out->map) : MAX_SHARDS;
    out->names = khub__calloc(most, sizeof(*out->names));
    out->tensor = khub__calloc(most, sizeof(*out->tensor));
    if (!out->names || !out->tensor) return khub__fail_memory(source->err, "reading an index of weights");
    return read_map(out, source);
}

/* After the JSON was parsed, or wasn't. */
static int finish(khub__shards *out, int rc, const char *path, khub_error *err)
{
    const khub__json_source source = {path, err};
    if (rc == KHUB_OK) rc = take_root(out, &source);
    if (rc != KHUB_OK) khub__shards_free(out);
    return rc;
}

int khub__shards_read(khub__shards *out, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    return finish(out, khub__json_read(&out->root, path, MAX_INDEX, err), path, err);
}

int khub__shards_parse(khub__shards *out, const char *text, size_t length, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    return finish(out, khub__json_parse(&out->root, text, length, path, err), path, err);
}

void khub__shards_free(khub__shards *shards)
{
    khub__index_free(&shards->numbers);
    khub__free(shards->names);
    khub__free(shards->tensor);
    json_decref(shards->root);
    memset(shards, 0, sizeof(*shards));
}

int64_t khub__shards_find(const khub__shards *shards, const char *tensor)
{
    const json_t *name = json_object_get(shards->map, tensor);
    return name ? khub__index_find(&shards->numbers, json_string_value(name)) : -1;
}
