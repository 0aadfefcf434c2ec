/* What repository is meant, and how it is spelled in an address and in the cache. */
#ifndef HUB_REPO_H
#define HUB_REPO_H

#include "hub/range.h"

#include <khub/error.h>

typedef enum khub__repo_kind { KHUB__REPO_KERNEL, KHUB__REPO_MODEL } khub__repo_kind;

enum { KHUB__REPO_ID_MAX = 200, KHUB__COMMIT_MAX = 64, KHUB__REVISION_MAX = 250 };

typedef struct khub__repo {
    khub__repo_kind kind;
    char id[KHUB__REPO_ID_MAX + 1]; /* "ORG/NAME"; a model's may be "NAME" */
} khub__repo;

/* Which state of it. */
typedef struct khub__wanted {
    khub__repo repo;
    char
        revision[KHUB__REVISION_MAX + 1]; /* "v1", "main", a tag, a commit, "refs/pr/4"; "": none was given */
    int64_t version;                      /* of "v1", "1"; -1: the revision isn't a version */
    int is_commit;                        /* 40 or 64 hex digits */
    int is_range;                         /* the highest version in `range`; `revision` is its text */
    khub__range range;
} khub__wanted;

/* Reads "ORG/NAME[@REV]", where REV may be a range of versions. KHUB_E_INVAL says what isn't right with it.
 */
int khub__wanted_parse(khub__wanted *out, khub__repo_kind kind, const char *name, khub_error *err);

/* 1 for "v1", 0 for "v0"; -1: the branch isn't a version. */
int64_t khub__version_of(const char *branch);

/* "kernels", "models": the part of the API's addresses. */
const char *khub__repo_api(khub__repo_kind kind);

/* "ORG" of it; "" when it has none. */
void khub__repo_owner(char out[KHUB__REPO_ID_MAX + 1], const khub__repo *repo);

/* 1 for a commit's name: 40 or 64 lower-case hex digits. */
int khub__is_commit(const char *text);

/* What to add where a revision isn't found: "; a commit has 40 digits" for one that looks like the beginning
 * of a commit (git shows 7 digits and more), else "". */
const char *khub__commit_hint(const char *revision);

/* 1 for a path inside a repository that is safe to make on disk: parts that aren't empty, "." or "..", no
 * backslash, drive letter, NUL or control character, valid UTF-8, at most 1,000 bytes, each part at most 255.
 */
int khub__is_repo_path(const char *path, size_t length);

#endif
