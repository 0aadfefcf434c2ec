#include "kernel/posix/room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* BASE/khub-load-HEX/HEX: the first is seen by others, the second by nobody else. */
#define PREFIX "khub-load-"
enum { HEX = 16, TRIES = 16, DEEPEST = 64 };

/* 1: what this user makes in there, nobody else can take away. */
static int is_safe(const char *base)
{
    struct stat st;
    if (base[0] != '/' || stat(base, &st) != 0 || !S_ISDIR(st.st_mode)) return 0;
    if (st.st_uid != 0 && st.st_uid != geteuid()) return 0;
    return !(st.st_mode & (S_IWGRP | S_IWOTH)) || (st.st_mode & S_ISVTX);
}

/* 1: it was free, and is in use now as long as `fd` is open. Where there are no locks nobody removes it. */
static int occupy(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return 0;
    return fstat(fd, &st) == 0 && st.st_nlink > 0; /* else somebody has just removed it */
}

static int open_directory(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- what others left ---- */

static int is_name(const char *name)
{
    size_t n = strlen(PREFIX);
    return !strncmp(name, PREFIX, n) && strspn(name + n, "0123456789abcdef") == HEX && !name[n + HEX];
}

/* Takes over `fd`. Of links and directories alone: that is all that is made in one. */
static void empty(int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..")) continue;
        struct stat st;
        if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISLNK(st.st_mode)) unlinkat(dirfd(dir), name, 0);
        int inner = S_ISDIR(st.st_mode) && depth < DEEPEST ? open_directory(dirfd(dir), name) : -1;
        if (inner >= 0) empty(inner, depth + 1);
        if (inner >= 0) unlinkat(dirfd(dir), name, AT_REMOVEDIR);
    }
    closedir(dir);
}

static void remove_left(int base, const char *name)
{
    struct stat st;
    int fd = open_directory(base, name);
    if (fd < 0) return;
    int ours = fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0;
    int inside = ours ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (inside >= 0) empty(inside, 0);
    if (ours) unlinkat(base, name, AT_REMOVEDIR);
    close(fd);
}

/* Once for each process is enough. */
static void sweep(const char *base)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&done)) return;
    DIR *dir = opendir(base);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (is_name(entry->d_name)) remove_left(dirfd(dir), entry->d_name);
    closedir(dir);
}

/* ---- one's own ---- */

static int make_at(khub__room *out, const char *base)
{
    uint64_t numbers[2];
    if (getrandom(numbers, sizeof(numbers), 0) != (ssize_t)sizeof(numbers)) return -1;
    int n = snprintf(out->path, sizeof(out->path), "%s/" PREFIX "%016llx/%016llx", base,
                     (unsigned long long)numbers[0], (unsigned long long)numbers[1]);
    if (n < 0 || (size_t)n >= sizeof(out->path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    char *inner = out->path + n - HEX - 1;
    *inner = 0;
    if (mkdir(out->path, 0700) != 0) return -1;
    out->lock = open_directory(AT_FDCWD, out->path);
    int made = out->lock >= 0 && occupy(out->lock);
    if (!made) rmdir(out->path);
    *inner = '/';
    if (made && mkdir(out->path, 0700) == 0) return 0;
    int saved = made ? errno : EAGAIN; /* another process took it for one that was left */
    if (out->lock >= 0) close(out->lock);
    errno = saved;
    return -1;
}

/* Memory first: on a disk it takes longer than all the rest. */
int khub__room_make(khub__room *out)
{
    const char *const bases[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR"), "/tmp"};
    errno = EACCES;
    for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
        if (!bases[i] || !is_safe(bases[i])) continue;
        sweep(bases[i]);
        for (int try = 0; try < TRIES; try++) {
            if (make_at(out, bases[i]) == 0) return 0;
            if (errno != EAGAIN && errno != EEXIST) break;
        }
    }
    out->path[0] = 0;
    return -1;
}

void khub__room_leave(khub__room *room)
{
    if (!room->path[0]) return;
    rmdir(room->path);
    *strrchr(room->path, '/') = 0;
    rmdir(room->path);
    close(room->lock);
    room->path[0] = 0;
}
