#include "kernel/posix/siblings.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/signals.h"
#include "kernel/posix/search.h"

#include <dlfcn.h>
#include <stdlib.h>

/* The one that the process has under that name; to be given back. */
static void *find_loaded(const char *name)
{
    return dlopen(name, RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
}

static int same_content(const char *path, const khub__bytes *beside)
{
    khub__bytes bytes = {0};
    int same = khub__file_map(&bytes, path, NULL) == KHUB_OK && bytes.length == beside->length &&
               (bytes.length == 0 || !memcmp(bytes.data, beside->data, bytes.length));
    khub__bytes_free(&bytes);
    return same;
}

/* The library that the process has under the name `needed`, judged against the file beside the kernel. */
static int check_loaded(void *handle, const char *by, const char *needed, const khub__bytes *beside,
                        khub_error *err)
{
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || same_content(map->l_name, beside)) return KHUB_OK;
    return khub__fail(err, KHUB_E_LOAD,
                      "%s: needs the %s beside it, but this process already has another library of that "
                      "name, %s, which would be used in its place",
                      by, needed, map->l_name);
}

/* ---- of a directory ---- */

static int check_one(const char *dir, const char *by, const char *needed, khub_error *err)
{
    char *path = khub__path_join(dir, needed);
    khub__bytes beside = {0};
    int rc = path ? KHUB_OK : khub__fail_memory(err, "opening a library");
    if (path && khub__file_kind(path) == KHUB__FILE_REGULAR) khub__file_map(&beside, path, NULL);
    void *handle = beside.length ? find_loaded(needed) : NULL;
    if (handle) {
        rc = check_loaded(handle, by, needed, &beside, err);
        dlclose(handle);
    }
    khub__bytes_free(&beside);
    khub__free(path);
    return rc;
}

int khub__siblings_check(const khub__elf *elf, khub_error *err)
{
    const char *runpath = khub__elf_runpath(elf), *needed;
    if (!runpath || !strstr(runpath, "ORIGIN")) return KHUB_OK; /* it doesn't look beside itself */
    char *dir = khub__path_parent(elf->path);
    int rc = dir ? KHUB_OK : khub__fail_memory(err, "opening a library");
    for (size_t i = 0; rc == KHUB_OK && (needed = khub__elf_needed(elf, i)) != NULL; i++)
        rc = check_one(dir, elf->path, needed, err);
    khub__free(dir);
    return rc;
}

/* ---- of a proven build ---- */

/* The way through the needs of a build: which of its files were come to. */
typedef struct walk {
    const khub__entrance *entrance;
    unsigned char *seen;
} walk;

static int open_needs(const walk *w, const khub__proven_file *file, khub_error *err);

/* The file of the build that is meant by a name without a path. KHUB_E_LOAD: it has two. */
static int find_named(const khub__proven_file **out, const khub__proven *proven, const char *needed,
                      khub_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < proven->count; i++) {
        if (strcmp(khub__path_name(proven->files[i].name), needed) != 0) continue;
        if (*out)
            return khub__fail(err, KHUB_E_LOAD, "the build has two libraries of the name %s: %s and %s",
                              needed, (*out)->name, proven->files[i].name);
        *out = &proven->files[i];
    }
    return KHUB_OK;
}

/* 1: the loader, asked for `needed`, takes what was opened: its own name (DT_SONAME) is that one. Or it has
 * none: then it is found by its place beside the library that needs it, unless another place comes first. */
static int is_found(void *handle, const char *needed)
{
    const char *first = getenv("LD_LIBRARY_PATH");
    void *found = find_loaded(needed);
    if (found) dlclose(found);
    return found ? found == handle : !first || !*first;
}

static int open_file(const khub__entrance *e, const khub__proven_file *file, const char *needed,
                     khub_error *err)
{
    char *path = khub__path_join(e->dir, file->name);
    if (!path) return khub__fail_memory(err, "opening a library");
    void *handle = khub__dlopen(path, RTLD_NOW | RTLD_LOCAL); /* for good, as its code has run */
    khub__free(path);
    if (!handle) return khub__entrance_refused(e, err);
    return is_found(handle, needed)
               ? KHUB_OK
               : khub__fail(
                     err, KHUB_E_LOAD,
                     "%s/%s: hasn't the name %s (DT_SONAME), by which it is needed: the loader would look "
                     "for it in LD_LIBRARY_PATH first",
                     e->build, file->name, needed);
}

static int open_named(const walk *w, const char *by, const char *needed, khub_error *err)
{
    const khub__proven_file *file;
    khub__bytes beside = {0};
    int rc = find_named(&file, w->entrance->proven, needed, err);
    if (rc == KHUB_OK && file) rc = open_needs(w, file, err);
    if (rc != KHUB_OK || !file) return rc;
    void *there = find_loaded(needed);
    if (!there) return open_file(w->entrance, file, needed, err);
    rc = khub__file_map_open(&beside, file->held.fd, (size_t)file->held.size, file->name, err);
    if (rc == KHUB_OK) rc = check_loaded(there, by, needed, &beside, err);
    khub__bytes_free(&beside);
    dlclose(there);
    return rc;
}

static int open_need(const walk *w, const khub__elf *elf, const khub__proven_file *by, const char *needed,
                     khub_error *err)
{
    if (!strchr(needed, '/')) return open_named(w, elf->path, needed, err);
    const khub__proven_file *file = khub__search_beside(w->entrance->proven, by->name, needed);
    return file ? open_needs(w, file, err) : KHUB_OK; /* by its path the loader finds itself */
}

static int open_needs(const walk *w, const khub__proven_file *file, khub_error *err)
{
    khub__elf elf;
    size_t at = (size_t)(file - w->entrance->proven->files);
    char *path = w->seen[at] ? NULL : khub__path_join(w->entrance->build, file->name);
    if (w->seen[at]) return KHUB_OK;
    if (!path) return khub__fail_memory(err, "opening a library");
    w->seen[at] = 1;
    const char *needed;
    int rc = KHUB_OK;
    /* what isn't a library the loader refuses */
    if (khub__elf_open_file(&elf, file->held.fd, (size_t)file->held.size, path, NULL) == KHUB_OK) {
        for (size_t i = 0; rc == KHUB_OK && (needed = khub__elf_needed(&elf, i)) != NULL; i++)
            rc = open_need(w, &elf, file, needed, err);
        khub__elf_close(&elf);
    }
    khub__free(path);
    return rc;
}

int khub__siblings_open(const khub__entrance *entrance, khub_error *err)
{
    const khub__proven *proven = entrance->proven;
    const khub__proven_file *file = khub__proven_find(proven, entrance->name);
    if (!entrance->dir[0] || !file) return KHUB_OK;
    walk w = {entrance, khub__calloc(proven->count, 1)};
    if (!w.seen) return khub__fail_memory(err, "opening a library");
    int rc = open_needs(&w, file, err);
    khub__free(w.seen);
    return rc;
}
