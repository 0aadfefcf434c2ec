#include "kernel/marks.h"

#include "base/error.h"
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

/* What came of it: marked; it can't be; KHUB_E_NOMEM. */
enum { MARKED = 0, UNMARKED = 1 };

/* Takes the path over. */
static int add(khub__marks *marks, char *path, int is_directory)
{
    mark m = {path, is_directory, {0}};
    int rc = path ? UNMARKED : KHUB_E_NOMEM;
    if (path && marks->count < MOST && khub__identify(&m.identity, NULL, path, is_directory) == 0 &&
        khub__identity_settled(&m.identity, marks->since_ns))
        rc = khub__grow((void **)&marks->marks, &marks->capacity, marks->count + 1, sizeof(m), MOST)
                 ? KHUB_E_NOMEM
                 : MARKED;
    if (rc == MARKED)
        marks->marks[marks->count++] = m;
    else
        khub__free(path);
    return rc;
}

static int listed(int rc)
{
    return rc == KHUB_OK ? MARKED : rc == KHUB_E_NOMEM ? rc : UNMARKED;
}

/* A directory, and all that is in it. */
static int add_all(khub__marks *marks, char *directory, int depth)
{
    char **names = NULL;
    size_t count = 0;
    int rc = add(marks, directory, 1);
    if (rc == MARKED)
        rc = depth < DEEPEST ? listed(khub__dir_list(&names, &count, directory, NULL)) : UNMARKED;
    for (size_t i = 0; rc == MARKED && i < count; i++) {
        char *path = khub__path_join(directory, names[i]);
        int is_directory = path && khub__file_kind(path) == KHUB__FILE_DIRECTORY;
        rc = is_directory ? add_all(marks, path, depth + 1) : add(marks, path, 0);
    }
    khub__free(names);
    return rc;
}

/* A build's directory, and its metadata.json if it has one. */
static int add_build(khub__marks *marks, char *build)
{
    char *metadata = build ? khub__path_join(build, "metadata.json") : NULL;
    int there = !metadata || khub__file_kind(metadata) != KHUB__FILE_NONE;
    int rc = add(marks, build, 1);
    if (rc == MARKED && there) return add(marks, metadata, 0);
    khub__free(metadata);
    return rc;
}

/* What tells a build from another when one is chosen. */
static int add_builds(khub__marks *marks, const char *builds)
{
    char **names = NULL;
    size_t count = 0;
    int rc = listed(khub__dir_list_dirs(&names, &count, builds, NULL));
    for (size_t i = 0; rc == MARKED && i < count; i++)
        rc = add_build(marks, khub__path_join(builds, names[i]));
    khub__free(names);
    return rc;
}

/* How much of a path is the directory that it is in; 0: it is in none. */
static size_t above(const char *path, size_t length)
{
    while (length && path[length - 1] != '/')
        length--;
    return length ? length - 1 : 0;
}

int khub__marks_take(khub__marks **out, const char *build, int64_t since_ns, khub_error *err)
{
    size_t builds = above(build, strlen(build)), root = above(build, builds);
    *out = NULL;
    if (!root || builds - root != 6 || memcmp(build + root, "/build", 6) != 0) return KHUB_OK;
    khub__marks *marks = khub__calloc(1, sizeof(*marks));
    if (!marks) return khub__fail_memory(err, "getting a kernel");
    marks->since_ns = since_ns;
    int rc = add_all(marks, khub__strdup(build), 0);
    char *path = rc == MARKED ? khub__strndup(build, builds) : NULL;
    if (rc == MARKED) rc = path ? add_builds(marks, path) : KHUB_E_NOMEM;
    if (rc == MARKED)
        rc = add(marks, path, 1);
    else
        khub__free(path);
    if (rc == MARKED) rc = add(marks, khub__strndup(build, root), 1);
    if (rc == MARKED)
        *out = marks;
    else
        khub__marks_free(marks);
    return rc == KHUB_E_NOMEM ? khub__fail_memory(err, "getting a kernel") : KHUB_OK;
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
