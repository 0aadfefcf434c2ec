#include "base/file.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* An open regular file and its size, or -1. */
static int open_regular(const char *path, size_t *size, int *status, khub_error *err)
{
    /* O_NONBLOCK: a FIFO that nobody writes to must not stop us before fstat tells what it is */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        *status = khub__fail_errno(err, path, "open it");
        return -1;
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        *status = khub__fail_errno(err, path, "look at it");
    } else if (!S_ISREG(st.st_mode)) {
        *status = khub__fail(err, KHUB_E_FORMAT, "%s: is a %s, not a file", path,
                             S_ISDIR(st.st_mode) ? "directory" : "device or pipe");
    } else {
        *size = (size_t)st.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

static int read_all(int fd, khub__bytes *out, size_t size, const char *path, khub_error *err)
{
    out->data = khub__malloc(size + 1);
    if (!out->data) return khub__fail_memory(err, "reading a file");
    while (out->length < size) {
        ssize_t n = read(fd, out->data + out->length, size - out->length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return khub__fail_errno(err, path, "read it");
        if (n == 0) break; /* it shrank while we read: what was there is what we return */
        out->length += (size_t)n;
    }
    out->data[out->length] = 0;
    return KHUB_OK;
}

int khub__file_read(khub__bytes *out, const char *path, size_t max, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    size_t size;
    int rc, fd = open_regular(path, &size, &rc, err);
    if (fd < 0) return rc;
    if (size > max)
        rc = khub__fail(err, KHUB_E_FORMAT, "%s: is %zu bytes long, at most %zu are read", path, size, max);
    else
        rc = read_all(fd, out, size, path, err);
    close(fd);
    if (rc != KHUB_OK) khub__bytes_free(out);
    return rc;
}

int khub__file_map_open(khub__bytes *out, int fd, size_t bytes, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    if (bytes == 0) return KHUB_OK;
    out->data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (out->data == MAP_FAILED) {
        out->data = NULL;
        return khub__fail_errno(err, path, "map it");
    }
    out->length = bytes;
    out->mapped = 1;
    return KHUB_OK;
}

int khub__file_map(khub__bytes *out, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    size_t size;
    int rc, fd = open_regular(path, &size, &rc, err);
    if (fd < 0) return rc;
    rc = khub__file_map_open(out, fd, size, path, err);
    close(fd);
    return rc;
}

void khub__bytes_free(khub__bytes *bytes)
{
    if (bytes->mapped)
        munmap(bytes->data, bytes->length);
    else
        khub__free(bytes->data);
    memset(bytes, 0, sizeof(*bytes));
}

int khub__stream_open(khub__stream *out, const char *path, khub_error *err)
{
    int rc = KHUB_OK;
    out->path = path;
    out->fd = open_regular(path, &out->size, &rc, err);
    return rc;
}

int khub__stream_read(khub__stream *stream, void *data, size_t bytes, khub_error *err)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t n = read(stream->fd, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return khub__fail_errno(err, stream->path, "read it");
        if (n == 0)
            return khub__fail(err, KHUB_E_FORMAT, "%s: ends %zu bytes too early", stream->path, bytes);
        at += n;
        bytes -= (size_t)n;
    }
    return KHUB_OK;
}

void khub__stream_close(khub__stream *stream)
{
    close(stream->fd);
    stream->fd = -1;
}

enum khub__file_kind khub__file_kind(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return (errno == ENOENT || errno == ENOTDIR) && lstat(path, &st) != 0 ? KHUB__FILE_NONE
                                                                              : KHUB__FILE_BROKEN;
    return S_ISREG(st.st_mode)   ? KHUB__FILE_REGULAR
           : S_ISDIR(st.st_mode) ? KHUB__FILE_DIRECTORY
                                 : KHUB__FILE_OTHER;
}

void khub__file_link(char *out, size_t size, const char *path)
{
    ssize_t n = readlink(path, out, size);
    out[n < 0 || (size_t)n >= size ? 0 : n] = 0;
}

char *khub__file_real(const char *path)
{
    return realpath(path, NULL);
}

int khub__file_may_use(const char *path)
{
    return access(path, R_OK | W_OK) == 0;
}

static int is_directory(int dir, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) return entry->d_type == DT_DIR;
    return fstatat(dir, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static int list(char ***names, size_t *count, const char *path, int directories_only, khub_error *err)
{
    *names = NULL;
    *count = 0;
    DIR *dir = opendir(path);
    if (!dir) return khub__fail_errno(err, path, "list it");
    khub__text text = {0};
    struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (directories_only && !is_directory(dirfd(dir), entry)) continue;
        khub__text_add_bytes(&text, entry->d_name, strlen(entry->d_name) + 1);
        ++*count;
    }
    int broken = errno;
    closedir(dir);
    if (!broken && !text.failed) *names = khub__text_names(&text, *count);
    khub__text_free(&text);
    if (*names) return KHUB_OK;
    *count = 0;
    errno = broken;
    return broken ? khub__fail_errno(err, path, "list it") : khub__fail_memory(err, "listing a directory");
}

int khub__dir_list(char ***names, size_t *count, const char *path, khub_error *err)
{
    return list(names, count, path, 0, err);
}

int khub__dir_list_dirs(char ***names, size_t *count, const char *path, khub_error *err)
{
    return list(names, count, path, 1, err);
}

struct khub__draft {
    int fd;
    char *path;
    char *temporary; /* its name until it is put in place; NULL: it has none, or it is a device */
    int nameless;    /* O_TMPFILE */
    int synced;
};

void khub__draft_discard(khub__draft *draft)
{
    if (!draft) return;
    if (draft->fd >= 0) close(draft->fd);
    if (draft->temporary) unlink(draft->temporary);
    khub__free(draft->temporary);
    khub__free(draft->path);
    khub__free(draft);
}

/* Under this name the kernel knows an open file. */
static const char *name_of(int fd, char name[32])
{
    snprintf(name, 32, "/proc/self/fd/%d", fd);
    return name;
}

/* Makes the draft a file without a name, which can be given one later. 0: this can't be had here; -1: errno.
 */
static int open_nameless(khub__draft *draft)
{
#ifdef O_TMPFILE
    char name[32], *dir = khub__path_parent(draft->path);
    if (!dir) {
        errno = ENOMEM;
        return -1;
    }
    draft->fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    khub__free(dir);
    if (draft->fd >= 0 && access(name_of(draft->fd, name), F_OK) != 0) { /* no /proc */
        close(draft->fd);
        draft->fd = -1;
    }
    draft->nameless = draft->fd >= 0;
#endif
    return draft->nameless;
}

/* A name that nothing has yet: creates an empty file there (mkstemp's mode 0600 would stay), or links the
 * nameless one to it. */
static int take_name(khub__draft *draft, const char *name)
{
    char nameless[32];
    if (draft->nameless)
        return linkat(AT_FDCWD, name_of(draft->fd, nameless), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
    draft->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return draft->fd < 0 ? -1 : 0;
}

static int name_it(khub__draft *draft)
{
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        khub__text text = {0}; /* short: the file's own name may be as long as the system allows */
        khub__text_add_bytes(&text, draft->path, (size_t)(khub__path_name(draft->path) - draft->path));
        khub__text_addf(&text, ".khub-%ld-%u.tmp", (long)getpid(), attempt);
        char *name = khub__text_take(&text);
        if (!name) {
            errno = ENOMEM;
            return -1;
        }
        if (take_name(draft, name) == 0) {
            draft->temporary = name;
            return 0;
        }
        khub__free(name); /* not ours to unlink */
        if (errno != EEXIST) return -1;
    }
    return -1;
}

static int create_beside(khub__draft *draft)
{
    enum khub__file_kind kind = khub__file_kind(draft->path);
    if (kind == KHUB__FILE_DIRECTORY) {
        errno = EISDIR;
        return -1;
    }
    if (kind == KHUB__FILE_OTHER) { /* a rename would put a file in place of /dev/null */
        draft->fd = open(draft->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return draft->fd < 0 ? -1 : 0;
    }
    int nameless = open_nameless(draft);
    return nameless ? (nameless < 0 ? -1 : 0) : name_it(draft);
}

int khub__draft_open(khub__draft **out, const char *path, khub_error *err)
{
    *out = NULL;
    khub__draft *draft = khub__calloc(1, sizeof(*draft));
    if (!draft) return khub__fail_memory(err, "writing a file");
    draft->fd = -1;
    draft->path = khub__strdup(path);
    if (!draft->path || create_beside(draft) != 0) {
        if (!draft->path) errno = ENOMEM;
        int rc = khub__fail_errno(err, path, "create it");
        khub__draft_discard(draft);
        return rc;
    }
    *out = draft;
    return KHUB_OK;
}

int khub__draft_write(khub__draft *draft, const void *data, size_t bytes, khub_error *err)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = write(draft->fd, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return khub__fail_errno(err, draft->path, "write it");
        at += n;
        bytes -= (size_t)n;
    }
    return KHUB_OK;
}

int khub__draft_for_us(khub__draft *draft, khub_error *err)
{
    struct stat st;
    if (fstat(draft->fd, &st) != 0) return khub__fail_errno(err, draft->path, "look at it");
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && fchmod(draft->fd, st.st_mode & 0755) != 0)
        return khub__fail_errno(err, draft->path, "set its mode");
    return KHUB_OK;
}

int khub__draft_sync(khub__draft *draft, khub_error *err)
{
    if (fsync(draft->fd) != 0 && errno != EINVAL && errno != EROFS)
        return khub__fail_errno(err, draft->path, "write it");
    draft->synced = 1;
    return KHUB_OK;
}

/* -1: errno says why not. */
static int put_in_place(khub__draft *draft)
{
    if (draft->nameless && name_it(draft) != 0) return -1;
    int fd = draft->fd;
    draft->fd = -1;
    if (close(fd) != 0) return -1;
    if (!draft->temporary) return 0; /* a device */
    if (rename(draft->temporary, draft->path) != 0) return -1;
    khub__free(draft->temporary); /* it has the final name now */
    draft->temporary = NULL;
    return 0;
}

int khub__draft_commit(khub__draft *draft, khub_error *err)
{
    int rc = draft->synced ? KHUB_OK : khub__draft_sync(draft, err);
    if (rc == KHUB_OK && put_in_place(draft) != 0) rc = khub__fail_errno(err, draft->path, "write it");
    khub__draft_discard(draft);
    return rc;
}
