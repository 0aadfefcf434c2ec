#include "cache/partial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    STALE_S = 600
}; /* an attempt that makes no progress for so long is over: the client's limits are shorter */

int khub__partial_is_whole(const khub__partial *partial, const khub__store *store, uint64_t *size)
{
    const khub__spot *at = &partial->blobs;
    struct stat st;
    if (fstatat(at->dir, at->name, &st, 0) != 0 || !S_ISREG(st.st_mode)) return 0;
    if (*size != UINT64_MAX && (uint64_t)st.st_size != *size) return 0;
    if (faccessat(at->dir, at->name, R_OK, AT_EACCESS) != 0) return 0; /* private to someone else: replaced */
    *size = (uint64_t)st.st_size;
    if (fstatat(at->dir, at->name, &st, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    if (!S_ISLNK(st.st_mode)) return 1;
    char blob[KHUB__COMMIT_MAX + 16], full[KHUB__DISK_PATH_MAX];
    snprintf(blob, sizeof(blob), "blobs/%s", at->name);
    return khub__disk_path(full, store, blob) == 0 && khub__disk_inside(store, full);
}

uint64_t khub__partial_free_bytes(const khub__partial *partial)
{
    struct statvfs fs;
    if (fstatvfs(partial->blobs.dir, &fs) != 0 || fs.f_blocks == 0) return UINT64_MAX;
    return (uint64_t)fs.f_bavail * fs.f_frsize;
}

int khub__partial_takes_files(const khub__partial *partial)
{
    struct statvfs fs;
    return fstatvfs(partial->blobs.dir, &fs) != 0 || fs.f_files == 0 || fs.f_favail > 0;
}

static void host_name(char out[64])
{
    if (gethostname(out, 64) != 0) out[0] = 0;
    out[63] = 0;
    for (char *at = out; *at; at++)
        if (*at <= ' ' || *at > '~') *at = '?';
    if (!out[0]) memcpy(out, "?", 2);
}

/* "khub-1A2B3C4D PID HOST", and the file's name before it is taken over: who writes which file. It is written
 * before the file gets its name, so that no file is ever without a note. */
static void note_down(const khub__partial *partial, khub__lock *lock, const char *before)
{
    char note[KHUB__NOTE_MAX], host[64];
    host_name(host);
    snprintf(note, sizeof(note), "%.13s %ld %s %s\n", partial->name + strlen(partial->blobs.name) + 1,
             (long)getpid(), host, before);
    khub__lock_write_note(lock, note);
}

static void new_name(khub__partial *partial)
{
    char begin[KHUB__COMMIT_MAX + 16];
    snprintf(begin, sizeof(begin), "%s.khub-", partial->blobs.name);
    khub__disk_temporary(partial->name, begin, ".incomplete");
}

/* A process that ended and whose parent hasn't asked yet is there for kill(); it writes nothing any more. */
static int is_zombie(long pid)
{
    char path[40], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    const char *end = n > 0 ? strrchr(text, ')') : NULL; /* PID (NAME) STATE: the name may hold anything */
    return end && (end[1] == ' ') && (end[2] == 'Z' || end[2] == 'X');
}

static int runs(long pid)
{
    if (pid == getpid()) return 0; /* not another one: an earlier fetch of ours */
    return (kill((pid_t)pid, 0) == 0 || errno != ESRCH) && !is_zombie(pid);
}

/* Is the writer of the note gone? We hold the lock, so it should be; where locks don't work it needn't. */
static int is_gone(long pid, const char *host, time_t written)
{
    char here[64];
    host_name(here);
    time_t age_s = time(NULL) - written; /* a file server's clock may be a little ahead of ours */
    if (age_s > STALE_S || age_s < -STALE_S) return 1;
    return strcmp(here, host) == 0 && !runs(pid);
}

/* What a note says. */
typedef struct note {
    char word[16], before[16], host[64];
    long pid;
} note;

static int is_word(const char *word)
{
    return strncmp(word, "khub-", 5) == 0 && strspn(word + 5, "0123456789abcdef") == 8 && !word[13];
}

/* 0, or -1: there is none of ours. */
static int read_note(note *out, khub__lock *lock)
{
    char text[KHUB__NOTE_MAX], number[24];
    memset(out, 0, sizeof(*out));
    khub__lock_read_note(text, lock);
    text[strcspn(text, "\n")] = 0; /* behind it may be what is left of a longer one */
    int n = sscanf(text, "%15s %23s %63s %15s", out->word, number, out->host, out->before);
    out->pid = n >= 3 ? strtol(number, NULL, 10) : 0;
    return out->pid > 0 && is_word(out->word) ? 0 : -1;
}

/* Opens the file that is called so, if its writer is gone, under a new name of ours. */
static int claim(khub__partial *partial, khub__lock *lock, const char *word, const note *from)
{
    char old[KHUB__TEMPORARY_MAX];
    struct stat st;
    const int dir = partial->blobs.dir;
    if (!is_word(word)) return -1;
    snprintf(old, sizeof(old), "%s.%s.incomplete", partial->blobs.name, word);
    if (fstatat(dir, old, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
        return -1;
    if (!is_gone(from->pid, from->host, st.st_mtime)) return -1;
    new_name(partial);
    note_down(partial, lock, word);
    if (renameat(dir, old, dir, partial->name) != 0) return -1;
    partial->file = openat(dir, partial->name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (partial->file < 0) unlinkat(dir, partial->name, 0);
    return partial->file < 0 ? -1 : 0;
}

uint64_t khub__partial_adopt(khub__partial *partial, khub__lock *lock, uint64_t size)
{
    note from;
    struct stat st;
    if (read_note(&from, lock) != 0) return 0;
    if (claim(partial, lock, from.word, &from) != 0 && claim(partial, lock, from.before, &from) != 0)
        return 0;
    if (fstat(partial->file, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size <= size)
        return (uint64_t)st.st_size;
    khub__partial_drop(partial, 0);
    return 0;
}

/* How an open file is called as long as it has no name. */
static void fd_path(char out[40], int fd)
{
    snprintf(out, 40, "/proc/self/fd/%d", fd);
}

/* A file without a name: it goes with the process, however that ends. -1: not here. */
static int open_unnamed(const khub__partial *partial)
{
#ifdef O_TMPFILE
    char path[40];
    int fd = openat(partial->blobs.dir, ".", O_RDWR | O_APPEND | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    fd_path(path, fd);
    if (access(path, F_OK) == 0) return fd; /* else it couldn't be given a name later */
    close(fd);
#else
    (void)partial;
#endif
    return -1;
}

int khub__partial_create(khub__partial *partial, khub__lock *lock, int small)
{
    partial->name[0] = 0;
    partial->file = small ? open_unnamed(partial) : -1;
    if (partial->file >= 0) return KHUB_OK;
    for (int attempt = 0; attempt < 100 && partial->file < 0; attempt++) {
        new_name(partial);
        if (!small) note_down(partial, lock, "");
        partial->file =
            openat(partial->blobs.dir, partial->name, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (partial->file < 0 && errno != EEXIST) return -1;
    }
    return partial->file < 0 ? -1 : KHUB_OK;
}

/* Gives a file without a name the blob's, at once where that is free. */
static int name_it(khub__partial *partial)
{
    char path[40];
    const khub__spot *to = &partial->blobs;
    fd_path(path, partial->file);
    if (linkat(AT_FDCWD, path, to->dir, to->name, AT_SYMLINK_FOLLOW) == 0) return 1;
    if (errno != EEXIST) return -1;
    new_name(partial);
    return linkat(AT_FDCWD, path, to->dir, partial->name, AT_SYMLINK_FOLLOW);
}

/* No sync: a blob that a power cut shortens or empties is found by its size, which is compared with the list
 * of files before each use, and by its hash; syncing each of 2,000 small files would take longer than
 * fetching them. */
int khub__partial_commit(khub__partial *partial)
{
    int dir = partial->blobs.dir, named = partial->name[0] ? 0 : name_it(partial), failed = named < 0;
    int saved = errno;
    if (close(partial->file) != 0 && !failed)
        failed = 1, saved = errno; /* some tell only here that the disk is full */
    partial->file = -1;
    if (!failed && named == 1) return KHUB_OK;
    if (!failed && renameat(dir, partial->name, dir, partial->blobs.name) != 0) failed = 1, saved = errno;
    if (!failed) return KHUB_OK;
    if (named == 1) unlinkat(dir, partial->blobs.name, 0);
    if (partial->name[0]) unlinkat(dir, partial->name, 0);
    errno = saved;
    return -1;
}

void khub__partial_drop(khub__partial *partial, int keep)
{
    if (partial->file < 0) return;
    close(partial->file);
    partial->file = -1;
    if (!keep && partial->name[0]) unlinkat(partial->blobs.dir, partial->name, 0);
}

int64_t khub__partial_read(const khub__partial *partial, void *data, size_t max, uint64_t at)
{
    ssize_t n;
    while ((n = pread(partial->file, data, max, (off_t)at)) < 0 && errno == EINTR)
        ;
    return n;
}
