#include "serve/names.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "serve/known.h"
#include "serve/pointer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PIECE = 1 << 18 };

/* A file that was changed less than this before it was hashed may change once more without its times showing
 * it: the clock of a filesystem ticks every few milliseconds. Its names are told, but not kept. */
static const int64_t settles_ns = 50 * INT64_C(1000000);

static atomic_int canceled;
static atomic_uint_least64_t hashed;

int serve_is_lfs(const char *path, uint64_t size)
{
    static const char *const endings[] = {".so",   ".safetensors", ".bin",     ".pt",    ".pth", ".onnx",
                                          ".gguf", ".h5",          ".msgpack", ".npy",   ".npz", ".zip",
                                          ".gz",   ".tar",         ".parquet", ".model", ".dll", ".dylib"};
    const char *ending = strrchr(khub__path_name(path), '.');
    if (size >= 10000000) return 1;
    for (size_t i = 0; ending && i < sizeof(endings) / sizeof(*endings); i++)
        if (!strcmp(ending, endings[i])) return 1;
    return 0;
}

/* Adds `size` bytes of fd. */
static int add_file(khub__hash *hash, int fd, const char *path, uint64_t size, khub_error *err)
{
    char *piece = khub__malloc(PIECE);
    int rc = piece ? KHUB_OK : khub__fail_memory(err, "hashing");
    while (rc == KHUB_OK && size) {
        int64_t n = serve_read(fd, piece, size < PIECE ? (size_t)size : PIECE);
        if (n < 0) rc = khub__fail_errno(err, path, "read it");
        if (n == 0) rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: changes while it is read", path);
        if (n <= 0) break;
        khub__hash_add(hash, piece, (size_t)n);
        size -= (uint64_t)n;
        atomic_fetch_add_explicit(&hashed, (uint64_t)n, memory_order_relaxed);
        if (atomic_load(&canceled)) rc = khub__fail(err, KHUB_E_CANCELED, "the server stops");
    }
    khub__free(piece);
    return rc;
}

static int hash_file(serve_names *out, int fd, const char *path, uint64_t size, int lfs, khub_error *err)
{
    char hex[KHUB__HASH_HEX_MAX + 1] = "";
    khub__hash *hash;
    int rc = khub__hash_new(&hash, lfs ? KHUB__HASH_SHA256 : KHUB__HASH_GIT_BLOB, size, err);
    if (rc != KHUB_OK) return rc;
    rc = add_file(hash, fd, path, size, err);
    if (rc == KHUB_OK) khub__hash_end(hash, hex);
    khub__hash_free(hash);
    if (rc != KHUB_OK) return rc;
    memset(out, 0, sizeof(*out));
    if (!lfs) {
        memcpy(out->oid, hex, sizeof(out->oid));
        return KHUB_OK;
    }
    memcpy(out->sha256, hex, sizeof(out->sha256));
    return serve_pointer_oid(out->oid, out->sha256, size, err);
}

static int is_settled(const serve_identity *identity, const struct timespec *before)
{
    return identity->changed_ns + settles_ns < before->tv_sec * INT64_C(1000000000) + before->tv_nsec;
}

int serve_names_of(serve_names *out, const char *path, const serve_identity *identity, int lfs,
                   khub_error *err)
{
    if (serve_known_get(out, identity, lfs)) return KHUB_OK;
    struct timespec before;
    clock_gettime(CLOCK_REALTIME, &before);
    serve_identity found;
    int fd = serve_root_file(&found, path);
    if (fd < 0)
        return khub__fail(err, errno == EACCES || errno == EPERM ? KHUB_E_DENIED : KHUB_E_NOTFOUND, "%s: %s",
                          path, strerror(errno));
    int rc = serve_identity_equal(&found, identity)
                 ? hash_file(out, fd, path, identity->size, lfs, err)
                 : khub__fail(err, KHUB_E_NOTFOUND, "%s: changes while it is looked at", path);
    if (rc == KHUB_OK && !serve_is_same(fd, identity))
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: changes while it is read", path);
    serve_close(fd);
    if (rc == KHUB_OK && is_settled(identity, &before)) serve_known_put(out, identity);
    return rc;
}

void serve_names_cancel(void)
{
    atomic_store(&canceled, 1);
}

uint64_t serve_names_hashed(void)
{
    return atomic_load_explicit(&hashed, memory_order_relaxed);
}
