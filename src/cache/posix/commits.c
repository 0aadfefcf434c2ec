/* The snapshots there are. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "cache/store.h"

#include <stdlib.h>
#include <sys/stat.h>

typedef struct dated {
    char *name;
    struct timespec written;
} dated;

static int newest_first(const void *a, const void *b)
{
    const dated *x = a, *y = b;
    if (x->written.tv_sec != y->written.tv_sec) return x->written.tv_sec < y->written.tv_sec ? 1 : -1;
    if (x->written.tv_nsec != y->written.tv_nsec) return x->written.tv_nsec < y->written.tv_nsec ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Leaves in `names` those that are commits, newest first; returns their number. */
static int sort_by_time(char **names, size_t *count, const char *dir, khub_error *err)
{
    dated *list = khub__calloc(*count, sizeof(*list));
    if (!list) return khub__fail_memory(err, "reading snapshots");
    size_t kept = 0;
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < *count; i++) {
        if (!khub__is_commit(names[i])) continue;
        char *full = khub__path_join(dir, names[i]);
        struct stat st;
        if (!full) rc = khub__fail_memory(err, "reading snapshots");
        if (full && stat(full, &st) == 0) list[kept++] = (dated){names[i], st.st_mtim};
        khub__free(full);
    }
    if (kept) qsort(list, kept, sizeof(*list), newest_first);
    for (size_t i = 0; i < kept; i++)
        names[i] = list[i].name;
    *count = kept;
    khub__free(list);
    return rc;
}

int khub__store_commits(char ***commits, size_t *count, const khub__store *store, khub_error *err)
{
    *commits = NULL;
    *count = 0;
    char *dir = khub__path_join(store->folder, "snapshots");
    if (!dir) return khub__fail_memory(err, "reading snapshots");
    int rc = KHUB_OK;
    if (khub__file_kind(dir) == KHUB__FILE_DIRECTORY) rc = khub__dir_list_dirs(commits, count, dir, err);
    if (rc == KHUB_OK && *count) rc = sort_by_time(*commits, count, dir, err);
    if (rc != KHUB_OK) {
        khub__free(*commits);
        *commits = NULL;
        *count = 0;
    }
    khub__free(dir);
    return rc;
}
