/* The cache on disk that all Hugging Face tools share: what is in it, and how something leaves it. */
#ifndef KHUB_CACHE_H
#define KHUB_CACHE_H

#include <khub/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The directory that `cache_dir` (may be NULL) and the environment name for kernels: cache_dir,
 * KERNELS_CACHE, HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub,
 * ~/.cache/huggingface/hub; "~" and
 * "$VAR" are expanded. It may not exist. Freed with khub_free. KHUB_E_NOTFOUND: there is no home directory.
 */
KHUB_API int khub_cache_dir(char **out, const char *cache_dir, khub_error *err);

typedef struct khub_cache khub_cache;

/* Reads what is in the cache. A directory that isn't there is an empty cache; what isn't understood is kept
 * as a warning and never touched. Any thread. *out is the caller's. KHUB_E_IO, KHUB_E_NOMEM. */
KHUB_API int khub_cache_read(khub_cache **out, const char *cache_dir, khub_error *err);
KHUB_API void khub_cache_free(khub_cache *cache); /* NULL is a no-op */

/* One commit of one repository. Strings are the cache's. */
typedef struct khub_cached_revision {
    const char *kind;       /* "kernel", "model", "dataset", … */
    const char *repository; /* "ORG/NAME" */
    const char *commit;
    const char *const *refs; /* that point at it, NULL-terminated: "v1", "main" */
    const char *path;        /* of the snapshot */
    uint64_t bytes;          /* of the files it shows, shared blobs too */
    uint64_t own_bytes;      /* of the blobs that no other revision shows: what removing it frees */
    size_t file_count;
    int64_t last_used;     /* seconds since 1970, of the file read last; 0: unknown */
    int64_t last_modified; /* seconds since 1970 */
} khub_cached_revision;

/* The i-th revision, by kind, repository and commit; NULL past the last. Valid until the cache is freed. */
KHUB_API const khub_cached_revision *khub_cache_at(const khub_cache *cache, size_t i);
KHUB_API const char *khub_cache_warning(const khub_cache *cache, size_t i); /* what wasn't understood */
KHUB_API const char *khub_cache_path(const khub_cache *cache);
KHUB_API uint64_t khub_cache_bytes(const khub_cache *cache); /* of all blobs, unused ones too */

/* What a removal did, or would do. */
typedef struct khub_removed {
    uint64_t bytes; /* freed on disk */
    size_t blobs, revisions, repositories, partial_downloads;
} khub_removed;

/* Removes one revision of the cache, or with commit NULL all of a repository's; `kind` as in
 * khub_cached_revision. Only blobs go that no snapshot needs, each after the last snapshot that showed it; a
 * repository without snapshots goes whole. `dry_run` not 0: only counts. Other processes may read and fetch
 * meanwhile. KHUB_E_NOTFOUND, KHUB_E_IO. */
KHUB_API int khub_cache_remove(khub_removed *removed, const khub_cache *cache, const char *kind,
                               const char *repository, const char *commit, int dry_run, khub_error *err);

/* Called for each revision that has gone, or would go. */
typedef void (*khub_pruned_fn)(void *user, const khub_cached_revision *revision);

/* Removes what nobody needs: revisions that no ref points at, also when a lock names them (none of a
 * repository with a ref that can't be read: a warning says which), blobs that no snapshot shows, partial
 * downloads that no process holds. `fn` may be NULL. */
KHUB_API int khub_cache_prune(khub_removed *removed, const khub_cache *cache, int dry_run, khub_pruned_fn fn,
                              void *user, khub_error *err);

typedef enum khub_file_state {
    KHUB_FILE_GOOD,
    KHUB_FILE_CHANGED, /* the content doesn't hash to the blob's name */
    KHUB_FILE_MISSING, /* a snapshot shows a blob that isn't there */
    KHUB_FILE_UNKNOWN  /* nothing says what it should be: a file that another tool put there */
} khub_file_state;

/* One file of one revision, rehashed. `detail` says both hashes or sizes; NULL for a good one. Not 0 stops.
 */
typedef int (*khub_verify_fn)(void *user, const khub_cached_revision *revision, const char *file,
                              khub_file_state state, const char *detail);

/* Rehashes every blob that `repository` (NULL: any) shows, each once, and calls `fn` for each file of each
 * revision. *bad is the number of files that are changed or missing. KHUB_E_NOTFOUND, KHUB_E_IO,
 * KHUB_E_CANCELED (`fn`), KHUB_E_NOMEM. */
KHUB_API int khub_cache_verify(size_t *bad, const khub_cache *cache, const char *repository,
                               khub_verify_fn fn, void *user, khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
