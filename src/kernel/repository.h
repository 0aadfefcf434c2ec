/* A kernel repository: a directory of this machine that holds build/VARIANT/, or one of the Hub whose files
 * come when they are asked for. */
#ifndef KERNEL_REPOSITORY_H
#define KERNEL_REPOSITORY_H

#include "fetch/remote.h"

#include <khub/variant.h>

typedef struct khub__repository {
    char *path;   /* of the repository */
    char *builds; /* PATH/build */
    char **names; /* the directories in it, sorted by bytes; one allocation */
    size_t count;
    khub__remote *remote; /* borrowed: where the files come from; NULL: they are all there */
} khub__repository;

/* Finds the directory of a repository by the name a user writes: what LOCAL_KERNELS has for it, a path
 * (absolute, or from "./" or "../"), or a built-in kernel "khub/NAME". *path is the caller's (khub_free);
 * NULL for a name of the Hub. KHUB_E_NOTFOUND for a built-in kernel that isn't there, KHUB_E_INVAL for what
 * is no name at all, KHUB_E_NOMEM. */
int khub__repository_find(char **path, const char *name, khub_error *err);

/* 1: a path from khub__repository_find is that of a built-in kernel. */
int khub__repository_is_built_in(const char *path);

/* Lists the builds in `path`. KHUB_E_NOTFOUND (no such directory, or no build/ in it), KHUB_E_IO,
 * KHUB_E_NOMEM; then *out is zeroed. */
int khub__repository_open(khub__repository *out, const char *path, khub_error *err);

/* Lists the builds of a repository of the Hub. `remote` must outlive it. KHUB_E_NOTFOUND (no build/ in it),
 * KHUB_E_NOMEM. */
int khub__repository_of(khub__repository *out, khub__remote *remote, khub_error *err);

/* Makes a build's metadata.json be there, unless it is longer than it may be (KHUB_E_FORMAT): whose it is
 * isn't judged yet. With `signature` its signature too, if it has one that is short enough. Nothing to do for
 * a directory of this machine. Errors: khub_download's. */
int khub__repository_bring_metadata(const khub__repository *repository, const char *build, int signature,
                                    khub_error *err);

/* The files of a build that count (not Python's bytecode), of a repository of the Hub; for
 * khub__remote_bring. */
int khub__repository_pick(khub__picked *out, const khub__repository *repository, const char *build,
                          khub_error *err);

/* Frees what it holds and zeroes it. A zeroed one is a no-op. */
void khub__repository_close(khub__repository *repository);

/* Decides on the builds: by their names, then, for a build that fits, by its metadata.json: one whose backend
 * has GPUs by the architectures there. One that is missing or can't be read is a remark: the build fits, and
 * loading it will fail. */
int khub__repository_choose(khub_choice **out, const khub__repository *repository,
                            const khub_platform *platform, khub_error *err);

/* PATH/build/NAME, the caller's (khub_free). NULL: no memory. */
char *khub__repository_build(const khub__repository *repository, const char *name);

#endif
