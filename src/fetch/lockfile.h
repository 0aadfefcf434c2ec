/* kernels.lock: the commits that names of the Hub are fixed to. */
#ifndef FETCH_LOCKFILE_H
#define FETCH_LOCKFILE_H

#include "cache/store.h"

/* What the older form says about one build. */
typedef struct khub__locked_build {
    char *name;    /* "torch27-cxx11-cu128-x86_64-linux"; in the kernel's one allocation */
    char hash[65]; /* SHA-256, lower-case hex digits */
} khub__locked_build;

/* One kernel. */
typedef struct khub__locked {
    khub__wanted wanted; /* as it was asked for; of the older form only the repository */
    char commit[KHUB__COMMIT_MAX + 1];
    khub__locked_build *builds; /* of the older form */
    size_t build_count;
} khub__locked;

typedef struct khub__lockfile {
    char *path;
    khub__locked *kernels;
    size_t count, capacity;
} khub__lockfile;

/* Reads both forms that are in use. KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_FORMAT (file, entry, fact),
 * KHUB_E_NOMEM; then *out is zeroed. */
int khub__lockfile_read(khub__lockfile *out, const char *path, khub_error *err);
/* The same from text; `file` stands for it in messages. */
int khub__lockfile_parse(khub__lockfile *out, const char *text, size_t length, const char *file,
                         khub_error *err);
void khub__lockfile_free(khub__lockfile *lock); /* frees what it holds and zeroes it */

/* Adds a kernel, whose name isn't in it yet. KHUB_E_NOMEM. */
int khub__lockfile_add(khub__lockfile *lock, const khub__wanted *wanted, const char *commit, khub_error *err);

/* Sorts by repository, version and revision, as it is read and written. KHUB_E_FORMAT: two entries for one
 * name, of which one can't tell which counts. */
int khub__lockfile_sort(khub__lockfile *lock, khub_error *err);

/* The entry for the same repository and version or revision (a commit: one at that commit); for a name
 * without either, or an entry without, the repository alone decides, and of a range the highest version.
 * NULL: it isn't there. */
const khub__locked *khub__lockfile_find(const khub__lockfile *lock, const khub__wanted *wanted);

/* Puts the lock's commit in the place of a version or a branch. KHUB_E_NOTFOUND: it isn't in the lock. */
int khub__lockfile_pin(const khub__lockfile *lock, khub__wanted *wanted, khub_error *err);

/* Compares a build with what entries of the older form say about it, by the names of its files: those that
 * `tree` has, else those of the blobs that the snapshot in `store` (may be NULL) shows. `build` NULL: each of
 * `repository` at `commit`. KHUB_E_UNTRUSTED with both hashes, or when a file's name isn't known. */
int khub__lockfile_check(const khub__lockfile *lock, const char *repository, const char *commit,
                         const char *build, const khub__tree *tree, const khub__store *store,
                         khub_error *err);

/* The text of the newer form, as the Python package writes it, sorted.
 * *text is the caller's (khub_free). KHUB_E_INVAL: an entry has neither version nor
 * revision; KHUB_E_NOMEM. */
int khub__lockfile_text(char **text, khub__lockfile *lock, khub_error *err);

/* "org/name@v1" */
enum { KHUB__WANTED_NAME_MAX = KHUB__REPO_ID_MAX + KHUB__REVISION_MAX + 2 };
const char *khub__wanted_name(char out[KHUB__WANTED_NAME_MAX], const khub__wanted *wanted);

#endif
