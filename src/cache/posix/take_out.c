/* Everything here goes by open directories that no link led to: what another process gives another name, or
 * puts a link in place of, while we are at work, leads nowhere else. */
#include "cache/take_out.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "cache/disk.h"
#include "cache/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DRAFT_AGE_S = 3600, DEPTH_MAX = 64, PASSES = 3 };

/* KHUB_OK with spot->dir -1: there is no such directory. */
static int open_spot(khub__spot *spot, const khub__store *store, const char *path, khub_error *err)
{
    khub_error why = {0};
    int rc = khub__spot_open_plain(spot, store, path, 0, &why);
    return rc == KHUB_OK || rc == KHUB_E_NOTFOUND ? KHUB_OK : khub__fail(err, rc, "%s", why.message);
}

int khub__take_out_file(const khub__store *store, const char *path, khub_error *err)
{
    khub__spot spot;
    int rc = open_spot(&spot, store, path, err);
    if (rc == KHUB_OK && spot.dir >= 0 && unlinkat(spot.dir, spot.name, 0) != 0 && errno != ENOENT)
        rc = khub__disk_fail(err, store, path, "remove it");
    khub__spot_close(&spot);
    return rc;
}

/* A directory with something in it stays. */
static void remove_empty(const khub__store *store, const char *path)
{
    khub__spot spot;
    if (khub__spot_open_plain(&spot, store, path, 0, NULL) == KHUB_OK)
        unlinkat(spot.dir, spot.name, AT_REMOVEDIR);
    khub__spot_close(&spot);
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

static int remove_all(int dir, const char *name, int depth);

/* All that is in `dir`, which is closed. A listing may leave out what comes after something that is removed,
 * so that it is read until there is nothing in it. */
static int remove_entries(int dir, int depth)
{
    DIR *listing = fdopendir(dir);
    if (!listing) {
        close(dir);
        return -1;
    }
    int failed = 0, seen = 1;
    for (int pass = 0; !failed && seen && pass < PASSES; pass++) {
        struct dirent *entry;
        seen = 0;
        rewinddir(listing);
        while (!failed && (entry = readdir(listing)) != NULL) {
            if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
            failed = remove_all(dirfd(listing), entry->d_name, depth);
            seen = 1;
        }
    }
    int saved = errno;
    closedir(listing);
    errno = saved;
    return failed;
}

/* What `dir` has under `name`, with all in it. 0, also when there is nothing, or -1 with errno. */
static int remove_all(int dir, const char *name, int depth)
{
    struct stat st;
    int is_there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0, flags = 0;
    if (is_there && S_ISDIR(st.st_mode)) {
        errno = ENAMETOOLONG;
        int inner =
            depth < DEPTH_MAX ? openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (inner < 0) return errno == ENOENT ? 0 : -1;
        if (remove_entries(inner, depth + 1) != 0) return -1;
        flags = AT_REMOVEDIR;
    }
    return (is_there && unlinkat(dir, name, flags) == 0) || errno == ENOENT ? 0 : -1;
}

int khub__take_out_tree(const khub__store *store, const char *path, khub_error *err)
{
    khub__spot from, to = {.dir = -1};
    char name[KHUB__TEMPORARY_MAX];
    khub__disk_temporary(name, ".khub-", ".tmp");
    int rc = open_spot(&from, store, path, err);
    if (rc == KHUB_OK && from.dir >= 0) rc = open_spot(&to, store, name, err);
    if (rc == KHUB_OK && to.dir >= 0) {
        int moved = renameat(from.dir, from.name, to.dir, to.name) == 0;
        if (moved ? remove_all(to.dir, to.name, 0) != 0 : errno != ENOENT)
            rc = khub__disk_fail(err, store, moved ? name : path, "remove it");
    }
    khub__spot_close(&from);
    khub__spot_close(&to);
    return rc;
}

static int is_draft(const char *name)
{
    size_t n = strlen(name);
    return strncmp(name, ".khub-", 6) == 0 && n > 10 && strcmp(name + n - 4, ".tmp") == 0;
}

static int is_old(const khub__spot *spot)
{
    struct stat st;
    return fstatat(spot->dir, spot->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           time(NULL) - st.st_ctime > DRAFT_AGE_S;
}

static int remove_draft(const khub__store *store, const char *name, khub_error *err)
{
    khub__spot spot;
    int rc = open_spot(&spot, store, name, err);
    if (rc == KHUB_OK && spot.dir >= 0 && is_old(&spot) && remove_all(spot.dir, spot.name, 0) != 0)
        rc = khub__disk_fail(err, store, name, "remove it");
    khub__spot_close(&spot);
    return rc;
}

int khub__take_out_drafts(const khub__store *store, khub_error *err)
{
    char **names = NULL;
    size_t count = 0;
    int rc = khub__dir_list(&names, &count, store->folder, err);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++)
        if (is_draft(names[i])) rc = remove_draft(store, names[i], err);
    khub__free(names);
    return rc;
}

/* snapshots/ goes last, and comes back when the folder has to stay: without it the other tools call it
 * broken. */
static int remove_folder(const khub__store *store)
{
    khub__spot spot;
    int gone = 0, cache = open(store->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache < 0) return 0;
    int rc = khub__spot_open_plain(&spot, store, "snapshots", 0, NULL);
    if (rc == KHUB_OK && (unlinkat(spot.dir, spot.name, AT_REMOVEDIR) == 0 || errno == ENOENT)) {
        gone = unlinkat(cache, khub__path_name(store->folder), AT_REMOVEDIR) == 0 || errno == ENOENT;
        if (!gone) mkdirat(spot.dir, spot.name, 0777);
    }
    khub__spot_close(&spot);
    close(cache);
    return gone || rc == KHUB_E_NOTFOUND;
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
