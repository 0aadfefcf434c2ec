/* One repository in the cache, byte for byte as huggingface_hub lays it out: refs, trees, snapshots, blobs.
 * Several processes, also of other tools, read and write it at once; what is visible under its final name is
 * whole. */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include "hub/client.h"

typedef struct khub__store {
    char *cache;  /* CACHE, absolute */
    char *folder; /* CACHE/kernels--ORG--NAME */
    khub__repo repo;
} khub__store;

/* CACHE for a kind of repository, as khub_cache_dir says (KERNELS_CACHE counts for kernels only). The
 * caller's. */
int khub__cache_dir(char **out, khub__repo_kind kind, const char *cache_dir, khub_error *err);

/* Nothing is made on disk until something is written. KHUB_E_NOTFOUND (no home), KHUB_E_NOMEM. */
int khub__store_open(khub__store *out, const khub__repo *repo, const char *cache_dir, khub_error *err);
void khub__store_close(khub__store *store); /* frees what it holds and zeroes it */

/* The commit that refs/REV names. *age_s: seconds since it was written or confirmed (INT64_MAX: in the
 * future, so unknown). KHUB_E_NOTFOUND: no such ref, or an empty one; KHUB_E_FORMAT: not a commit; KHUB_E_IO.
 */
int khub__store_ref(char commit[KHUB__COMMIT_MAX + 1], int64_t *age_s, const khub__store *store,
                    const char *revision, khub_error *err);
/* Writes refs/REV by rename, or only confirms it (its time) when it says the same already. */
int khub__store_set_ref(const khub__store *store, const char *revision, const char *commit, khub_error *err);

/* trees/COMMIT.json. KHUB_E_NOTFOUND: not there, or not one that can be read (a notice then). */
int khub__store_tree(khub__tree *out, const khub__store *store, const char *commit, khub_error *err);
int khub__store_set_tree(const khub__store *store, const char *commit, const khub__tree *tree,
                         khub_error *err);

/* moved/COMMIT: the repository that the tree came from, where that isn't the store's (a rename).
 * KHUB_E_NOTFOUND: it is the store's; KHUB_E_FORMAT, KHUB_E_IO. */
int khub__store_moved(khub__repo *there, const khub__store *store, const char *commit, khub_error *err);
int khub__store_set_moved(const khub__store *store, const char *commit, const khub__repo *there,
                          khub_error *err);

/* snapshots/COMMIT, the caller's (khub_free); NULL: no memory. */
char *khub__store_snapshot(const khub__store *store, const char *commit);

/* 1: snapshots/COMMIT/PATH is there, links followed, and has `size` bytes (UINT64_MAX: any). */
int khub__store_has(const khub__store *store, const char *commit, const char *path, uint64_t size);

/* Makes snapshots/COMMIT/PATH show the blob `etag`, which is there: a relative link, or where links are
 * refused (or HF_HUB_DISABLE_SYMLINKS is true) the file itself. One that is there already stays. KHUB_E_IO,
 * KHUB_E_NOSPACE, … */
int khub__store_link(const khub__store *store, const char *commit, const char *path, const char *etag,
                     khub_error *err);

/* .no_exist/COMMIT/PATH */
int khub__store_set_absent(const khub__store *store, const char *commit, const char *path, khub_error *err);
int khub__store_is_absent(const khub__store *store, const char *commit, const char *path);

/* The snapshots there are, newest first; *commits is one allocation (khub_free). */
int khub__store_commits(char ***commits, size_t *count, const khub__store *store, khub_error *err);

/* The refs there are (with "/" inside where they have it), sorted; one allocation. */
int khub__store_refs(char ***refs, size_t *count, const khub__store *store, khub_error *err);

/* A blob on its way in: a sink for the client (self: khub__blob). Holds .locks/…/ETAG.lock from begin to
 * finish or abandon; while another process holds it, begin is KHUB__SINK_BUSY, so that processes wait for
 * each other rather than fetch the same twice. A notice after 5 s names lock and holder; KHUB_LOCK_SECONDS (0
 * or unset: as long as it takes) ends the wait with KHUB_E_IO that names both. When the blob is there by
 * then, begin says that all bytes are. It goes on with what a killed process left, hashes while the bytes
 * arrive, and gives the blob its name only when the hash is that name, else KHUB_E_UNTRUSTED with both
 * hashes. Free space is asked for first: KHUB_E_NOSPACE with the directory, needed and free. */
typedef struct khub__blob khub__blob;
extern const khub__sink khub__blob_sink;

/* For snapshots/COMMIT/PATH: when the blob is in place, the link is made too. Keeps nothing of the arguments
 * but `store`. */
int khub__blob_new(khub__blob **out, const khub__store *store, const char *commit, const char *path,
                   khub_error *err);
void khub__blob_free(khub__blob *blob); /* NULL is a no-op */

/* Before begin: what the cache has under the blob's name was found to be something else. It is fetched and,
 * when the new one is whole, replaced, though its size is right. */
void khub__blob_distrust(khub__blob *blob);

#endif
