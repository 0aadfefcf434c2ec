/* Whether others may have written to something in the cache: it is asked of several files of a repository for
 * each kernel that is loaded, and the way down to the repository is longer than the rest. */
#include "base/error.h"
#include "base/ours.h"
#include "cache/disk.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_MS = 1000 };

/* The last folder that was found to be ours, with all above it. */
static struct {
    pthread_mutex_t lock; /* guards the rest */
    char folder[KHUB__DISK_PATH_MAX];
    uid_t user;
    int64_t until_ms;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int is_known(const char *folder, int64_t now_ms)
{
    pthread_mutex_lock(&known.lock);
    int is = now_ms < known.until_ms && known.user == geteuid() && !strcmp(known.folder, folder);
    pthread_mutex_unlock(&known.lock);
    return is;
}

static int check_folder(const char *folder, khub_error *err)
{
    int64_t now_ms = khub__disk_now_ms();
    if (is_known(folder, now_ms)) return KHUB_OK;
    int rc = khub__path_is_ours(NULL, folder, err);
    if (rc != KHUB_OK || strlen(folder) >= sizeof(known.folder)) return rc;
    pthread_mutex_lock(&known.lock);
    memcpy(known.folder, folder, strlen(folder) + 1);
    known.user = geteuid();
    known.until_ms = now_ms + KEPT_MS;
    pthread_mutex_unlock(&known.lock);
    return rc;
}

/* 1: nothing on the way from the folder (of `length` bytes in `full`) down is a link or another's. */
static int is_plainly_ours(char full[KHUB__DISK_PATH_MAX], size_t length)
{
    for (char *slash = full + length; slash;) {
        struct stat st;
        slash = strchr(slash + 1, '/');
        if (slash) *slash = 0;
        int ours = lstat(full, &st) == 0 && !S_ISLNK(st.st_mode) &&
                   khub__is_ours((uint32_t)st.st_uid, (uint32_t)st.st_gid, (uint32_t)st.st_mode, full, -1);
        if (slash) *slash = '/';
        if (!ours) return 0;
    }
    return 1;
}

int khub__disk_is_ours(const khub__store *store, const char *path, khub_error *err)
{
    char full[KHUB__DISK_PATH_MAX];
    int rc = check_folder(store->folder, err);
    if (rc != KHUB_OK || !*path) return rc;
    if (khub__disk_path(full, store, path) != 0) return khub__fail(err, KHUB_E_IO, "%s: is too long", path);
    if (is_plainly_ours(full, strlen(store->folder))) return rc;
    return khub__path_is_ours(NULL, full, err); /* which says what is wrong */
}
