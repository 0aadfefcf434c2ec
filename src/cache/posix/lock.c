#include "cache/lock.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "cache/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char *lock_path(const khub__store *store, const char *etag)
{
    khub__text path = {0};
    khub__text_addf(&path, "%s/.locks/%s/%s.lock", store->cache, khub__path_name(store->folder), etag);
    return khub__text_take(&path);
}

/* The directory of the lock's file, by open directories that no link led to: neither is a lock made elsewhere
 * nor removed there. The caller has made the cache, or will fail to. */
static int open_spot(khub__spot *spot, const khub__lock *lock, int make, khub_error *err)
{
    char locks[KHUB__DISK_PATH_MAX];
    spot->dir = -1;
    int n = snprintf(locks, sizeof(locks), "%s/.locks", lock->cache);
    if (n < 0 || (size_t)n >= sizeof(locks)) return errno = ENAMETOOLONG, KHUB_E_IO;
    const khub__store store = {.cache = (char *)lock->cache, .folder = locks};
    return khub__spot_open_plain(spot, &store, lock->path + n + 1, make, err);
}

static int open_new(khub__lock *lock, const khub__spot *at)
{
    int fd = openat(at->dir, at->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    struct stat st;
    if (fd < 0) return -1;
    /* As the peer does: a second user of the group, whatever the umask, must be able to wait. Not where the
     * umask hides everything. */
    if (fstat(fd, &st) == 0 && (st.st_mode & S_IRGRP)) fchmod(fd, 0664);
    lock->created = 1;
    return fd;
}

/* -1 with errno. */
static int open_at(khub__lock *lock, const khub__spot *at)
{
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(at->dir, at->name, O_RDWR | flags);
    if (fd < 0 && errno == EACCES)
        fd = openat(at->dir, at->name, O_RDONLY | flags); /* another user's: enough to lock */
    if (fd >= 0 || errno != ENOENT) return fd;
    fd = open_new(lock, at);
    return fd < 0 && errno == EEXIST ? openat(at->dir, at->name, O_RDWR | flags) : fd;
}

/* Fills lock->fd, or leaves it -1 with errno: there is no locking here. KHUB_E_IO: a link or a file stands
 * where a directory should be. */
static int open_file(khub__lock *lock, khub_error *err)
{
    khub__spot spot;
    khub_error why = {0};
    if (open_spot(&spot, lock, 1, &why) == KHUB_OK) {
        lock->fd = open_at(lock, &spot);
        int saved = errno;
        khub__spot_close(&spot);
        errno = saved;
        return KHUB_OK;
    }
    return errno == ELOOP || errno == ENOTDIR ? khub__fail(err, KHUB_E_IO, "%s", why.message) : KHUB_OK;
}

/* 1 when the open file still has the lock's name: who removes a lock's file does it while holding it, and
 * removes none but his own. */
static int is_current(const khub__lock *lock)
{
    struct stat ours, named;
    if (lock->created) return 1;
    return fstat(lock->fd, &ours) == 0 && stat(lock->path, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

/* Without a lock two processes may bring the same blob; each writes a file of its own, so that is all. */
static int go_without(khub__lock *lock, const char *why)
{
    khub__log(KHUB_LOG_DEBUG, "cache", lock->path, "can't be locked, so it is done without: %s", why);
    lock->held = 1;
    return 0;
}

int khub__lock_try(khub__lock *lock, const khub__store *store, const char *etag, khub_error *err)
{
    if (lock->held) return 0;
    if (!lock->path) lock->path = lock_path(store, etag);
    lock->cache = store->cache;
    if (!lock->path) return khub__fail_memory(err, "locking a blob");
    for (int attempt = 0; attempt < 10; attempt++) {
        int rc = lock->fd < 0 ? open_file(lock, err) : KHUB_OK;
        if (rc != KHUB_OK) return rc;
        if (lock->fd < 0) return go_without(lock, strerror(errno));
        while ((rc = flock(lock->fd, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR)
            ;
        if (rc != 0 && (errno == EWOULDBLOCK || errno == EACCES)) return 1;
        if (rc != 0) return go_without(lock, strerror(errno));
        if (is_current(lock)) return lock->held = 1, 0;
        khub__lock_rest(lock); /* it was removed while we waited */
    }
    return 1;
}

void khub__lock_rest(khub__lock *lock)
{
    if (lock->fd >= 0) close(lock->fd);
    lock->fd = -1;
    lock->created = 0;
}

static void remove_file(const khub__lock *lock)
{
    khub__spot spot;
    if (open_spot(&spot, lock, 0, NULL) == KHUB_OK) unlinkat(spot.dir, spot.name, 0);
    khub__spot_close(&spot);
}

void khub__lock_release(khub__lock *lock, int remove)
{
    if (lock->fd >= 0 && lock->held && remove && lock->created) remove_file(lock);
    if (lock->fd >= 0) close(lock->fd);
    khub__free(lock->path);
    *lock = (khub__lock){.fd = -1};
}

static int is_held(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    return held;
}

int khub__lock_any_held(const khub__store *store, khub_error *err)
{
    char **names = NULL, *dir = lock_path(store, "");
    size_t count = 0;
    if (dir) dir[strlen(dir) - strlen("/.lock")] = 0;
    int rc = dir ? khub__dir_list(&names, &count, dir, NULL) : KHUB_E_NOMEM, held = 0;
    for (size_t i = 0; rc == KHUB_OK && !held && i < count; i++) {
        char *path = khub__path_join(dir, names[i]);
        if (!path) rc = KHUB_E_NOMEM;
        held = path && is_held(path);
        khub__free(path);
    }
    khub__free(names);
    khub__free(dir);
    return rc == KHUB_E_NOMEM ? khub__fail_memory(err, "looking at locks") : held;
}

/* "fe:00:456", device and inode of a lock in the kernel's list. Some file systems (overlay, btrfs) show
 * another device here than stat does: 2 when both are the file's, 1 when only the inode is, else 0. */
static int is_place_of(const char *place, const struct stat *st)
{
    char *end;
    unsigned long major_number = strtoul(place, &end, 16);
    if (*end != ':') return 0;
    unsigned long minor_number = strtoul(end + 1, &end, 16);
    if (*end != ':' || strtoull(end + 1, &end, 10) != (unsigned long long)st->st_ino || *end) return 0;
    return major(st->st_dev) == major_number && minor(st->st_dev) == minor_number ? 2 : 1;
}

/* The holder's number from lines such as "5: FLOCK  ADVISORY  WRITE 123 fe:00:456 0 EOF"; who only waits has
 * "->" in front of FLOCK. */
static long pid_of_holder(const struct stat *st)
{
    FILE *list = fopen("/proc/locks", "re");
    char line[256], number[24], place[64];
    long found[3] = {0};
    while (list && fgets(line, sizeof(line), list)) {
        if (sscanf(line, "%*s FLOCK %*s WRITE %23s %63s", number, place) != 2) continue;
        long pid = strtol(number, NULL, 10);
        if (pid > 0) found[is_place_of(place, st)] = pid;
    }
    if (list) fclose(list);
    return found[2] ? found[2] : found[1];
}

long khub__lock_holder(char words[80], const khub__lock *lock)
{
    struct stat st;
    char path[64], name[32] = "";
    long pid = lock->fd >= 0 && fstat(lock->fd, &st) == 0 ? pid_of_holder(&st) : 0;
    snprintf(words, 80, "another process");
    if (pid <= 0) return 0;
    snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
    FILE *comm = fopen(path, "re");
    if (comm && fgets(name, sizeof(name), comm)) name[strcspn(name, "\n")] = 0;
    for (char *at = name; *at; at++) /* a process calls itself what it likes */
        if (*at < ' ' || *at > '~') *at = '?';
    if (comm) fclose(comm);
    snprintf(words, 80, name[0] ? "process %ld (%s)" : "process %ld", pid, name);
    return pid;
}

void khub__lock_read_note(char note[KHUB__NOTE_MAX], khub__lock *lock)
{
    int fresh = lock->fd < 0 || !lock->held || lock->created;
    ssize_t n = fresh ? 0 : pread(lock->fd, note, KHUB__NOTE_MAX - 1, 0);
    note[n > 0 ? n : 0] = 0;
    lock->noted = n > 0;
}

void khub__lock_write_note(khub__lock *lock, const char *note)
{
    size_t n = strlen(note);
    if (lock->fd < 0 || !lock->held || (n == 0 && !lock->noted)) return;
    if (n == 0 || pwrite(lock->fd, note, n, 0) == (ssize_t)n) (void)!ftruncate(lock->fd, (off_t)n);
    lock->noted = n > 0;
}
