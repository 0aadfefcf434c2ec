#include "fetch/snapshots.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

enum { METADATA_MAX = 16 << 20, DEEPEST = 32 };

/* The "version" of one build's metadata.json; -1: it has none that can be read. */
static int64_t version_in(const char *builds, const char *build)
{
    int64_t version = -1;
    json_t *json = NULL;
    char *folder = khub__path_join(builds, build);
    char *path = folder ? khub__path_join(folder, "metadata.json") : NULL;
    khub_error ignored = {0};
    khub__json_source source = {path, &ignored};
    if (path && khub__json_read(&json, path, METADATA_MAX, &ignored) == KHUB_OK &&
        khub__json_integer(&version, json, "version", &source) != KHUB_OK)
        version = -1;
    json_decref(json);
    khub__free(path);
    khub__free(folder);
    return version;
}

static int says_version(const char *snapshot, int64_t version)
{
    char **names = NULL;
    size_t count = 0;
    khub_error ignored = {0};
    char *builds = khub__path_join(snapshot, "build");
    int found = 0;
    if (builds && khub__dir_list_dirs(&names, &count, builds, &ignored) == KHUB_OK)
        for (size_t i = 0; i < count && !found; i++)
            found = version_in(builds, names[i]) == version;
    khub__free(names);
    khub__free(builds);
    return found;
}

int khub__snapshot_of_version(char commit[KHUB__COMMIT_MAX + 1], const khub__store *store, int64_t version,
                              khub_error *err)
{
    char **commits = NULL;
    size_t count = 0;
    int rc = khub__store_commits(&commits, &count, store, err);
    if (rc != KHUB_OK) return rc;
    rc = KHUB_E_NOTFOUND;
    for (size_t i = 0; i < count && rc == KHUB_E_NOTFOUND; i++) {
        char *snapshot = khub__store_snapshot(store, commits[i]);
        if (!snapshot) rc = khub__fail_memory(err, "looking through the cache");
        if (!snapshot || !says_version(snapshot, version)) {
            khub__free(snapshot);
            continue;
        }
        khub__free(snapshot);
        khub__copy(commit, KHUB__COMMIT_MAX + 1, commits[i]);
        rc = KHUB_OK;
    }
    khub__free(commits);
    return rc == KHUB_E_NOTFOUND ? khub__fail(err, rc, "%s: no snapshot in the cache is of version %lld",
                                              store->repo.id, (long long)version)
                                 : rc;
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
