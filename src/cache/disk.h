/* What the cache asks of a file system. Beneath a repository's folder no link to a directory is followed, so
 * that nothing is written elsewhere. One source per operating system. */
#ifndef CACHE_DISK_H
#define CACHE_DISK_H

#include "cache/store.h"

/* `path` from the root on, without "." at its start or "/" at its end. The caller's. KHUB_E_IO, KHUB_E_NOMEM.
 */
int khub__disk_absolute(char **out, const char *path, khub_error *err);

/* KHUB_E_IO when the cache is no folder and can't become one; one that isn't there is in order. */
int khub__disk_check_cache(const char *cache, khub_error *err);

/* One entry beneath a repository's folder: the open directory that holds it, and its name in there. */
typedef struct khub__spot {
    int dir;          /* -1: not open */
    const char *name; /* points into the path it was opened with */
} khub__spot;

/* Opens the directory of FOLDER/PATH. `make`: directories that are missing are made, FOLDER and the cache
 * too. KHUB_E_NOTFOUND, KHUB_E_NOSPACE, KHUB_E_IO, KHUB_E_NOMEM. */
int khub__spot_open(khub__spot *out, const khub__store *store, const char *path, int make, khub_error *err);
/* The same for removing and for locks: FOLDER itself may be no link either, so that the spot is inside the
 * cache, whatever gets another name or becomes a link meanwhile. The cache isn't made. errno, too. */
int khub__spot_open_plain(khub__spot *out, const khub__store *store, const char *path, int make,
                          khub_error *err);
void khub__spot_close(khub__spot *spot);

/* FOLDER/PATH. 0, or -1: longer than a path can be. */
enum { KHUB__DISK_PATH_MAX = 4096 };
int khub__disk_path(char out[KHUB__DISK_PATH_MAX], const khub__store *store, const char *path);

/* Makes the directory FOLDER/PATH. */
int khub__disk_make(const khub__store *store, const char *path, khub_error *err);

/* Writes FOLDER/PATH whole: beside everything that another tool reads, then renamed into place. */
int khub__disk_put(const khub__store *store, const char *path, const void *data, size_t bytes,
                   khub_error *err);

/* Reads FOLDER/PATH, a regular file of at most `max` bytes; a link counts when it stays inside the cache.
 * *age_s: since it was written (INT64_MAX: in the future). `*out` is the caller's (khub_free), with a NUL
 * behind it. KHUB_E_NOTFOUND, KHUB_E_FORMAT, KHUB_E_UNTRUSTED (it leads out of the cache), KHUB_E_IO,
 * KHUB_E_NOMEM. */
int khub__disk_get(char **out, size_t *bytes, int64_t *age_s, const khub__store *store, const char *path,
                   size_t max, khub_error *err);

/* Sets the time of FOLDER/PATH to now. 0, or -1 with errno. */
int khub__disk_touch(const khub__store *store, const char *path);

/* 1: `path` (absolute), links followed, is inside the cache. */
int khub__disk_inside(const khub__store *store, const char *path);

/* khub__path_is_ours of FOLDER/PATH, or with "" of FOLDER. What lies above is looked at once a second. */
int khub__disk_is_ours(const khub__store *store, const char *path, khub_error *err);

/* "PATH: can't WHAT: …" by errno; for a cache that can't be written it names the cache and what to do. */
int khub__disk_fail(khub_error *err, const khub__store *store, const char *path, const char *what);

/* A name for a temporary file: `before`, 8 random hex digits, `after`. */
enum { KHUB__TEMPORARY_MAX = 128 };
void khub__disk_temporary(char out[KHUB__TEMPORARY_MAX], const char *before, const char *after);

/* Milliseconds of a clock that only goes forward; the number of this process. */
int64_t khub__disk_now_ms(void);
long khub__disk_own_pid(void);

/* write() until all is written. 0, or -1 with errno. */
int khub__disk_write(int fd, const void *data, size_t bytes);

#endif
