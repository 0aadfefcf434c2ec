/* kernels.lock: names of kernels, fixed to commits. The Python package `kernels` reads and writes the same
 * file. */
#ifndef KHUB_LOCK_H
#define KHUB_LOCK_H

#include <khub/hub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One entry of a kernels.lock. */
typedef struct khub_locked_kernel {
    char name[512];  /* "org/name@v1", as it was locked; without "@" in a lock of the older form */
    char commit[65]; /* that it was locked to */
} khub_locked_kernel;

/* Reads a kernels.lock of either form (docs/locks.md), in the order of repository, version and revision. *out
 * is one allocation, the caller's (khub_free); NULL when the lock is empty. Any thread. KHUB_E_NOTFOUND,
 * KHUB_E_IO, KHUB_E_FORMAT (file, entry, fact), KHUB_E_NOMEM. */
KHUB_API int khub_lock_read(khub_locked_kernel **out, size_t *count, const char *path, khub_error *err);

/* How kernels are locked. */
typedef struct khub_lock_options {
    size_t struct_size;          /* set by KHUB_INIT */
    const khub_hub_options *hub; /* borrowed during the call; NULL: as the environment says */
    const char *lock;            /* a kernels.lock: what is in it stays at its commit; NULL: none */
} khub_lock_options;

/* Finds the commits at which the kernels named are now, and all the kernels that they need: what any of their
 * builds needs, for this machine or another, is followed. `names` ends with NULL: "ORG/NAME@REV" as for
 * khub_get; of a range ("@>=1,<3") the highest version is locked. A redirect is locked as both: where it
 * starts and where it leads. Asks the Hub where versions stand, whatever the cache says, and fetches
 * metadata.json of each build; nothing is loaded. Offline the cache answers. Any thread. *out is one
 * allocation, the caller's (khub_free), in the order of the file; NULL after a failure, or when no name is
 * given. Errors: khub_download's, and KHUB_E_FORMAT for a circle of kernels that need each other. */
KHUB_API int khub_lock(khub_locked_kernel **out, size_t *count, const char *const *names,
                       const khub_lock_options *options, khub_error *err);

/* The text of a kernels.lock, byte for byte as the Python package writes it. *text is the caller's
 * (khub_free); NULL after a failure: KHUB_E_INVAL (an entry that names neither version nor revision, or isn't
 * one), KHUB_E_FORMAT (two for one name), KHUB_E_NOMEM. */
KHUB_API int khub_lock_text(char **text, const khub_locked_kernel *kernels, size_t count, khub_error *err);

/* Writes it, whole or not at all. Also KHUB_E_IO, KHUB_E_NOSPACE. */
KHUB_API int khub_lock_write(const char *path, const khub_locked_kernel *kernels, size_t count,
                             khub_error *err);

/* The kernels that a pyproject.toml names under [tool.kernels.dependencies] ("org/name" = 1), as
 * "org/name@v1", in the order of the file. *names ends with NULL and is one allocation, the caller's
 * (khub_free); NULL after a failure: KHUB_E_NOTFOUND (no such file), KHUB_E_IO, KHUB_E_FORMAT (file, line,
 * fact), KHUB_E_NOMEM. */
KHUB_API int khub_lock_project(char ***names, const char *path, khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
