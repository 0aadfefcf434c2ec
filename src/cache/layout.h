/* Where things lie in a repository's folder, as text: "snapshots/COMMIT/PATH". */
#ifndef CACHE_LAYOUT_H
#define CACHE_LAYOUT_H

#include "cache/store.h"

/* The longest of them: a path in a repository has at most 1,000 bytes, so a link has at most 500 times "../".
 */
enum { KHUB__LAYOUT_MAX = 1700 };

/* DIR/COMMIT or DIR/COMMIT/PATH (`path` not NULL). KHUB_E_INVAL: not a commit, or not a path to make on disk.
 */
int khub__layout_of_commit(char out[KHUB__LAYOUT_MAX], const char *dir, const char *commit, const char *path,
                           khub_error *err);

/* "receipt.COMMIT.BUILD.txt": in the repository's folder itself, so that nobody needs to look who may write
 * to yet another directory. Those of a commit begin alike. KHUB_E_INVAL. */
int khub__layout_receipt(char out[KHUB__LAYOUT_MAX], const char *commit, const char *build, khub_error *err);
int khub__layout_is_receipt_of(const char *name, const char *commit); /* 1: it is one of this commit */

/* refs/REV. KHUB_E_INVAL. */
int khub__layout_ref(char out[KHUB__LAYOUT_MAX], const char *revision, khub_error *err);

/* What a link at snapshots/COMMIT/PATH says: "../../blobs/ETAG", one more "../" for each folder in PATH.
 * `path` is one to make on disk. */
void khub__layout_link(char out[KHUB__LAYOUT_MAX], const char *path, const char *etag);

/* "kernels--ORG--NAME". The caller's; NULL: no memory. */
char *khub__layout_folder(const khub__repo *repo);

/* The other way: the kind of any Hugging Face repository ("kernel", "model", "dataset", "space"; static), and
 * where in `folder` its name starts. NULL: no such folder. */
const char *khub__layout_kind(const char **name, const char *folder);

#endif
