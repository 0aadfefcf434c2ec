/* One check under way: from a name to the files, and what is known of each. */
#ifndef PUBLISH_CHECKING_H
#define PUBLISH_CHECKING_H

#include "kernel/metadata.h"
#include "publish/rules.h"

typedef struct khub__checking {
    khub_check_report *report;
    khub_check_options options; /* with the defaults filled in */
    const char *name;           /* what khub_get calls the repository; NULL: it is none */
    const char *also;           /* where links of a build may lead (the cache's blobs); NULL: nowhere else */
    khub_error *err;
} khub__checking;

/* A library, read. */
typedef struct khub__opened {
    char *path;  /* where it is */
    char *shown; /* what the report calls it */
    khub__bytes file;
    khub__objects objects; /* empty: it couldn't be read as a library, which is a finding */
} khub__opened;

/* Opens DIRECTORY/NAME; "" for `directory` or `shown`: none. To be closed in each case. That it is no library
 * is a finding. KHUB_E_IO, KHUB_E_UNSUPPORTED, KHUB_E_NOMEM. */
int khub__opened_open(khub__opened *out, khub__checking *c, const char *directory, const char *shown,
                      const char *name);
void khub__opened_close(khub__opened *opened);

/* Judges each object of it by itself. `variant`: of the build that it is in; NULL: none. */
void khub__opened_judge(const khub__opened *opened, khub__checking *c, const khub__variant_name *variant);

/* Loads it in a child process, if the options say so and it is for this machine: as the build `variant` of
 * the repository, if there is one. That it doesn't load is a finding. */
int khub__opened_load(const khub__opened *opened, khub__checking *c, const char *variant);

/* 1 for a name that libraries have: *.so, *.so.N, *.dylib, *.dll, *.pyd. */
int khub__is_library_name(const char *name);

/* What a repository's builds must have in common, as its first build has it. */
typedef struct khub__common {
    char *build, *name, *license; /* NULL: no build was read yet */
    int64_t version;
    khub__names ids; /* of all builds; each is ours */
} khub__common;
void khub__common_free(khub__common *common);

/* Checks the build in `directory`, called `shown` in the report, whose name is `variant` (NULL: it has none).
 * `common` may be NULL. */
int khub__check_build(khub__checking *c, khub__common *common, const char *directory, const char *shown,
                      const char *variant);

/* Adds the words of `why` as an error about `about`, without the `path` that they start with; failures that
 * say nothing about the file are returned instead. */
int khub__finding_why(khub__checking *c, const char *about, const char *path, const khub_error *why);

#endif
