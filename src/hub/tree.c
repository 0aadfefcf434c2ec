#include "hub/tree.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "hub/repo.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILES_MAX = 1000000 };

const char *khub__tree_etag(const khub__tree_file *file)
{
    return file->sha256[0] ? file->sha256 : file->blob_id[0] ? file->blob_id : NULL;
}

int khub__tree_check(const khub__tree_file *file, const void *data, size_t bytes, khub_error *err)
{
    const char *name = khub__tree_etag(file);
    char hex[KHUB__HASH_HEX_MAX + 1];
    khub__hash_kind kind;
    khub__hash *hash;
    if (!name || khub__hash_kind_of(&kind, name) != 0) return KHUB_OK;
    int rc = khub__hash_new(&hash, kind, bytes, err);
    if (rc != KHUB_OK) return rc;
    khub__hash_add(hash, data, bytes);
    khub__hash_end(hash, hex);
    khub__hash_free(hash);
    if (!strcmp(hex, name)) return KHUB_OK;
    return khub__fail(
        err, KHUB_E_UNTRUSTED,
        "its content doesn't match its name: it hashes to %s, the commit's list of files says %s", hex, name);
}

/* A name from a stranger for a message: what can't be shown is "?". */
static const char *shown(char out[80], const char *path)
{
    size_t n = 0;
    for (; path[n] && n < 70; n++)
        out[n] = path[n] >= ' ' && path[n] < 127 ? path[n] : '?';
    khub__copy(out + n, 80 - n, path[n] ? "..." : "");
    return out;
}

int khub__tree_add(khub__tree *tree, const khub__tree_file *file, khub_error *err)
{
    char name[80];
    if (!khub__is_repo_path(file->path, strlen(file->path)))
        return khub__fail(err, KHUB_E_FORMAT,
                          "the listing names \"%s\", which isn't a path inside a repository",
                          shown(name, file->path));
    if (tree->count == FILES_MAX)
        return khub__fail(err, KHUB_E_FORMAT, "the listing has more than %d files", FILES_MAX);
    if (khub__grow((void **)&tree->files, &tree->capacity, tree->count + 1, sizeof(*tree->files), FILES_MAX))
        return khub__fail_memory(err, "listing a repository");
    khub__tree_file copy = *file;
    copy.path = khub__strdup(file->path);
    copy.xet_hash = copy.path && file->xet_hash ? khub__strdup(file->xet_hash) : NULL;
    if (!copy.path || (file->xet_hash && !copy.xet_hash)) {
        khub__free((char *)copy.path);
        return khub__fail_memory(err, "listing a repository");
    }
    tree->files[tree->count++] = copy;
    return KHUB_OK;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const khub__tree_file *)a)->path, ((const khub__tree_file *)b)->path);
}

/* The file whose path is the first `length` bytes of `path`. */
static const khub__tree_file *find(const khub__tree *tree, const char *path, size_t length)
{
    size_t low = 0, high = tree->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *other = tree->files[middle].path;
        int order = strncmp(path, other, length);
        if (order == 0 && !other[length]) return &tree->files[middle];
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* One of the folders that `path` is in, which is a file at the same time. `before` is the path in front of
 * it: folders that the two share were looked at. */
static const khub__tree_file *folder_that_is_a_file(const khub__tree *tree, const char *path,
                                                    const char *before)
{
    size_t same = 0;
    while (path[same] && path[same] == before[same])
        same++;
    for (const char *slash = strchr(path + same, '/'); slash; slash = strchr(slash + 1, '/')) {
        const khub__tree_file *file = find(tree, path, (size_t)(slash - path));
        if (file) return file;
    }
    return NULL;
}

int khub__tree_close(khub__tree *tree, khub_error *err)
{
    if (tree->count) qsort(tree->files, tree->count, sizeof(*tree->files), by_path);
    char name[80];
    for (size_t i = 0; i < tree->count; i++) {
        const char *path = tree->files[i].path, *before = i ? tree->files[i - 1].path : "";
        if (strcmp(path, before) == 0)
            return khub__fail(err, KHUB_E_FORMAT, "the listing names \"%s\" twice", shown(name, path));
        const khub__tree_file *both = folder_that_is_a_file(tree, path, before);
        if (both)
            return khub__fail(err, KHUB_E_FORMAT, "the listing has \"%s\" as a file and as a folder",
                              shown(name, both->path));
    }
    return KHUB_OK;
}

const khub__tree_file *khub__tree_find(const khub__tree *tree, const char *path)
{
    return find(tree, path, strlen(path));
}

void khub__tree_free(khub__tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        khub__free((char *)tree->files[i].path);
        khub__free((char *)tree->files[i].xet_hash);
    }
    khub__free(tree->files);
    memset(tree, 0, sizeof(*tree));
}
