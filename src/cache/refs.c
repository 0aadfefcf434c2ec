/* refs/REV: where a branch, a tag or a version stood when it was last asked. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "cache/disk.h"
#include "cache/layout.h"

#include <ctype.h>
#include <stdlib.h>

enum { REF_MAX = 4096, REF_DEPTH = 16, REFS_MAX = 100000 };

/* Cuts the space around the word, which editors and other tools leave. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        text[--n] = 0;
    return text;
}

int khub__store_ref(char commit[KHUB__COMMIT_MAX + 1], int64_t *age_s, const khub__store *store,
                    const char *revision, khub_error *err)
{
    char path[KHUB__LAYOUT_MAX], *text;
    size_t bytes;
    int rc = khub__layout_ref(path, revision, err);
    if (rc == KHUB_OK) rc = khub__disk_get(&text, &bytes, age_s, store, path, REF_MAX, err);
    if (rc != KHUB_OK) return rc;
    const char *word = trim(text);
    if (!word[0])
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s/%s: is empty", store->folder, path);
    else if (!khub__is_commit(word))
        rc = khub__fail(err, KHUB_E_FORMAT, "%s/%s: holds \"%.70s\", a commit is expected", store->folder,
                        path, word);
    else
        memcpy(commit, word, strlen(word) + 1);
    khub__free(text);
    return rc;
}

int khub__store_set_ref(const khub__store *store, const char *revision, const char *commit, khub_error *err)
{
    char path[KHUB__LAYOUT_MAX], snapshot[KHUB__LAYOUT_MAX], before[KHUB__COMMIT_MAX + 1];
    int rc = khub__layout_of_commit(snapshot, "snapshots", commit, NULL, err);
    if (rc == KHUB_OK) rc = khub__layout_ref(path, revision, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__store_ref(before, NULL, store, revision, NULL);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(err, "writing a ref");
    if (rc == KHUB_OK && !strcmp(before, commit)) {
        khub__disk_touch(store, path); /* in a cache that can't be written it only stays older than it is */
        return KHUB_OK;
    }
    /* first what it points at: a ref to a snapshot that isn't there is a broken cache to the other tools */
    rc = khub__disk_make(store, snapshot, err);
    return rc == KHUB_OK ? khub__disk_put(store, path, commit, strlen(commit), err) : rc;
}

/* What the peer leaves behind when it is ended while it writes a ref: NAME.XXXXXXXX.tmp. */
static int is_leftover(const char *name)
{
    size_t n = strlen(name);
    return n > 13 && name[n - 13] == '.' && strspn(name + n - 12, "0123456789abcdef") == 8 &&
           !strcmp(name + n - 4, ".tmp");
}

/* Adds the names in refs/BELOW, each with a NUL. `names` counts them. */
static int collect(khub__text *names, size_t *count, const char *refs, const char *below, int depth,
                   khub_error *err)
{
    char **list = NULL, *dir = khub__path_join(refs, below);
    size_t n = 0;
    int rc = dir ? khub__dir_list(&list, &n, dir, err) : khub__fail_memory(err, "reading refs");
    for (size_t i = 0; rc == KHUB_OK && i < n; i++) {
        char *name = below[0] ? khub__path_join(below, list[i]) : khub__strdup(list[i]);
        char *full = name ? khub__path_join(refs, name) : NULL;
        enum khub__file_kind kind = full ? khub__file_kind(full) : KHUB__FILE_NONE;
        if (!full) {
            rc = khub__fail_memory(err, "reading refs");
        } else if (kind == KHUB__FILE_DIRECTORY && depth > 0 && *count < REFS_MAX) {
            rc = collect(names, count, refs, name, depth - 1, err);
        } else if (kind == KHUB__FILE_REGULAR && !is_leftover(name) && strlen(name) <= KHUB__REVISION_MAX &&
                   khub__is_repo_path(name, strlen(name))) {
            khub__text_add_bytes(names, name, strlen(name) + 1);
            ++*count;
        }
        khub__free(full);
        khub__free(name);
    }
    khub__free(list);
    khub__free(dir);
    return rc;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int khub__store_refs(char ***refs, size_t *count, const khub__store *store, khub_error *err)
{
    *refs = NULL;
    *count = 0;
    khub__text names = {0};
    char *dir = khub__path_join(store->folder, "refs");
    int rc = dir ? KHUB_OK : khub__fail_memory(err, "reading refs");
    if (dir && khub__file_kind(dir) == KHUB__FILE_DIRECTORY)
        rc = collect(&names, count, dir, "", REF_DEPTH, err);
    if (rc == KHUB_OK && !names.failed) *refs = khub__malloc(*count * sizeof(char *) + names.length + 1);
    if (rc == KHUB_OK && !*refs) rc = khub__fail_memory(err, "reading refs");
    if (rc == KHUB_OK) {
        char *at = (char *)(*refs + *count);
        if (names.length) memcpy(at, names.data, names.length);
        for (size_t i = 0; i < *count; i++, at += strlen(at) + 1)
            (*refs)[i] = at;
        qsort(*refs, *count, sizeof(char *), by_bytes);
    } else {
        *count = 0;
    }
    khub__text_free(&names);
    khub__free(dir);
    return rc;
}
