#include "trust/files.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 100000, DEPTH_MAX = 64 };

/* Where links may lead: real paths, the C library's memory; NULL: nowhere. */
typedef struct walk {
    khub__files *files;
    const char *build;
    char *inside[2];
    khub_error *err;
} walk;

static int no_memory(const walk *w)
{
    return khub__fail_memory(w->err, "listing a build");
}

static int is_below(const char *path, const char *folder)
{
    size_t length = folder ? strlen(folder) : 0;
    return folder && !strncmp(path, folder, length) && path[length] == '/';
}

/* What a link is to be taken for; *target (khub_free) is where it leads when that matters. KHUB_E_NOMEM. */
static int look_at_link(const walk *w, khub__found *found, const char *full)
{
    struct stat st;
    char *real = realpath(full, NULL);
    int rc = KHUB_OK;
    if (!real || stat(real, &st) != 0)
        found->kind = KHUB__FOUND_BROKEN;
    else if (S_ISDIR(st.st_mode))
        found->kind = KHUB__FOUND_DIRECTORY;
    else if (!S_ISREG(st.st_mode))
        found->kind = KHUB__FOUND_OTHER;
    else if (!is_below(real, w->inside[0]) && !is_below(real, w->inside[1]))
        found->kind = KHUB__FOUND_OUT;
    if (real && found->kind != KHUB__FOUND_FILE && !(found->target = khub__strdup(real))) rc = no_memory(w);
    free(real);
    return rc;
}

/* Takes over `path`. */
static int add(const walk *w, char *path, const char *full, mode_t mode)
{
    khub__files *files = w->files;
    if (files->count == FILES_MAX) {
        khub__free(path);
        return khub__fail(w->err, KHUB_E_FORMAT, "%s: holds more than %d files", w->build, FILES_MAX);
    }
    if (khub__grow((void **)&files->items, &files->capacity, files->count + 1, sizeof(*files->items),
                   FILES_MAX)) {
        khub__free(path);
        return no_memory(w);
    }
    khub__found *found = &files->items[files->count++];
    *found = (khub__found){.path = path, .kind = S_ISREG(mode) ? KHUB__FOUND_FILE : KHUB__FOUND_OTHER};
    if (!S_ISLNK(mode)) return KHUB_OK;
    found->kind = KHUB__FOUND_FILE;
    return look_at_link(w, found, full);
}

static int walk_directory(const walk *w, const char *path, int depth);

/* What has the path `path` (taken over) below the build. */
static int visit(const walk *w, char *path, int depth)
{
    char *full = khub__path_join(w->build, path);
    struct stat st;
    int rc;
    if (!full) {
        rc = no_memory(w);
    } else if (lstat(full, &st) != 0) {
        rc = khub__fail_errno(w->err, full, "look at it");
    } else if (S_ISDIR(st.st_mode)) {
        rc = walk_directory(w, path, depth + 1);
    } else {
        rc = add(w, path, full, st.st_mode);
        path = NULL;
    }
    khub__free(full);
    khub__free(path);
    return rc;
}

static int add_directory(const walk *w, const char *path)
{
    khub__files *files = w->files;
    if (files->directory_count == FILES_MAX)
        return khub__fail(w->err, KHUB_E_FORMAT, "%s: holds more than %d directories", w->build, FILES_MAX);
    char *copy = khub__strdup(path);
    if (!copy || khub__grow((void **)&files->directories, &files->directory_capacity,
                            files->directory_count + 1, sizeof(*files->directories), FILES_MAX)) {
        khub__free(copy);
        return no_memory(w);
    }
    files->directories[files->directory_count++] = copy;
    return KHUB_OK;
}

static int walk_directory(const walk *w, const char *path, int depth)
{
    char **names = NULL, *full = khub__path_join(w->build, path);
    size_t count = 0;
    int rc = full ? add_directory(w, path) : no_memory(w);
    if (depth > DEPTH_MAX)
        rc = khub__fail(w->err, KHUB_E_FORMAT, "%s: has directories more than %d deep", w->build, DEPTH_MAX);
    if (rc == KHUB_OK) rc = khub__dir_list(&names, &count, *path ? full : w->build, w->err);
    khub__free(full);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        char *child = khub__path_join(path, names[i]);
        rc = child ? visit(w, child, depth) : no_memory(w);
    }
    khub_free(names);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const khub__found *)a)->path, ((const khub__found *)b)->path);
}

int khub__files_find(khub__files *out, const char *build, const char *also, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    walk w = {out, build, {realpath(build, NULL), also ? realpath(also, NULL) : NULL}, err};
    int rc = walk_directory(&w, "", 0);
    free(w.inside[0]);
    free(w.inside[1]);
    if (rc != KHUB_OK)
        khub__files_free(out);
    else if (out->count)
        qsort(out->items, out->count, sizeof(*out->items), by_path); /* "a.b" stands before "a/b" */
    return rc;
}

const char *khub__found_fault(const khub__found *found, char *room, size_t size)
{
    const char *to = found->target ? found->target : "";
    switch (found->kind) {
    case KHUB__FOUND_FILE:
        return NULL;
    case KHUB__FOUND_OUT:
        snprintf(room, size, "is a link that leads out of the build, to %s", to);
        break;
    case KHUB__FOUND_DIRECTORY:
        snprintf(room, size, "is a link to a directory (%s), which no digest covers", to);
        break;
    case KHUB__FOUND_BROKEN:
        snprintf(room, size, "is a link that leads nowhere");
        break;
    case KHUB__FOUND_OTHER:
        snprintf(room, size, "is a device or pipe, not a file");
        break;
    }
    return room;
}

void khub__files_free(khub__files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        khub__free(files->items[i].path);
        khub__free(files->items[i].target);
    }
    khub__free(files->items);
    for (size_t i = 0; i < files->directory_count; i++)
        khub__free(files->directories[i]);
    khub__free(files->directories);
    memset(files, 0, sizeof(*files));
}
