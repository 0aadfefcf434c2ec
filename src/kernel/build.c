#include "kernel/build.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

/* "STEM" + "END" equals `name`, where "-" and "_" are one letter. */
static int is_named(const char *name, const char *stem, const char *end)
{
    size_t n = strlen(stem);
    if (strlen(name) != n + strlen(end) || strcmp(name + n, end) != 0) return 0;
    for (size_t i = 0; i < n; i++)
        if ((name[i] == '-' ? '_' : name[i]) != (stem[i] == '-' ? '_' : stem[i])) return 0;
    return 1;
}

static int is_library(const char *name)
{
    size_t n = strlen(name);
    return n > 3 && !strcmp(name + n - 3, ".so");
}

/* Index of the file that has the name the metadata gives it, the first of the three; `count`: none. */
static size_t find_named(char **names, size_t count, const khub__metadata *m)
{
    const struct {
        const char *stem, *end;
    } wanted[] = {{m->id, ".so"}, {m->id, ".abi3.so"}, {m->name, ".so"}};
    for (size_t w = 0; w < sizeof(wanted) / sizeof(*wanted); w++)
        for (size_t i = 0; i < count; i++)
            if (is_named(names[i], wanted[w].stem, wanted[w].end)) return i;
    return count;
}

static int fail_several(const char *build, char **names, size_t count, khub_error *err)
{
    khub__text list = {0};
    for (size_t i = 0; i < count; i++)
        if (is_library(names[i])) khub__text_addf(&list, "%s%s", list.length ? ", " : "", names[i]);
    char *text = khub__text_take(&list);
    int rc =
        text ? khub__fail(err, KHUB_E_FORMAT,
                          "%s: has several libraries and none of the name in metadata.json: %s", build, text)
             : khub__fail_memory(err, "looking for a build's library");
    khub__free(text);
    return rc;
}

/* Picks among the directory's names; *found stays NULL when it has no library. */
static int pick(const char **found, const char *build, char **names, size_t count, const khub__metadata *m,
                khub_error *err)
{
    size_t libraries = 0, named = find_named(names, count, m);
    *found = named < count ? names[named] : NULL;
    if (named < count) return KHUB_OK;
    for (size_t i = 0; i < count; i++)
        if (is_library(names[i])) *found = names[i], libraries++;
    return libraries > 1 ? fail_several(build, names, count, err) : KHUB_OK;
}

int khub__build_library(char **path, const char *build, const khub__metadata *metadata, khub_error *err)
{
    *path = NULL;
    char **names;
    size_t count;
    int rc = khub__dir_list(&names, &count, build, err);
    if (rc != KHUB_OK) return rc;
    const char *found;
    rc = pick(&found, build, names, count, metadata, err);
    if (rc == KHUB_OK && !found)
        rc = khub__fail(err, KHUB_E_NOTFOUND,
                        "%s: has no library: neither %s.so nor %s.abi3.so nor any other .so", build,
                        metadata->id, metadata->id);
    if (rc == KHUB_OK && !(*path = khub__path_join(build, found)))
        rc = khub__fail_memory(err, "opening a build");
    khub_free(names);
    return rc;
}
