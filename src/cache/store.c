#include "cache/store.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "cache/disk.h"
#include "cache/layout.h"

int khub__store_open(khub__store *out, const khub__repo *repo, const char *cache_dir, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    const char *slash = strchr(repo->id, '/');
    if (!khub__is_repo_path(repo->id, strlen(repo->id)) || (slash && strchr(slash + 1, '/')))
        return khub__fail(err, KHUB_E_INVAL, "\"%s\" isn't a repository's name", repo->id);
    out->repo = *repo;
    int rc = khub__cache_dir(&out->cache, repo->kind, cache_dir, err);
    if (rc != KHUB_OK) return rc;
    char *name = khub__layout_folder(repo);
    out->folder = name ? khub__path_join(out->cache, name) : NULL;
    khub__free(name);
    if (out->folder) return KHUB_OK;
    khub__store_close(out);
    return khub__fail_memory(err, "opening the cache");
}

void khub__store_close(khub__store *store)
{
    khub__free(store->cache);
    khub__free(store->folder);
    memset(store, 0, sizeof(*store));
}

char *khub__store_snapshot(const khub__store *store, const char *commit)
{
    char path[KHUB__LAYOUT_MAX];
    if (khub__layout_of_commit(path, "snapshots", commit, NULL, NULL) != KHUB_OK) return NULL;
    return khub__path_join(store->folder, path);
}

int khub__store_set_absent(const khub__store *store, const char *commit, const char *path, khub_error *err)
{
    char at[KHUB__LAYOUT_MAX];
    if (khub__store_is_absent(store, commit, path)) return KHUB_OK;
    int rc = khub__layout_of_commit(at, ".no_exist", commit, path, err);
    return rc == KHUB_OK ? khub__disk_put(store, at, "", 0, err) : rc;
}

int khub__store_is_absent(const khub__store *store, const char *commit, const char *path)
{
    char at[KHUB__LAYOUT_MAX], full[KHUB__DISK_PATH_MAX];
    if (khub__layout_of_commit(at, ".no_exist", commit, path, NULL) != KHUB_OK) return 0;
    return khub__disk_path(full, store, at) == 0 && khub__file_kind(full) == KHUB__FILE_REGULAR;
}
