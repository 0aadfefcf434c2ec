/* snapshots/COMMIT/PATH: a relative link to its blob, or the file itself. */
#include "base/error.h"
#include "base/home.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "cache/disk.h"
#include "cache/layout.h"
#include "cache/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* 1 for "../../blobs/HEX" with as many "../" as the path needs: such a link leads nowhere else. */
static int is_plain(const char *text, const char *path)
{
    size_t ups = 2;
    for (; *path; path++)
        ups += *path == '/';
    for (; ups > 0; ups--, text += 3)
        if (strncmp(text, "../", 3) != 0) return 0;
    if (strncmp(text, "blobs/", 6) != 0) return 0;
    text += 6;
    return *text && !text[strspn(text, "0123456789abcdef")];
}

/* 1 when what `full` shows is inside the cache: seen by the link's own words where they are the usual ones
 * and the blob is that file, else by resolving it (a copy, too: a directory on the way may be a link). */
static int stays_inside(const khub__store *store, const char *full, const char *path,
                        const struct stat *shown)
{
    char text[KHUB__LAYOUT_MAX], blob[KHUB__DISK_PATH_MAX];
    struct stat st;
    ssize_t n = readlink(full, text, sizeof(text) - 1);
    if (n > 0) {
        text[n] = 0;
        if (is_plain(text, path) && khub__disk_path(blob, store, strstr(text, "blobs/")) == 0 &&
            lstat(blob, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == shown->st_dev &&
            st.st_ino == shown->st_ino) /* not so when a directory on the way is a link */
            return 1;
    }
    if (khub__disk_inside(store, full)) return 1;
    khub__log(KHUB_LOG_WARNING, "cache", full, "leads out of the cache, so it isn't used");
    return 0;
}

int khub__store_has(const khub__store *store, const char *commit, const char *path, uint64_t size)
{
    char at[KHUB__LAYOUT_MAX];
    if (khub__layout_of_commit(at, "snapshots", commit, path, NULL) != KHUB_OK) return 0;
    char full[KHUB__DISK_PATH_MAX];
    struct stat st;
    int has = khub__disk_path(full, store, at) == 0 && stat(full, &st) == 0 && S_ISREG(st.st_mode) &&
              (size == UINT64_MAX || (uint64_t)st.st_size == size);
    return has && stays_inside(store, full, path, &st);
}

int khub__link_is_copy(const khub__store *store, const char *commit, const char *path, uint64_t size)
{
    char at[KHUB__LAYOUT_MAX], full[KHUB__DISK_PATH_MAX];
    struct stat st;
    return khub__layout_of_commit(at, "snapshots", commit, path, NULL) == KHUB_OK &&
           khub__disk_path(full, store, at) == 0 && lstat(full, &st) == 0 && S_ISREG(st.st_mode) &&
           (size == UINT64_MAX || (uint64_t)st.st_size == size);
}

/* 1 when a link at the spot shows the blob: the same words, or the same file. */
static int links_to(const khub__spot *spot, const char *text, size_t length, const char *wanted,
                    const struct stat *blob)
{
    struct stat st;
    if (length == strlen(wanted) && !memcmp(text, wanted, length)) return 1;
    return fstatat(spot->dir, spot->name, &st, 0) == 0 && st.st_dev == blob->st_dev &&
           st.st_ino == blob->st_ino;
}

/* 1 when what stands at the spot can stay: a link to the blob, or a copy of its size. */
static int can_stay(const khub__spot *spot, const char *wanted, const struct stat *blob, int fresh)
{
    char text[KHUB__LAYOUT_MAX];
    struct stat own;
    ssize_t n = readlinkat(spot->dir, spot->name, text, sizeof(text));
    if (n >= 0) return links_to(spot, text, (size_t)n, wanted, blob);
    return !fresh && fstatat(spot->dir, spot->name, &own, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(own.st_mode) &&
           own.st_size == blob->st_size;
}

/* Something else stands there (dangling, of another blob, of another size): it is replaced at once. */
static int relink(const khub__spot *folder, const khub__spot *spot, const char *wanted)
{
    char name[KHUB__TEMPORARY_MAX];
    khub__disk_temporary(name, ".khub-", ".tmp");
    if (symlinkat(wanted, folder->dir, name) != 0) return -1;
    if (renameat(folder->dir, name, spot->dir, spot->name) == 0) return 0;
    int saved = errno;
    unlinkat(folder->dir, name, 0);
    errno = saved;
    return -1;
}

static int copy_bytes(int to, int from)
{
    char piece[65536];
    for (;;) {
        ssize_t n = read(from, piece, sizeof(piece));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return (int)n;
        if (khub__disk_write(to, piece, (size_t)n) != 0) return -1;
    }
}

/* The file itself, as the peer has it where links are refused: the blob stays, another snapshot may need it.
 */
static int copy(const khub__spot *folder, const khub__spot *spot, const char *etag)
{
    char name[KHUB__TEMPORARY_MAX], blob[KHUB__COMMIT_MAX + 16];
    snprintf(blob, sizeof(blob), "blobs/%s", etag);
    khub__disk_temporary(name, ".khub-", ".tmp");
    int from = openat(folder->dir, blob, O_RDONLY | O_CLOEXEC);
    if (from < 0) return -1;
    int to = openat(folder->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int rc = to < 0 ? -1 : copy_bytes(to, from), saved = errno;
    if (to >= 0 && close(to) != 0 && rc == 0) rc = -1, saved = errno;
    close(from);
    if (rc == 0 && (rc = renameat(folder->dir, name, spot->dir, spot->name)) != 0) saved = errno;
    if (rc != 0 && to >= 0) unlinkat(folder->dir, name, 0);
    errno = saved;
    return rc;
}

static int refuses_links(int e)
{
    return e == EPERM || e == EOPNOTSUPP || e == ENOSYS || e == EACCES;
}

static int place(const khub__spot *folder, const khub__spot *spot, const char *path, const char *etag,
                 int fresh)
{
    char wanted[KHUB__LAYOUT_MAX], blob[KHUB__COMMIT_MAX + 16];
    struct stat st;
    snprintf(blob, sizeof(blob), "blobs/%s", etag);
    khub__layout_link(wanted, path, etag);
    if (fstatat(folder->dir, blob, &st, 0) != 0) return -1; /* never a link that dangles */
    int no_links = khub__env_is_true("HF_HUB_DISABLE_SYMLINKS");
    if (!no_links && symlinkat(wanted, spot->dir, spot->name) == 0) return 0;
    if (!no_links && errno == EEXIST)
        return can_stay(spot, wanted, &st, fresh) ? 0 : relink(folder, spot, wanted);
    if (!no_links && !refuses_links(errno)) return -1;
    if (can_stay(spot, wanted, &st, fresh)) return 0;
    return fresh ? renameat(folder->dir, blob, spot->dir, spot->name) : copy(folder, spot, etag);
}

int khub__store_link(const khub__store *store, const char *commit, const char *path, const char *etag,
                     khub_error *err)
{
    return khub__link_put(store, commit, path, etag, 0, err);
}

/* 1: a directory on the way was removed meanwhile, so it may be tried again. */
static int put(const khub__store *store, const char *at, const char *path, const char *etag, int fresh,
               khub_error *err)
{
    khub__spot spot, folder;
    int rc = khub__spot_open(&spot, store, at, 1, err), gone = 0;
    if (rc != KHUB_OK) return rc;
    rc = khub__spot_open(&folder, store, "blobs", 0, err);
    if (rc == KHUB_OK && place(&folder, &spot, path, etag, fresh) != 0) {
        gone = errno == ENOENT;
        rc = khub__disk_fail(err, store, at, "put it into the snapshot");
    }
    khub__spot_close(&folder);
    khub__spot_close(&spot);
    return gone ? 1 : rc;
}

int khub__link_put(const khub__store *store, const char *commit, const char *path, const char *etag,
                   int fresh, khub_error *err)
{
    enum { ATTEMPTS = 10 };
    char at[KHUB__LAYOUT_MAX];
    khub_error why = {0};
    int rc = khub__layout_of_commit(at, "snapshots", commit, path, err);
    if (rc != KHUB_OK) return rc;
    for (int i = 0; i < ATTEMPTS && (rc = put(store, at, path, etag, fresh, &why)) == 1; i++)
        ;
    return rc == KHUB_OK ? rc : khub__fail(err, why.code, "%s", why.message);
}
