#include "kernel/posix/entrance.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/posix/loader_words.h"
#include "kernel/posix/search.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_UPS = 16 };

static unsigned next_number(void)
{
    static atomic_uint last;
    return atomic_fetch_add(&last, 1);
}

/* snprintf; -1 with errno when it doesn't fit. */
static int KHUB_PRINTF(2, 3) write_path(char out[PATH_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out, PATH_MAX, format, args);
    va_end(args);
    if (n >= 0 && n < PATH_MAX) return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* "/proc/self/fd/7", spelled as no other: "/" and "/." between the parts are the number's bits. */
static void name_number(char out[PATH_MAX], int fd, unsigned number)
{
    char *at = stpcpy(out, "/proc/self/fd");
    for (; number; number >>= 1) {
        *at++ = '/';
        if (number & 1) *at++ = '.';
    }
    char digits[12], *first = digits + sizeof(digits); /* printf takes longer than opening the file */
    *--first = 0;
    do
        *--first = (char)('0' + fd % 10);
    while ((fd /= 10) != 0);
    stpcpy(stpcpy(at, "/"), first);
}

/* How often a search path goes up from where the library is: so many directories must be between it and what
 * isn't private. */
static size_t count_ups(const khub__elf *elf)
{
    size_t ups = 0;
    for (const char *at = khub__elf_runpath(elf); at && (at = strstr(at, "..")) != NULL; at += 2)
        ups++;
    return ups;
}

static int check_file(size_t *ups, const khub__proven *proven, const khub__proven_file *file,
                      const char *path, khub_error *err)
{
    khub__elf elf;
    if (khub__elf_open_file(&elf, file->held.fd, (size_t)file->held.size, path, NULL) != KHUB_OK)
        return KHUB_OK; /* the loader would refuse it, too */
    int rc = khub__search_check(&elf, proven, file->name, err);
    if (count_ups(&elf) > *ups) *ups = count_ups(&elf);
    khub__elf_close(&elf);
    return rc;
}

/* KHUB_E_LOAD: one goes up more than is provided for, or looks where it mustn't. */
static int check_search(size_t *ups, const khub__proven *proven, const char *build, khub_error *err)
{
    int rc = KHUB_OK;
    *ups = 0;
    for (size_t i = 0; rc == KHUB_OK && i < proven->count; i++) {
        const khub__proven_file *file = &proven->files[i];
        char *path = khub__path_join(build, file->name);
        rc = path ? check_file(ups, proven, file, path, err) : khub__fail_memory(err, "opening a library");
        khub__free(path);
    }
    if (rc == KHUB_OK && *ups > MOST_UPS)
        rc = khub__fail(err, KHUB_E_LOAD, "%s: a search path leads %zu directories up, at most %d do", build,
                        *ups, MOST_UPS);
    return rc;
}

/* Makes the directories of entrance->dir that aren't there, and those on the way to `file` in it. */
static int make_dirs(char path[PATH_MAX], size_t from)
{
    for (char *slash = path + from; slash && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = 0;
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed) return -1;
    }
    return 0;
}

static int link_to(const khub__entrance *e, const khub__proven_file *file)
{
    char path[PATH_MAX], target[64];
    snprintf(target, sizeof(target), "/proc/self/fd/%d", file->held.fd);
    if (write_path(path, "%s/%s", e->dir, file->name) != 0) return -1;
    return make_dirs(path, strlen(e->room.path)) != 0 ? -1 : symlink(target, path);
}

static int make_links(khub__entrance *e, size_t ups)
{
    char deeper[2 * MOST_UPS + 1] = "";
    for (size_t i = 0; i < ups; i++)
        memcpy(deeper + 2 * i, "/d", 3);
    if (khub__room_make(&e->room) != 0) return -1;
    if (write_path(e->dir, "%s%s", e->room.path, deeper) != 0) {
        e->dir[0] = 0;
        return -1;
    }
    for (size_t i = 0; i < e->proven->count; i++)
        if (link_to(e, &e->proven->files[i]) != 0) return -1;
    return write_path(e->path, "%s/%s", e->dir, e->name);
}

/* Removes the directories above `path` that were made for the entrance. */
static void remove_dirs(char path[PATH_MAX], size_t from)
{
    for (char *slash; (slash = strrchr(path, '/')) != NULL && (size_t)(slash - path) > from;) {
        *slash = 0;
        if (rmdir(path) != 0) return; /* another file's directory, too: its turn comes */
    }
}

static void remove_links(khub__entrance *e)
{
    char path[PATH_MAX];
    int saved = errno;
    for (size_t i = 0; e->dir[0] && i < e->proven->count; i++) {
        if (write_path(path, "%s/%s", e->dir, e->proven->files[i].name) != 0) continue;
        unlink(path);
        remove_dirs(path, strlen(e->room.path));
    }
    khub__room_leave(&e->room);
    e->dir[0] = 0;
    errno = saved;
}

int khub__entrance_open(khub__entrance *out, const khub__proven *proven, const char *build, const char *name,
                        int alone, khub_error *err)
{
    out->build = build;
    out->name = name;
    out->proven = proven;
    out->dir[0] = out->path[0] = out->room.path[0] = 0; /* not all of it: it is long */
    if (alone) {
        name_number(out->path, proven->files[0].held.fd, next_number());
        return KHUB_OK;
    }
    size_t ups;
    int rc = check_search(&ups, proven, build, err);
    if (rc != KHUB_OK) return rc;
    if (make_links(out, ups) == 0) return KHUB_OK;
    remove_links(out);
    return khub__fail(err, KHUB_E_IO,
                      "%s/%s: no private directory to load it through can be made: %s; looked at "
                      "XDG_RUNTIME_DIR, /dev/shm, TMPDIR and /tmp",
                      build, name, strerror(errno));
}

/* The loader's entry for `opened` gets the name that the file has in the build, for good. */
static void rename_loaded(void *handle, const char *opened, const char *build, const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* two threads may have come to one library */
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return;
    pthread_mutex_lock(&lock);
    if (strcmp(map->l_name, opened) == 0) {
        char *real = malloc(strlen(build) + 1 + strlen(name) + 1); /* the loader's, for good */
        if (real) stpcpy(stpcpy(stpcpy(real, build), "/"), name);
        if (real) map->l_name = real;
    }
    pthread_mutex_unlock(&lock);
}

static void rename_all(const khub__entrance *e, void *handle)
{
    rename_loaded(handle, e->path, e->build, e->name);
    for (size_t i = 0; e->dir[0] && i < e->proven->count; i++) {
        char path[PATH_MAX];
        if (write_path(path, "%s/%s", e->dir, e->proven->files[i].name) != 0) continue;
        void *sibling = dlopen(path, RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
        if (!sibling) continue;
        rename_loaded(sibling, path, e->build, e->proven->files[i].name);
        dlclose(sibling);
    }
}

void khub__entrance_close(khub__entrance *entrance, void *handle)
{
    if (handle) rename_all(entrance, handle);
    remove_links(entrance);
}

static char *real_words(const khub__entrance *e, const char *words)
{
    khub__text text = {0};
    const char *from = e->dir[0] ? e->dir : e->path, *at;
    for (; (at = strstr(words, from)) != NULL; words = at + strlen(from)) {
        khub__text_add_bytes(&text, words, (size_t)(at - words));
        khub__text_add(&text, e->build);
        if (!e->dir[0]) khub__text_addf(&text, "/%s", e->name);
    }
    khub__text_add(&text, words);
    return khub__text_take(&text);
}

int khub__entrance_refused(const khub__entrance *e, khub_error *err)
{
    char *words = real_words(e, dlerror()), *path = khub__path_join(e->build, e->name);
    int rc =
        words && path ? khub__loader_fail(err, path, words) : khub__fail_memory(err, "opening a library");
    khub__free(path);
    khub__free(words);
    return rc;
}
