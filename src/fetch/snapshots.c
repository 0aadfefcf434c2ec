#include "fetch/snapshots.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

enum { METADATA_MAX = 16 << 20, DEEPEST = 32 };

int khub__snapshot_read(khub__bytes *out, const char *path, const khub__tree_file *listed, size_t most,
                        khub_error *err)
{
    int rc = khub__file_read(out, path, most, err);
    if (rc == KHUB_OK && listed) rc = khub__tree_check(listed, out->data, out->length, err);
    if (rc != KHUB_OK) khub__bytes_free(out);
    return rc;
}

/* The "version" of one build's metadata.json; -1: it has none that can be read, or isn't what the list of
 * files (empty where the cache has none) says. */
static int64_t version_in(const char *snapshot, const khub__tree *tree, const char *build)
{
    int64_t version = -1;
    json_t *json = NULL;
    khub__bytes bytes = {0};
    khub__text inside = {0};
    khub__text_addf(&inside, "build/%s/metadata.json", build);
    char *path = inside.data ? khub__path_join(snapshot, inside.data) : NULL;
    khub_error why = {0};
    khub__json_source source = {path, &why};
    int rc = path ? khub__snapshot_read(&bytes, path, khub__tree_find(tree, inside.data), METADATA_MAX, &why)
                  : KHUB_E_NOMEM;
    if (rc == KHUB_E_UNTRUSTED) khub__log(KHUB_LOG_WARNING, "get", path, "is passed over: %s", why.message);
    if (rc == KHUB_OK && khub__json_parse(&json, bytes.data, bytes.length, path, &why) == KHUB_OK &&
        khub__json_integer(&version, json, "version", &source) != KHUB_OK)
        version = -1;
    json_decref(json);
    khub__bytes_free(&bytes);
    khub__text_free(&inside);
    khub__free(path);
    return version;
}

/* The highest version in the range that a build of the snapshot says; -1: none does. */
static int64_t highest_in(const char *snapshot, const khub__tree *tree, const khub__range *range)
{
    char **names = NULL;
    size_t count = 0;
    khub_error ignored = {0};
    char *builds = khub__path_join(snapshot, "build");
    int64_t highest = -1;
    if (builds && khub__dir_list_dirs(&names, &count, builds, &ignored) == KHUB_OK)
        for (size_t i = 0; i < count && highest < range->max; i++) {
            int64_t version = version_in(snapshot, tree, names[i]);
            if (version > highest && khub__range_has(range, version)) highest = version;
        }
    khub__free(names);
    khub__free(builds);
    return highest;
}

int khub__snapshot_in_range(char commit[KHUB__COMMIT_MAX + 1], int64_t *version, const khub__store *store,
                            const khub__range *range, khub_error *err)
{
    char **commits = NULL;
    size_t count = 0;
    *version = -1;
    int rc = khub__store_commits(&commits, &count, store, err);
    for (size_t i = 0; i < count && rc == KHUB_OK && *version < range->max; i++) {
        char *snapshot = khub__store_snapshot(store, commits[i]);
        if (!snapshot) rc = khub__fail_memory(err, "looking through the cache");
        khub__tree tree = {0};
        khub_error ignored = {0};
        if (rc == KHUB_OK && khub__store_tree(&tree, store, commits[i], &ignored) == KHUB_E_NOMEM)
            rc = khub__fail_memory(err, "looking through the cache");
        int64_t highest = rc == KHUB_OK ? highest_in(snapshot, &tree, range) : -1;
        khub__tree_free(&tree);
        if (highest > *version) {
            *version = highest;
            khub__copy(commit, KHUB__COMMIT_MAX + 1, commits[i]);
        }
        khub__free(snapshot);
    }
    khub__free(commits);
    if (rc != KHUB_OK || *version >= 0) return rc;
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: no snapshot in the cache is of a version that is wanted",
                      store->repo.id);
}

/* Adds what is in ROOT/INSIDE, and below. */
static int add_folder(khub__tree *tree, const char *root, const char *inside, int depth, khub_error *err)
{
    char **names = NULL;
    size_t count = 0;
    char *folder = khub__path_join(root, inside);
    int rc =
        folder ? khub__dir_list(&names, &count, folder, err) : khub__fail_memory(err, "listing a snapshot");
    for (size_t i = 0; i < count && rc == KHUB_OK; i++) {
        char *path = *inside ? khub__path_join(inside, names[i]) : khub__strdup(names[i]);
        char *full = path ? khub__path_join(root, path) : NULL;
        khub__tree_file file = {.path = path, .size = UINT64_MAX};
        enum khub__file_kind kind = full ? khub__file_kind(full) : KHUB__FILE_NONE;
        if (!full)
            rc = khub__fail_memory(err, "listing a snapshot");
        else if (kind == KHUB__FILE_REGULAR && khub__is_repo_path(path, strlen(path)))
            rc = khub__tree_add(tree, &file, err);
        else if (kind == KHUB__FILE_DIRECTORY && depth < DEEPEST)
            rc = add_folder(tree, root, path, depth + 1, err);
        khub__free(full);
        khub__free(path);
    }
    khub__free(names);
    khub__free(folder);
    return rc;
}

int khub__snapshot_tree(khub__tree *out, const khub__store *store, const char *commit, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    char *root = khub__store_snapshot(store, commit);
    int rc = root ? add_folder(out, root, "", 0, err) : khub__fail_memory(err, "listing a snapshot");
    if (rc == KHUB_OK) rc = khub__tree_close(out, err);
    if (rc != KHUB_OK) khub__tree_free(out);
    khub__free(root);
    return rc;
}
