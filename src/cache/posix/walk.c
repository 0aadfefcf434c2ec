#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "cache/disk.h"
#include "cache/scan.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 };

typedef struct walker {
    khub__walk_fn *fn;
    void *user;
    size_t root; /* bytes of the root's path and its "/" */
    khub_error *err;
} walker;

static int walk(const walker *w, const char *dir, int depth);

static int visit(const walker *w, const char *full, int depth)
{
    khub__walked entry = {.path = full + w->root, .full = full};
    struct stat st;
    if (lstat(full, &st) != 0)
        return errno == ENOENT ? KHUB_OK : khub__fail_errno(w->err, full, "look at it");
    entry.is_link = S_ISLNK(st.st_mode);
    entry.is_directory = S_ISDIR(st.st_mode);
    entry.size = (uint64_t)st.st_size;
    entry.read = st.st_atime;
    entry.written = st.st_mtime;
    if (entry.is_link) {
        ssize_t n = readlink(full, entry.target, sizeof(entry.target) - 1);
        entry.target[n > 0 ? n : 0] = 0;
    }
    int rc = entry.is_directory ? walk(w, full, depth + 1) : KHUB_OK;
    return rc == KHUB_OK ? w->fn(w->user, &entry, w->err) : rc;
}

static int walk(const walker *w, const char *dir, int depth)
{
    char **names = NULL;
    size_t count = 0;
    khub_error why = {0};
    if (depth > DEPTH_MAX) return khub__fail(w->err, KHUB_E_IO, "%s: is too deep", dir);
    int rc = khub__dir_list(&names, &count, dir, &why);
    if (rc == KHUB_E_NOTFOUND) rc = KHUB_OK; /* removed meanwhile */
    if (rc != KHUB_OK) return khub__fail(w->err, rc, "%s", why.message);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        char *full = khub__path_join(dir, names[i]);
        rc = full ? visit(w, full, depth) : khub__fail_memory(w->err, "reading the cache");
        khub__free(full);
    }
    khub__free(names);
    return rc;
}

int khub__walk(const char *root, khub__walk_fn *fn, void *user, khub_error *err)
{
    const walker w = {fn, user, strlen(root) + 1, err};
    return walk(&w, root, 0);
}

int khub__scan_follow(khub__cached_blob *blob, const char *full)
{
    struct stat st;
    if (stat(full, &st) != 0) return -1;
    blob->size = (uint64_t)st.st_size;
    blob->read = st.st_atime;
    blob->written = st.st_mtime;
    return 0;
}

int khub__scan_same(const char *repo_path, const char *name, const char *full)
{
    char path[4096];
    struct stat blob, shown;
    int n = snprintf(path, sizeof(path), "%s/blobs/%s", repo_path, name);
    return n > 0 && (size_t)n < sizeof(path) && stat(path, &blob) == 0 && stat(full, &shown) == 0 &&
           blob.st_ino == shown.st_ino && blob.st_dev == shown.st_dev;
}

int64_t khub__scan_written(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_mtime : 0;
}

uint64_t khub__scan_size(const khub__store *store, const char *path)
{
    char full[KHUB__DISK_PATH_MAX];
    struct stat st;
    return khub__disk_path(full, store, path) == 0 && lstat(full, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* The contents in there are called by 64 hex digits; beside them lie lists of who uses them. */
static int add_bytes(void *user, const khub__walked *entry, khub_error *err)
{
    (void)err;
    const char *name = khub__path_name(entry->path);
    int is_content = !name[strspn(name, "0123456789abcdef")];
    if (is_content && !entry->is_link && !entry->is_directory) *(uint64_t *)user += entry->size;
    return KHUB_OK;
}

int khub__scan_shared(uint64_t *bytes, const char *path)
{
    char marker[4096];
    int n = snprintf(marker, sizeof(marker), "%s/.huggingface-shared-blobs", path);
    if (n <= 0 || (size_t)n >= sizeof(marker) || khub__file_kind(marker) != KHUB__FILE_REGULAR) return 0;
    khub__walk(path, add_bytes, bytes, NULL);
    return 1;
}
