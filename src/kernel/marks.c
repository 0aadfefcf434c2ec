#include "kernel/marks.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "trust/held.h"

#include <string.h>

enum { MOST = 256, DEEPEST = 8 };

typedef struct mark {
    char *path;
    int is_directory;
    khub__identity identity;
} mark;

struct khub__marks {
    int64_t since_ns; /* when it was taken */
    size_t count, capacity;
    mark *marks;
};

void khub__marks_free(khub__marks *marks)
{
    if (!marks) return;
    for (size_t i = 0; i < marks->count; i++)
        khub__free(marks->marks[i].path);
    khub__free(marks->marks);
    khub__free(marks);
}

/* Takes the path over. 0: it can't be marked. */
static int add(khub__marks *marks, char *path, int is_directory)
{
    mark m = {path, is_directory, {0}};
    if (path && marks->count < MOST && khub__identify(&m.identity, NULL, path, is_directory) == 0 &&
        khub__identity_settled(&m.identity, marks->since_ns) &&
        khub__grow((void **)&marks->marks, &marks->capacity, marks->count + 1, sizeof(m), MOST) == 0) {
        marks->marks[marks->count++] = m;
        return 1;
    }
    khub__free(path);
    return 0;
}

/* A directory, and all that is in it. */
static int add_all(khub__marks *marks, char *directory, int depth)
{
    char **names = NULL;
    size_t count = 0;
    int good = add(marks, directory, 1) && depth < DEEPEST &&
               khub__dir_list(&names, &count, directory, NULL) == KHUB_OK;
    for (size_t i = 0; good && i < count; i++) {
        char *path = khub__path_join(directory, names[i]);
        enum khub__file_kind kind = path ? khub__file_kind(path) : KHUB__FILE_NONE;
        if (kind == KHUB__FILE_DIRECTORY)
            good = add_all(marks, path, depth + 1);
        else
            good = add(marks, path, 0);
    }
    khub__free(names);
    return good;
}

/* What tells a build from another when one is chosen. */
static int add_others(khub__marks *marks, const char *builds)
{
    char **names = NULL;
    size_t count = 0;
    int good = khub__dir_list_dirs(&names, &count, builds, NULL) == KHUB_OK;
    for (size_t i = 0; good && i < count; i++) {
        char *build = khub__path_join(builds, names[i]);
        char *metadata = build ? khub__path_join(build, "metadata.json") : NULL;
        good = add(marks, build, 1);
        if (good && metadata && khub__file_kind(metadata) != KHUB__FILE_NONE)
            good = add(marks, metadata, 0);
        else
            khub__free(metadata);
    }
    khub__free(names);
    return good;
}

/* The directory that a path is in; NULL: it is in none, or no memory. */
static char *above(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash != path ? khub__strndup(path, (size_t)(slash - path)) : NULL;
}

khub__marks *khub__marks_take(const char *build, int64_t since_ns)
{
    char *builds = above(build), *root = above(builds);
    const char *name = builds ? strrchr(builds, '/') : NULL;
    khub__marks *marks = root && !strcmp(name, "/build") ? khub__calloc(1, sizeof(*marks)) : NULL;
    int good = marks != NULL;
    if (good) {
        marks->since_ns = since_ns;
        good = add_all(marks, khub__strdup(build), 0) && add_others(marks, builds);
        if (good) {
            good = add(marks, builds, 1);
            builds = NULL;
        }
        if (good) {
            good = add(marks, root, 1);
            root = NULL;
        }
    }
    khub__free(builds);
    khub__free(root);
    if (good) return marks;
    khub__marks_free(marks);
    return NULL;
}

int khub__marks_hold(const khub__marks *marks)
{
    for (size_t i = 0; i < marks->count; i++) {
        const mark *m = &marks->marks[i];
        khub__identity now;
        if (khub__identify(&now, NULL, m->path, m->is_directory) != 0 ||
            !khub__same_identity(&now, &m->identity))
            return 0;
    }
    return 1;
}
