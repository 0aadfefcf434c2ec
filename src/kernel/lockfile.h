/* kernels.lock: the commits that names of the Hub are fixed to. */
#ifndef KERNEL_LOCKFILE_H
#define KERNEL_LOCKFILE_H

#include "hub/repo.h"

/* One kernel. */
typedef struct khub__locked {
    khub__wanted wanted; /* as it was asked for; of the older form only the repository */
    char commit[KHUB__COMMIT_MAX + 1];
} khub__locked;

typedef struct khub__lockfile {
    char *path;
    khub__locked *kernels;
    size_t count, capacity;
} khub__lockfile;

/* Reads both forms that are in use. KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_FORMAT (file, entry, fact),
 * KHUB_E_NOMEM; then *out is zeroed. */
int khub__lockfile_read(khub__lockfile *out, const char *path, khub_error *err);
void khub__lockfile_free(khub__lockfile *lock); /* frees what it holds and zeroes it */

/* The commit for the same repository and version or revision; for a name without either, or an entry without,
 * the repository alone decides. NULL: it isn't there. */
const char *khub__lockfile_find(const khub__lockfile *lock, const khub__wanted *wanted);

#endif
