/* moved/COMMIT: the repository that the list of files of a commit came from, where it is another than the one
 * that was asked: after a rename. Its owner is the one who is judged, also when nothing is asked any more. */
#include "base/error.h"
#include "base/memory.h"
#include "cache/disk.h"
#include "cache/layout.h"

#include <stdio.h>

enum { RECORD_MAX = KHUB__REPO_ID_MAX + 1 }; /* the name and a line end */

int khub__store_moved(khub__repo *there, const khub__store *store, const char *commit, khub_error *err)
{
    char path[KHUB__LAYOUT_MAX], *text = NULL;
    size_t bytes;
    khub__wanted wanted;
    int rc = khub__layout_of_commit(path, "moved", commit, NULL, err);
    if (rc == KHUB_OK) rc = khub__disk_get(&text, &bytes, NULL, store, path, RECORD_MAX, err);
    if (rc != KHUB_OK) return rc;
    text[strcspn(text, "\n")] = 0;
    if (strchr(text, '@') || khub__wanted_parse(&wanted, store->repo.kind, text, NULL) != KHUB_OK)
        rc = khub__fail(err, KHUB_E_FORMAT, "%s/%s: holds no repository's name", store->folder, path);
    else
        *there = wanted.repo;
    khub__free(text);
    return rc;
}

int khub__store_set_moved(const khub__store *store, const char *commit, const khub__repo *there,
                          khub_error *err)
{
    char path[KHUB__LAYOUT_MAX], text[RECORD_MAX + 1];
    int rc = khub__layout_of_commit(path, "moved", commit, NULL, err);
    int n = snprintf(text, sizeof(text), "%s\n", there->id);
    return rc == KHUB_OK ? khub__disk_put(store, path, text, (size_t)n, err) : rc;
}
