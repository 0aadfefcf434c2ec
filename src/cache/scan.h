/* What khub_cache_read finds, as removing and verifying need it. */
#ifndef CACHE_SCAN_H
#define CACHE_SCAN_H

#include "cache/store.h"
#include "platform/pool.h"

#include <khub/cache.h>

enum { KHUB__NO_BLOB = -1, KHUB__SCAN_MAX = 1 << 24 /* of anything */ };

typedef struct khub__cached_blob {
    const char *name;
    uint64_t bytes;        /* on disk here: 0 when it is a link into the store that the peer shares */
    uint64_t size;         /* of its content */
    int64_t read, written; /* seconds since 1970 */
    size_t shown;          /* by so many revisions */
    size_t counted;        /* 1 + the last revision that counted it */
} khub__cached_blob;

typedef struct khub__cached_file {
    const char *path; /* in the snapshot */
    long blob;        /* in the repository's; KHUB__NO_BLOB */
    uint64_t size;    /* when it is no link: of the file itself */
    int is_link;
    const char *target; /* of a link */
} khub__cached_file;

typedef struct khub__cached_snapshot {
    khub_cached_revision revision; /* what khub_cache_at hands out */
    size_t repo;                   /* in khub_cache.repos */
    khub__cached_file *files;
} khub__cached_snapshot;

typedef struct khub__cached_repo {
    const char *kind, *id, *path; /* "kernel", "ORG/NAME", CACHE/kernels--ORG--NAME */
    khub__cached_blob *blobs;     /* by name */
    size_t blob_count;
    const char *const *partials; /* names in blobs/, NULL-terminated */
    const char *linked;          /* a directory of it that is a link, or it itself; NULL: none */
    int refs_unknown;            /* 1: a ref can't be read, so that any revision may be wanted */
} khub__cached_repo;

struct khub_cache {
    khub__pool pool; /* holds everything below */
    const char *path;
    khub__cached_repo *repos;
    size_t repo_count, repo_capacity; /* repos, snapshots and warnings are khub__grow's */
    khub__cached_snapshot *snapshots; /* by kind, repository, commit */
    size_t snapshot_count, snapshot_capacity;
    const char **warnings;
    size_t warning_count, warning_capacity;
    uint64_t bytes;
};

/* A store for a repository that was found, whatever its kind; borrows from `cache`, isn't closed. */
khub__store khub__scan_store(const khub_cache *cache, const khub__cached_repo *repo);

/* One entry of a tree of directories. */
typedef struct khub__walked {
    const char *path; /* beneath the root */
    const char *full;
    int is_link, is_directory; /* a directory comes after what is in it */
    uint64_t size;
    int64_t read, written;
    char target[1024]; /* of a link */
} khub__walked;

/* Every entry under `root`, no link followed, by names. Not KHUB_OK of `fn` ends it and is the result. A
 * directory that isn't there has no entries; KHUB_E_IO, KHUB_E_NOMEM. One source per operating system. */
typedef int khub__walk_fn(void *user, const khub__walked *entry, khub_error *err);
int khub__walk(const char *root, khub__walk_fn *fn, void *user, khub_error *err);

/* Reads what is in the folder of `repo` (kind, id and path are set): its blobs, its snapshots into `cache`.
 */
int khub__scan_repo(khub_cache *cache, khub__cached_repo *repo, khub_error *err);

/* Keeps a line for khub_cache_warning. KHUB_OK, KHUB_E_NOMEM. */
int khub__scan_warn(khub_cache *cache, khub_error *err, const char *format, ...) KHUB_PRINTF(3, 4);

/* Size and times of the file behind a blob that is a link. 0, or -1: there is none. */
int khub__scan_follow(khub__cached_blob *blob, const char *full);

/* 1: `full`, followed, is the file REPO/blobs/NAME. */
int khub__scan_same(const char *repo_path, const char *name, const char *full);

/* Bytes of a file beneath the folder; 0: not there. */
uint64_t khub__scan_size(const khub__store *store, const char *path);

/* When a directory was written; 0: unknown. */
int64_t khub__scan_written(const char *path);

/* 1 and its bytes are added, when `path` is the store in which huggingface_hub keeps what repositories share.
 */
int khub__scan_shared(uint64_t *bytes, const char *path);

#endif
