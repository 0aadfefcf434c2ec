/* A blob on its way into the cache. */
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "cache/layout.h"
#include "cache/link.h"
#include "cache/partial.h"
#include "cache/wait.h"

#include <errno.h>
#include <stdio.h>

/* For how long an interrupted fetch is hashed in one go, and in which pieces. What isn't worth keeping. */
enum { SLICE_MS = 40, PIECE = 1 << 18, KEEP_MIN = 1 << 16 };

/* How often a file that somebody takes out of the cache is brought anew, and a directory made. */
enum { TAKEN_OUT_MAX = 3, DIRECTORIES_MAX = 10 };

struct khub__blob {
    const khub__store *store;
    char *path;
    char commit[KHUB__COMMIT_MAX + 1];
    char etag[KHUB__HASH_HEX_MAX + 1];
    khub__hash_kind kind;
    uint64_t size;   /* UINT64_MAX: unknown */
    uint64_t have;   /* bytes in the file */
    uint64_t hashed; /* of these */
    int looked, distrusted, resumed, whole, shown;
    int broken;    /* the file can't be written: nothing of it is kept */
    int taken_out; /* how often its file was removed before it had its name */
    khub__hash *hash;
    khub__lock lock;
    khub__wait wait;
    khub__partial partial;
};

int khub__blob_new(khub__blob **out, const khub__store *store, const char *commit, const char *path,
                   khub_error *err)
{
    *out = NULL;
    char checked[KHUB__LAYOUT_MAX];
    int rc = khub__layout_of_commit(checked, "snapshots", commit, path, err);
    if (rc != KHUB_OK) return rc;
    khub__blob *blob = khub__calloc(1, sizeof(*blob));
    if (!blob) return khub__fail_memory(err, "fetching a file");
    blob->store = store;
    blob->lock.fd = blob->partial.file = blob->partial.blobs.dir = -1;
    memcpy(blob->commit, commit, strlen(commit) + 1);
    blob->path = khub__strdup(path);
    if (!blob->path) {
        khub__blob_free(blob);
        return khub__fail_memory(err, "fetching a file");
    }
    *out = blob;
    return KHUB_OK;
}

void khub__blob_distrust(khub__blob *blob)
{
    blob->distrusted = 1;
}

/* The end, well or not. */
static void leave(khub__blob *blob, int keep)
{
    khub__partial_drop(&blob->partial, keep);
    if (!keep) khub__lock_write_note(&blob->lock, "");
    khub__hash_free(blob->hash);
    blob->hash = NULL;
    khub__spot_close(&blob->partial.blobs);
    khub__lock_release(&blob->lock, 0);
}

static int is_worth_keeping(const khub__blob *blob)
{
    return !blob->broken && blob->partial.file >= 0 && blob->have >= KEEP_MIN;
}

void khub__blob_free(khub__blob *blob)
{
    if (!blob) return;
    leave(blob, is_worth_keeping(blob)); /* still open: it was ended while begin was busy */
    khub__free(blob->path);
    khub__free(blob);
}

static int fail_space(const khub__blob *blob, uint64_t needed, uint64_t free_bytes, khub_error *err)
{
    return khub__fail(err, KHUB_E_NOSPACE, "%s/blobs: the disk is full: %s needs %llu bytes, %llu are free",
                      blob->store->folder, blob->path, (unsigned long long)needed,
                      (unsigned long long)free_bytes);
}

/* By errno. */
static int fail_write(const khub__blob *blob, const char *what, khub_error *err)
{
    char path[KHUB__LAYOUT_MAX];
    int e = errno;
    uint64_t free_bytes = khub__partial_free_bytes(&blob->partial);
    if ((e == ENOSPC || e == EDQUOT || e == EFBIG) && blob->size != UINT64_MAX && free_bytes != UINT64_MAX) {
        const char *limit = e != ENOSPC                                 ? strerror(e)
                            : khub__partial_takes_files(&blob->partial) ? "the disk is full"
                                                                        : "the disk takes no more files";
        return khub__fail(err, KHUB_E_NOSPACE, "%s/blobs: %s: %s needs %llu more bytes, %llu are free",
                          blob->store->folder, limit, blob->path,
                          (unsigned long long)(blob->size - blob->have), (unsigned long long)free_bytes);
    }
    snprintf(path, sizeof(path), "blobs/%s", blob->etag);
    errno = e;
    return khub__disk_fail(err, blob->store, path, what);
}

/* A hash of a content of `size` bytes (UINT64_MAX: unknown), which nothing was added to yet. git's begins
 * with the size: without it there is none, and the whole file is hashed at the end. */
static int start_hash(khub__blob *blob, uint64_t size, khub_error *err)
{
    khub__hash_free(blob->hash);
    blob->hash = NULL;
    blob->hashed = 0;
    if (blob->kind == KHUB__HASH_GIT_BLOB && size == UINT64_MAX) return KHUB_OK;
    return khub__hash_new(&blob->hash, blob->kind, size, err);
}

static int open_blobs(khub__blob *blob, khub_error *err)
{
    char path[KHUB__LAYOUT_MAX];
    snprintf(path, sizeof(path), "blobs/%s", blob->etag);
    int rc = khub__spot_open(&blob->partial.blobs, blob->store, path, 1, err);
    blob->partial.blobs.name = blob->etag; /* `path` ends with this function */
    return rc;
}

/* A file in blobs/, which is made again when somebody removes it. */
static int create(khub__blob *blob, khub_error *err)
{
    int rc = KHUB_OK;
    for (int attempt = 1; rc == KHUB_OK; attempt++) {
        if (khub__partial_create(&blob->partial, &blob->lock, blob->size < KEEP_MIN) == KHUB_OK) break;
        if (errno != ENOENT || attempt == DIRECTORIES_MAX) return fail_write(blob, "create it", err);
        khub__spot_close(&blob->partial.blobs);
        rc = open_blobs(blob, err);
    }
    return rc;
}

/* A new, empty file. */
static int start_over(khub__blob *blob, khub_error *err)
{
    khub__partial_drop(&blob->partial, 0);
    blob->have = 0;
    blob->resumed = 0;
    int rc = create(blob, err);
    return rc == KHUB_OK ? start_hash(blob, blob->size, err) : rc;
}

/* Hashes what is in the file and isn't hashed yet, for about `most_ms`. */
static int catch_up(khub__blob *blob, int64_t most_ms, khub_error *err)
{
    int64_t start = khub__disk_now_ms();
    char *piece = blob->hashed < blob->have ? khub__malloc(PIECE) : NULL;
    if (blob->hashed < blob->have && !piece) return khub__fail_memory(err, "reading an interrupted fetch");
    int rc = KHUB_OK;
    while (rc == KHUB_OK && blob->hashed < blob->have && khub__disk_now_ms() - start < most_ms) {
        uint64_t left = blob->have - blob->hashed;
        int64_t n =
            khub__partial_read(&blob->partial, piece, left < PIECE ? (size_t)left : PIECE, blob->hashed);
        if (n <= 0) {
            if (n == 0) errno = EIO; /* it became shorter */
            rc = fail_write(blob, "read it", err);
        } else {
            khub__hash_add(blob->hash, piece, (size_t)n);
            blob->hashed += (uint64_t)n;
        }
    }
    khub__free(piece);
    return rc;
}

/* The lock is ours: is the blob there, or a part of it? */
static int look(khub__blob *blob, khub_error *err)
{
    blob->looked = 1;
    uint64_t size = blob->size;
    if (!blob->distrusted && khub__partial_is_whole(&blob->partial, blob->store, &size)) {
        blob->whole = 1;
        blob->have = size;
        return KHUB_OK;
    }
    if (!blob->distrusted && size != UINT64_MAX &&
        khub__link_is_copy(blob->store, blob->commit, blob->path, size)) {
        blob->shown = blob->whole = 1; /* where links are refused: whoever we waited for made it */
        blob->have = size;
        return KHUB_OK;
    }
    blob->have = khub__partial_adopt(&blob->partial, &blob->lock, blob->size);
    blob->resumed = blob->have > 0;
    uint64_t free_bytes = khub__partial_free_bytes(&blob->partial);
    if (blob->size != UINT64_MAX && free_bytes < blob->size - blob->have)
        return fail_space(blob, blob->size - blob->have, free_bytes, err);
    return blob->resumed ? start_hash(blob, blob->size, err) : start_over(blob, err);
}

static int begin(void *self, const char *etag, uint64_t size, uint64_t *have, khub_error *err)
{
    khub__blob *blob = self;
    *have = 0;
    if (khub__hash_kind_of(&blob->kind, etag) != 0)
        return khub__fail(err, KHUB_E_FORMAT, "%s: \"%.80s\" isn't the name of a content", blob->path, etag);
    memcpy(blob->etag, etag, strlen(etag) + 1);
    blob->size = size;
    int rc = blob->partial.blobs.dir < 0 ? open_blobs(blob, err) : KHUB_OK; /* the lock is beside it */
    if (rc == KHUB_OK) rc = khub__lock_try(&blob->lock, blob->store, etag, err);
    if (rc > 0) {
        rc = khub__wait_busy(&blob->wait, &blob->lock, err);
        khub__lock_rest(&blob->lock); /* thousands may be waiting */
        khub__spot_close(&blob->partial.blobs);
    }
    if (rc == KHUB_OK && !blob->looked) rc = look(blob, err);
    if (rc == KHUB_OK && blob->hash) rc = catch_up(blob, SLICE_MS, err);
    if (rc < 0) {
        leave(blob, 0);
        return rc;
    }
    if (rc == KHUB_OK && blob->hash && blob->hashed < blob->have) rc = KHUB__SINK_BUSY;
    if (rc == KHUB_OK) *have = blob->have;
    return rc;
}

static int write_bytes(void *self, const void *data, size_t bytes, khub_error *err)
{
    khub__blob *blob = self;
    if (blob->size != UINT64_MAX && bytes > blob->size - blob->have)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is longer than the %llu bytes that were announced",
                          blob->path, (unsigned long long)blob->size);
    if (khub__disk_write(blob->partial.file, data, bytes) != 0) {
        blob->broken = 1;
        return fail_write(blob, "write it", err);
    }
    blob->have += bytes;
    if (blob->hash) {
        khub__hash_add(blob->hash, data, bytes);
        blob->hashed += bytes;
    }
    return KHUB_OK;
}

static int restart(void *self, khub_error *err)
{
    khub__blob *blob = self;
    blob->whole = blob->shown = 0;
    return start_over(blob, err);
}

/* Compares the content with the blob's name: KHUB_OK, KHUB__SINK_AGAIN or KHUB_E_UNTRUSTED. */
static int check(khub__blob *blob, khub_error *err)
{
    char hex[KHUB__HASH_HEX_MAX + 1];
    int rc = KHUB_OK;
    if (!blob->hash) {
        rc = start_hash(blob, blob->have, err);
        if (rc == KHUB_OK) rc = catch_up(blob, INT64_MAX, err);
        if (rc != KHUB_OK) return rc;
    }
    khub__hash_end(blob->hash, hex);
    if (!strcmp(hex, blob->etag)) return KHUB_OK;
    if (blob->resumed) {
        khub__log(KHUB_LOG_NOTICE, "cache", blob->path,
                  "what an interrupted fetch left was damaged, it starts again");
        rc = start_over(blob, err);
        return rc == KHUB_OK ? KHUB__SINK_AGAIN : rc;
    }
    return khub__fail(err, KHUB_E_UNTRUSTED, "%s: the content that came hashes to %s, its name is %s",
                      blob->path, hex, blob->etag);
}

/* Somebody took the file or the blob out: KHUB__SINK_AGAIN, but not for ever. */
static int bring_again(khub__blob *blob, khub_error *err)
{
    if (blob->taken_out++ == TAKEN_OUT_MAX)
        return khub__fail(err, KHUB_E_IO, "%s/blobs: the file of %s was removed %d times while it came",
                          blob->store->folder, blob->path, blob->taken_out);
    khub__log(KHUB_LOG_NOTICE, "cache", blob->path,
              "its file was taken out of the cache meanwhile, it is fetched again");
    blob->whole = 0;
    int rc = start_over(blob, err);
    return rc == KHUB_OK ? KHUB__SINK_AGAIN : rc;
}

static int put_in_place(khub__blob *blob, khub_error *err)
{
    if (khub__partial_commit(&blob->partial) == KHUB_OK) return KHUB_OK;
    if (errno != ENOENT) return fail_write(blob, "put it in place", err);
    uint64_t size = blob->size;
    /* where locks don't work, another process may have taken the file over; then the blob is there by now */
    return khub__partial_is_whole(&blob->partial, blob->store, &size) ? KHUB_OK : bring_again(blob, err);
}

/* After the blob: no link is ever seen that shows nothing. */
static int show(khub__blob *blob, khub_error *err)
{
    khub_error why = {0};
    int rc = khub__link_put(blob->store, blob->commit, blob->path, blob->etag, !blob->whole, &why);
    if (rc == KHUB_E_NOTFOUND) return bring_again(blob, err);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
}

static int finish(void *self, khub_error *err)
{
    khub__blob *blob = self;
    int rc = KHUB_OK;
    if (!blob->whole) {
        if (blob->size != UINT64_MAX && blob->have != blob->size)
            rc = khub__fail(err, KHUB_E_FORMAT, "%s: has %llu bytes, %llu were announced", blob->path,
                            (unsigned long long)blob->have, (unsigned long long)blob->size);
        if (rc == KHUB_OK) rc = check(blob, err);
        if (rc == KHUB_OK) rc = put_in_place(blob, err);
    }
    if (rc == KHUB_OK && !blob->shown) rc = show(blob, err);
    if (rc != KHUB__SINK_AGAIN) leave(blob, 0);
    return rc;
}

static void abandon(void *self, int keep)
{
    khub__blob *blob = self;
    leave(blob, keep && is_worth_keeping(blob));
}

const khub__sink khub__blob_sink = {begin, write_bytes, restart, finish, abandon};
