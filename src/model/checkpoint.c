#include "model/checkpoint.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"

static const char one_file[] = "model.safetensors", index_file[] = "model.safetensors.index.json";

static int make_room(khub__checkpoint *out, size_t files, khub_error *err)
{
    out->files = khub__calloc(files, sizeof(*out->files));
    out->count = out->files ? files : 0;
    return out->files ? KHUB_OK : khub__fail_memory(err, "reading a model");
}

static int open_shard(khub__checkpoint *out, const char *directory, size_t i, khub_error *err)
{
    char *path = khub__path_join(directory, out->shards.names[i]);
    if (!path) return khub__fail_memory(err, "reading a model");
    int rc = khub__file_kind(path) == KHUB__FILE_NONE
                 ? khub__fail(err, KHUB_E_NOTFOUND,
                              "%s: there is no such file; %s says that it holds the tensor \"%s\"", path,
                              index_file, out->shards.tensor[i])
                 : khub__safetensors_open(&out->files[i], path, err);
    khub__free(path);
    return rc;
}

/* Each tensor is where the index says. */
static int check_map(const khub__checkpoint *checkpoint, khub_error *err)
{
    const char *name;
    const json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)checkpoint->shards.map, name, value) {
        const char *path;
        if (!khub__checkpoint_find(checkpoint, name, &path))
            return khub__fail(err, KHUB_E_FORMAT,
                              "%s: the tensor \"%s\" is missing; %s says that it is there", path, name,
                              index_file);
    }
    return KHUB_OK;
}

static int open_shards(khub__checkpoint *out, const char *directory, khub_error *err)
{
    int rc = khub__shards_read(&out->shards, out->path, err);
    if (rc == KHUB_OK) rc = make_room(out, out->shards.count, err);
    for (size_t i = 0; rc == KHUB_OK && i < out->count; i++)
        rc = open_shard(out, directory, i, err);
    return rc == KHUB_OK ? check_map(out, err) : rc;
}

static int open_one(khub__checkpoint *out, khub_error *err)
{
    int rc = make_room(out, 1, err);
    return rc == KHUB_OK ? khub__safetensors_open(&out->files[0], out->path, err) : rc;
}

/* The two places of weights; one file stands first, as in Transformers. */
static int open_either(khub__checkpoint *out, const char *directory, khub_error *err)
{
    out->path = khub__path_join(directory, one_file);
    if (!out->path) return khub__fail_memory(err, "reading a model");
    if (khub__file_kind(out->path) != KHUB__FILE_NONE) return open_one(out, err);
    char *index = khub__path_join(directory, index_file);
    if (!index) return khub__fail_memory(err, "reading a model");
    if (khub__file_kind(index) == KHUB__FILE_NONE) {
        khub__free(index);
        return khub__fail(err, KHUB_E_NOTFOUND,
                          "%s: there is no such file, and no %s (other formats of weights aren't read)",
                          out->path, index_file);
    }
    khub__free(out->path);
    out->path = index;
    return open_shards(out, directory, err);
}

int khub__checkpoint_open(khub__checkpoint *out, const char *directory, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = open_either(out, directory, err);
    if (rc != KHUB_OK) khub__checkpoint_close(out);
    return rc;
}

void khub__checkpoint_close(khub__checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->count; i++)
        khub__safetensors_close(checkpoint->files[i]);
    khub__free(checkpoint->files);
    khub__shards_free(&checkpoint->shards);
    khub__free(checkpoint->path);
    memset(checkpoint, 0, sizeof(*checkpoint));
}

const khub__stored *khub__checkpoint_find(const khub__checkpoint *checkpoint, const char *name,
                                          const char **path)
{
    int64_t file = checkpoint->shards.map ? khub__shards_find(&checkpoint->shards, name) : 0;
    if (path) *path = file < 0 ? checkpoint->path : khub__safetensors_path(checkpoint->files[file]);
    return file < 0 ? NULL : khub__safetensors_find(checkpoint->files[file], name);
}

void khub__checkpoint_relax(const khub__checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->count; i++)
        khub__safetensors_relax(checkpoint->files[i]);
}
