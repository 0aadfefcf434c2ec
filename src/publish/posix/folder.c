#include "publish/folder.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct khub__folder {
    char *parent;     /* PARENT */
    char *above;      /* PARENT/SUB */
    char *path;       /* its place */
    char *draft;      /* where it is made; NULL: not made yet */
    char *made_above; /* the highest directory that wasn't there; NULL: all were */
    int replace;
};

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "making a directory");
}

/* Removes what is at `path`, no link followed. What can't be removed stays. */
static void remove_all(const char *path)
{
    struct stat st;
    char **names = NULL;
    size_t count = 0;
    if (lstat(path, &st) != 0) return;
    if (!S_ISDIR(st.st_mode)) {
        unlink(path);
        return;
    }
    khub__dir_list(&names, &count, path, NULL);
    for (size_t i = 0; i < count; i++) {
        char *child = khub__path_join(path, names[i]);
        if (child) remove_all(child);
        khub__free(child);
    }
    khub_free(names);
    rmdir(path);
}

/* mkdir -p. *made (may be NULL) becomes the highest directory that wasn't there, the caller's. */
static int make_directories(const char *path, char **made, khub_error *err)
{
    if (mkdir(path, 0777) == 0) {
        if (!made || (*made = khub__strdup(path))) return KHUB_OK;
        rmdir(path);
        return no_memory(err);
    }
    if (errno == EEXIST) {
        if (khub__file_kind(path) == KHUB__FILE_DIRECTORY) return KHUB_OK;
        return khub__fail(err, KHUB_E_IO, "%s: is not a directory", path);
    }
    if (errno != ENOENT && errno != ENOTDIR) return khub__fail_errno(err, path, "create it");
    char *above = khub__path_parent(path);
    int rc = above ? make_directories(above, made, err) : no_memory(err);
    khub__free(above);
    if (rc == KHUB_OK && mkdir(path, 0777) != 0 && errno != EEXIST)
        rc = khub__fail_errno(err, path, "create it");
    return rc;
}

static int fail_exists(const khub__folder *folder, khub_error *err)
{
    return khub__fail(err, KHUB_E_INVAL, "%s: is there already; khub_pack_options.replace replaces it",
                      folder->path);
}

static int is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int make_draft(khub__folder *folder, khub_error *err)
{
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        char name[64];
        snprintf(name, sizeof(name), ".khub-%ld-%u.tmp", (long)getpid(), attempt);
        char *draft = khub__path_join(folder->parent, name);
        if (!draft) return no_memory(err);
        if (mkdir(draft, 0777) == 0) {
            folder->draft = draft;
            return KHUB_OK;
        }
        int rc = errno == EEXIST ? KHUB_OK : khub__fail_errno(err, draft, "create it");
        khub__free(draft);
        if (rc != KHUB_OK) return rc;
    }
    return khub__fail(err, KHUB_E_IO, "%s: is full of unfinished directories, .khub-*.tmp", folder->parent);
}

int khub__folder_open(khub__folder **out, const char *parent, const char *sub, const char *name, int replace,
                      khub_error *err)
{
    khub__folder *folder = khub__calloc(1, sizeof(*folder));
    *out = NULL;
    if (!folder) return no_memory(err);
    folder->replace = replace;
    folder->parent = khub__strdup(parent);
    folder->above = khub__path_join(parent, sub);
    folder->path = folder->above ? khub__path_join(folder->above, name) : NULL;
    int rc = folder->parent && folder->path ? KHUB_OK : no_memory(err);
    if (rc == KHUB_OK && !replace && is_there(folder->path)) rc = fail_exists(folder, err);
    if (rc == KHUB_OK) rc = make_directories(folder->above, &folder->made_above, err);
    if (rc == KHUB_OK) rc = make_draft(folder, err);
    if (rc == KHUB_OK)
        *out = folder;
    else
        khub__folder_discard(folder);
    return rc;
}

const char *khub__folder_path(const khub__folder *folder)
{
    return folder->draft;
}

/* Creates a file in the draft, for writing; its path is the caller's. */
static int create(int *fd, char **full, const khub__folder *folder, const char *path, mode_t mode,
                  khub_error *err)
{
    *full = khub__path_join(folder->draft, path);
    char *above = *full ? khub__path_parent(*full) : NULL;
    int rc = above ? make_directories(above, NULL, err) : no_memory(err);
    khub__free(above);
    if (rc != KHUB_OK) return rc;
    *fd = open(*full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    return *fd < 0 ? khub__fail_errno(err, *full, "create it") : KHUB_OK;
}

static int write_all(int fd, const char *full, const char *data, size_t bytes, khub_error *err)
{
    while (bytes > 0) {
        ssize_t n = write(fd, data, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return khub__fail_errno(err, full, "write it");
        data += n;
        bytes -= (size_t)n;
    }
    return KHUB_OK;
}

/* Closes what `create` opened; a failure to write may show only now. */
static int finish(int rc, int fd, char *full, khub_error *err)
{
    if (fd >= 0 && close(fd) != 0 && rc == KHUB_OK) rc = khub__fail_errno(err, full, "write it");
    khub__free(full);
    return rc;
}

int khub__folder_write(khub__folder *folder, const char *path, const void *data, size_t bytes,
                       khub_error *err)
{
    char *full;
    int fd = -1;
    int rc = create(&fd, &full, folder, path, 0666, err);
    if (rc == KHUB_OK) rc = write_all(fd, full, data, bytes, err);
    return finish(rc, fd, full, err);
}

static int copy_content(khub__stream *from, int fd, const char *full, khub_error *err)
{
    enum { PIECE = 1 << 16 };
    char *piece = khub__malloc(PIECE);
    if (!piece) return khub__fail_memory(err, "copying a file");
    int rc = KHUB_OK;
    for (size_t left = from->size; rc == KHUB_OK && left > 0;) {
        size_t n = left < PIECE ? left : PIECE;
        rc = khub__stream_read(from, piece, n, err);
        if (rc == KHUB_OK) rc = write_all(fd, full, piece, n, err);
        left -= n;
    }
    khub__free(piece);
    return rc;
}

int khub__folder_copy(khub__folder *folder, const char *path, const char *from, khub_error *err)
{
    char *full = NULL;
    int fd = -1;
    struct stat st;
    khub__stream source;
    int rc = khub__stream_open(&source, from, err);
    if (rc != KHUB_OK) return rc;
    mode_t mode = fstat(source.fd, &st) == 0 && (st.st_mode & 0100) ? 0777 : 0666;
    rc = create(&fd, &full, folder, path, mode, err);
    if (rc == KHUB_OK) rc = copy_content(&source, fd, full, err);
    khub__stream_close(&source);
    return finish(rc, fd, full, err);
}

/* What is at its place moves away first: a directory that has something in it can't be renamed over. `old` is
 * where it moves to. */
static int exchange(const khub__folder *folder, const char *old, khub_error *err)
{
    if (rename(folder->path, old) != 0) return khub__fail_errno(err, folder->path, "replace it");
    if (rename(folder->draft, folder->path) == 0) return KHUB_OK;
    int rc = khub__fail_errno(err, folder->path, "put it in place");
    rename(old, folder->path);
    return rc;
}

static int replace(const khub__folder *folder, khub_error *err)
{
    khub__text text = {0};
    khub__text_addf(&text, "%.*s.old.tmp", (int)(strlen(folder->draft) - 4), folder->draft);
    char *old = khub__text_take(&text);
    if (!old) return no_memory(err);
    int rc = exchange(folder, old, err);
    if (rc == KHUB_OK) remove_all(old);
    khub__free(old);
    return rc;
}

static int put_in_place(khub__folder *folder, khub_error *err)
{
    if (folder->replace && is_there(folder->path)) return replace(folder, err);
    if (rename(folder->draft, folder->path) == 0) return KHUB_OK;
    if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) return fail_exists(folder, err);
    return khub__fail_errno(err, folder->path, "put it in place");
}

int khub__folder_commit(khub__folder *folder, khub_error *err)
{
    int rc = put_in_place(folder, err);
    if (rc == KHUB_OK) {
        khub__free(folder->draft);
        khub__free(folder->made_above);
        folder->draft = folder->made_above = NULL; /* it stays */
    }
    khub__folder_discard(folder);
    return rc;
}

/* From PARENT/SUB up to the highest that wasn't there, as far as they are empty. */
static void remove_made(const khub__folder *folder)
{
    size_t top = strlen(folder->made_above);
    char *path = khub__strdup(folder->above);
    while (path && strlen(path) >= top && rmdir(path) == 0) {
        char *above = khub__path_parent(path);
        khub__free(path);
        path = above;
    }
    khub__free(path);
}

void khub__folder_discard(khub__folder *folder)
{
    if (!folder) return;
    if (folder->draft) remove_all(folder->draft);
    if (folder->made_above) remove_made(folder);
    khub__free(folder->parent);
    khub__free(folder->above);
    khub__free(folder->path);
    khub__free(folder->draft);
    khub__free(folder->made_above);
    khub__free(folder);
}

/* *real: that of the nearest directory at or above `path` that is there; the C library's memory. */
static int nearest(char **real, const char *path, khub_error *err)
{
    char *at = khub__strdup(path);
    while (at && !(*real = realpath(at, NULL)) && strcmp(at, ".") != 0 && strcmp(at, "/") != 0) {
        char *above = khub__path_parent(at);
        khub__free(at);
        at = above;
    }
    int rc = *real ? KHUB_OK : at ? khub__fail_errno(err, at, "look at it") : no_memory(err);
    khub__free(at);
    return rc;
}

int khub__folder_within(int *within, const char *path, const char *folder, khub_error *err)
{
    char *inner = NULL, *outer = realpath(folder, NULL);
    int rc = outer ? nearest(&inner, path, err) : khub__fail_errno(err, folder, "look at it");
    size_t n = outer ? strlen(outer) : 0;
    *within = rc == KHUB_OK && !strncmp(inner, outer, n) && (!inner[n] || inner[n] == '/' || n == 1);
    free(inner);
    free(outer);
    return rc;
}
