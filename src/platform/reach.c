#include "platform/reach.h"

#include "base/path.h"

#include <stdio.h>

enum { MAX_PATH = 4096 };

/* The search at hand. */
typedef struct search {
    khub__reach *reach;
    const khub__loader *loader;
    khub__pool *pool;
} search;

/* DIR/NAME with the library's own directory in the place of $ORIGIN. 0: the loader has another word in it
 * ($LIB, $PLATFORM), or it is too long. */
static int expand(char out[MAX_PATH], const char *dir, size_t length, const char *library, const char *name)
{
    static const char *const words[] = {"$ORIGIN", "${ORIGIN}"};
    size_t skip = 0, origin = (size_t)(khub__path_name(library) - library);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t n = strlen(words[i]);
        if (length >= n && !strncmp(dir, words[i], n)) skip = n;
    }
    if (length >= MAX_PATH || memchr(dir + skip, '$', length - skip)) return 0;
    int n = snprintf(out, MAX_PATH, "%.*s%.*s/%s", skip && origin ? (int)origin - 1 : 0, library,
                     (int)(length - skip), dir + skip, name);
    return n > 0 && n < MAX_PATH;
}

/* The first file of that name in a list such as "$ORIGIN:/opt/lib"; NULL: none. */
static const char *in_list(const search *s, const char *list, const char *library, const char *name)
{
    char path[MAX_PATH];
    while (list) {
        size_t n = strcspn(list, ":");
        if (expand(path, list, n, library, name) && khub__file_kind(path) == KHUB__FILE_REGULAR)
            return khub__pool_text(s->pool, path);
        list = list[n] ? list + n + 1 : NULL;
    }
    return NULL;
}

/* A library that has no RUNPATH is found by its own RPATH or by that of whatever needs it. */
static const char *by_rpath(const search *s, size_t by, const char *name)
{
    const khub__reached *files = s->reach->files;
    if (files[by].dynamic.runpath) return in_list(s, files[by].dynamic.runpath, files[by].path, name);
    for (size_t i = by;; i = files[i].by) {
        const char *rpath = files[i].dynamic.runpath ? NULL : files[i].dynamic.rpath;
        const char *path = in_list(s, rpath, files[i].path, name);
        if (path || !i) return path;
    }
}

static int is_known(const khub__reach *reach, const char *name)
{
    for (size_t i = 0; i < reach->count; i++)
        if (!strcmp(reach->files[i].name, name)) return 1;
    return 0;
}

static void add_own(const search *s, khub__reached *file)
{
    file->own = 1;
    file->wrong = khub__dynamic_read(&file->dynamic, file->path, s->pool);
    s->reach->own_count++;
    s->reach->own_bytes += file->dynamic.bytes;
    s->reach->lacking += file->wrong != NULL;
}

/* The loader takes what is in the process before it looks anywhere. */
static void find(const search *s, khub__reached *file)
{
    if (khub__loaded_path(file->name, s->pool)) return;
    if ((file->path = by_rpath(s, file->by, file->name)) != NULL) {
        add_own(s, file);
    } else if (!khub__loader_find(&file->path, 1, s->loader, file->name, s->pool)) {
        file->wrong = "isn't in reach";
        s->reach->lacking++;
    }
}

/* What one of the files needs. */
static void follow(const search *s, size_t by)
{
    khub__reach *reach = s->reach;
    const khub__reached *needs = &reach->files[by];
    for (size_t i = 0; i < needs->dynamic.needed_count && reach->count < KHUB__REACH_FILES; i++) {
        const char *name = needs->dynamic.needed[i];
        if (strchr(name, '/') || is_known(reach, name)) continue;
        reach->files[reach->count] = (khub__reached){.name = name, .needed_by = needs->name, .by = by};
        find(s, &reach->files[reach->count++]);
    }
}

void khub__reach_of(khub__reach *out, const char *path, const khub__loader *loader, khub__pool *pool)
{
    search s = {out, loader, pool};
    memset(out, 0, sizeof(*out));
    out->files = khub__pool_take(pool, KHUB__REACH_FILES, sizeof(*out->files));
    if (!out->files) return;
    out->files[0] = (khub__reached){.name = khub__path_name(path), .path = path};
    out->count = 1;
    add_own(&s, &out->files[0]);
    for (size_t i = 0; i < out->count; i++)
        follow(&s, i);
}
