#include "cache/take_out.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "cache/disk.h"
#include "cache/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DRAFT_AGE_S = 3600 };

int khub__take_out_file(const khub__store *store, const char *path, khub_error *err)
{
    khub__spot spot;
    khub_error why = {0};
    int rc = khub__spot_open(&spot, store, path, 0, &why);
    if (rc == KHUB_E_NOTFOUND) return KHUB_OK;
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    if (unlinkat(spot.dir, spot.name, 0) != 0 && errno != ENOENT)
        rc = khub__disk_fail(err, store, path, "remove it");
    khub__spot_close(&spot);
    return rc;
}

/* A directory with something in it stays. */
static void remove_empty(const khub__store *store, const char *path)
{
    char full[KHUB__DISK_PATH_MAX];
    if (khub__disk_path(full, store, path) == 0) rmdir(full);
}

int khub__take_out_ref(const khub__store *store, const char *revision, const char *commit, khub_error *err)
{
    char now[KHUB__COMMIT_MAX + 1], path[KHUB__LAYOUT_MAX];
    int rc = khub__store_ref(now, NULL, store, revision, NULL);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(err, "removing a ref");
    if (rc != KHUB_OK || strcmp(now, commit) != 0) return KHUB_OK; /* gone or moved meanwhile */
    rc = khub__layout_ref(path, revision, err);
    if (rc == KHUB_OK) rc = khub__take_out_file(store, path, err);
    for (char *slash; rc == KHUB_OK && (slash = strrchr(path, '/')) != NULL && slash > path + 4;) {
        *slash = 0;
        remove_empty(store, path);
    }
    return rc;
}

static int remove_entry(void *user, const khub__walked *entry, khub_error *err)
{
    (void)user;
    int rc = entry->is_directory ? rmdir(entry->full) : unlink(entry->full);
    if (rc == 0 || errno == ENOENT || (entry->is_directory && errno == ENOTEMPTY)) return KHUB_OK;
    return khub__fail_errno(err, entry->full, "remove it");
}

static int remove_tree(const char *full, khub_error *err)
{
    int rc = khub__walk(full, remove_entry, NULL, err);
    if (rc == KHUB_OK && rmdir(full) != 0 && errno != ENOENT && errno != ENOTDIR)
        rc = khub__fail_errno(err, full, "remove it");
    return rc;
}

int khub__take_out_tree(const khub__store *store, const char *path, khub_error *err)
{
    char from[KHUB__DISK_PATH_MAX], to[KHUB__DISK_PATH_MAX], name[KHUB__TEMPORARY_MAX];
    struct stat st;
    khub__disk_temporary(name, ".khub-", ".tmp");
    if (khub__disk_path(from, store, path) != 0 || khub__disk_path(to, store, name) != 0)
        return khub__fail(err, KHUB_E_IO, "%s: is too long", path);
    if (lstat(from, &st) != 0 && errno == ENOENT) return KHUB_OK;
    if (rename(from, to) != 0)
        return errno == ENOENT ? KHUB_OK : khub__disk_fail(err, store, path, "remove it");
    if (S_ISDIR(st.st_mode)) return remove_tree(to, err);
    return unlink(to) == 0 ? KHUB_OK : khub__disk_fail(err, store, path, "remove it");
}

static int is_draft(const char *name)
{
    size_t n = strlen(name);
    return strncmp(name, ".khub-", 6) == 0 && n > 10 && strcmp(name + n - 4, ".tmp") == 0;
}

static int is_old(const char *full)
{
    struct stat st;
    return lstat(full, &st) == 0 && time(NULL) - st.st_ctime > DRAFT_AGE_S;
}

int khub__take_out_drafts(const khub__store *store, khub_error *err)
{
    char **names = NULL;
    size_t count = 0;
    int rc = khub__dir_list(&names, &count, store->folder, err);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        char *full = is_draft(names[i]) ? khub__path_join(store->folder, names[i]) : NULL;
        if (is_draft(names[i]) && !full) rc = khub__fail_memory(err, "removing from the cache");
        if (full && is_old(full))
            rc = unlink(full) == 0 || errno == ENOENT ? KHUB_OK : remove_tree(full, err);
        khub__free(full);
    }
    khub__free(names);
    return rc;
}

/* snapshots/ goes last, and comes back when the folder has to stay: without it the other tools call it
 * broken. */
static int remove_folder(const khub__store *store)
{
    char snapshots[KHUB__DISK_PATH_MAX];
    if (khub__disk_path(snapshots, store, "snapshots") != 0 || (rmdir(snapshots) != 0 && errno != ENOENT))
        return 0;
    if (rmdir(store->folder) == 0 || errno == ENOENT) return 1;
    mkdir(snapshots, 0777);
    return 0;
}

int khub__take_out_folder(const khub__store *store, khub_error *err)
{
    char **names = NULL;
    size_t count = 0;
    remove_empty(store, "blobs");
    int rc = khub__dir_list(&names, &count, store->folder, err), stays = 0;
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        int kept = is_draft(names[i]) || !strcmp(names[i], "blobs"); /* of another process, at work now */
        stays |= kept;
        if (!kept && strcmp(names[i], "snapshots") != 0) rc = khub__take_out_tree(store, names[i], err);
    }
    khub__free(names);
    return rc != KHUB_OK ? rc : stays ? 0 : remove_folder(store);
}
