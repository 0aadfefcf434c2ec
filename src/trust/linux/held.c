/* A lease (fcntl's F_SETLEASE) makes whoever opens the file for writing wait until it is given back, and is
 * to be had only while nobody has it open so, nor mapped so: what is written through a mapping needn't change
 * the time of change. A process that doesn't give it back for long (lease-break-time,
 * 45 s) loses it; that is seen. A file of which no lease is to be had is copied into memory (memfd_create)
 * and sealed: then nobody can write to the copy, this process neither. */
#include "trust/held.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/ours.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3: no program; mapping it executable isn't forbidden */
#endif

enum { PIECE = 1 << 20 };
static const int64_t second_ns = 1000000000;

/* Longer than the longest tick (10 ms) of the clock that files get their times from. */
static const int64_t tick_ns = 20000000;

static int64_t ns_of(struct timespec t)
{
    return (int64_t)t.tv_sec * second_ns + t.tv_nsec;
}

int64_t khub__file_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return ns_of(now);
}

static void take_identity(khub__identity *out, const struct stat *st)
{
    *out = (khub__identity){st->st_dev, st->st_ino, (uint64_t)st->st_size, ns_of(st->st_ctim)};
}

int khub__same_identity(const khub__identity *a, const khub__identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed_ns == b->changed_ns;
}

int khub__identify(khub__identity *out, int *others, const char *path, int is_directory)
{
    struct stat st;
    if (stat(path, &st) != 0 || !(is_directory ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode))) return -1;
    take_identity(out, &st);
    if (others) *others = !khub__is_ours(st.st_uid, st.st_gid, st.st_mode, path, -1);
    return 0;
}

int khub__identity_settled(const khub__identity *identity, int64_t since_ns)
{
    return identity->changed_ns < since_ns - 2 * second_ns;
}

/* The signal that tells of a lease that somebody waits for is SIGIO, which ends a process that doesn't expect
 * it: hence first SIGURG, which nobody minds, and then nobody to send it to. */
static int lease(int fd)
{
    if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return 0;
    fcntl(fd, F_SETOWN, 0);
    return 1;
}

/* Given back, not only closed: a process forked meanwhile may have the file open, too. */
static void close_file(int fd, int leased)
{
    if (leased) fcntl(fd, F_SETLEASE, F_UNLCK);
    close(fd);
}

static int look(khub__held *held, const char *path, khub_error *err)
{
    struct stat st;
    if (fstat(held->fd, &st) != 0) return khub__fail_errno(err, path, "look at it");
    if (!S_ISREG(st.st_mode))
        return khub__fail(err, KHUB_E_FORMAT, "%s: is a %s, not a file", path,
                          S_ISDIR(st.st_mode) ? "directory" : "device or pipe");
    take_identity(&held->file, &st);
    held->size = held->file.size;
    held->others = !khub__is_ours(st.st_uid, st.st_gid, st.st_mode, path, held->fd);
    return KHUB_OK;
}

/* 0, which a program that closed its standard input gets, is what a zeroed khub__held has for none. */
static int above_zero(int fd)
{
    if (fd != 0) return fd;
    int other = fcntl(fd, F_DUPFD_CLOEXEC, 3), saved = errno;
    close(fd);
    errno = saved;
    return other;
}

static int open_and_look(khub__held *out, const char *path, int more, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    /* O_NONBLOCK: a pipe that nobody writes to must not stop us before we know that it is one */
    out->fd = above_zero(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more));
    if (out->fd < 0 && (more & O_NOFOLLOW) && errno == ELOOP)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is a link, not a file", path);
    if (out->fd < 0) return khub__fail_errno(err, path, "open it");
    if (!(more & O_NOFOLLOW)) out->leased = lease(out->fd);
    int rc = look(out, path, err);
    if (rc != KHUB_OK) khub__held_drop(out);
    return rc;
}

int khub__hold(khub__held *out, const char *path, khub_error *err)
{
    return open_and_look(out, path, 0, err);
}

int khub__hold_loosely(khub__held *out, const char *path, khub_error *err)
{
    return open_and_look(out, path, O_NOFOLLOW, err);
}

static int copy_bytes(int to, const khub__held *from, uint64_t *copied)
{
    char *piece = khub__malloc(PIECE);
    int64_t n = piece ? 1 : -1;
    if (!piece) errno = ENOMEM;
    for (*copied = 0; n > 0;) {
        n = khub__held_read(from, piece, PIECE, *copied);
        for (int64_t done = 0; done < n;) {
            ssize_t wrote = write(to, piece + done, (size_t)(n - done));
            if (wrote < 0 && errno == EINTR) continue;
            if (wrote < 0) n = -1;
            if (wrote > 0) done += wrote;
        }
        if (n > 0) *copied += (uint64_t)n;
    }
    int saved = errno;
    khub__free(piece);
    errno = saved;
    return (int)n;
}

static int new_memory(void)
{
    int fd = memfd_create("khub", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    return fd >= 0 || errno != EINVAL ? fd : memfd_create("khub", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

int khub__held_copy(khub__held *held, const char *path, khub_error *err)
{
    uint64_t size = 0;
    int fd = above_zero(new_memory());
    if (fd < 0 || copy_bytes(fd, held, &size) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
        int rc = errno == ENOMEM ? khub__fail_memory(err, "copying a library into memory")
                                 : khub__fail_errno(err, path, "copy it into memory");
        if (fd >= 0) close(fd);
        return rc;
    }
    close_file(held->fd, held->leased);
    held->fd = fd;
    held->size = size;
    held->leased = 0;
    held->copied = 1;
    return KHUB_OK;
}

int64_t khub__held_read(const khub__held *held, void *data, size_t bytes, uint64_t offset)
{
    ssize_t n;
    do
        n = pread(held->fd, data, bytes, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n;
}

khub__stream khub__held_stream(const khub__held *held, const char *path)
{
    lseek(held->fd, 0, SEEK_SET);
    return (khub__stream){held->fd, (size_t)held->size, path};
}

int khub__held_still(const khub__held *held)
{
    return held->copied || (held->leased && fcntl(held->fd, F_GETLEASE) == F_RDLCK);
}

int khub__held_settled(const khub__held *held)
{
    struct stat st;
    khub__identity now;
    if (!held->leased || fstat(held->fd, &st) != 0) return 0;
    take_identity(&now, &st);
    return khub__same_identity(&now, &held->file) && khub__held_still(held) &&
           now.changed_ns < khub__file_clock_ns() - tick_ns;
}

void khub__held_drop(khub__held *held)
{
    if (held->fd > 0) close_file(held->fd, held->leased);
    memset(held, 0, sizeof(*held));
    held->fd = -1;
}
