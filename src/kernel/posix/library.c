#include "kernel/library.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "kernel/posix/elf.h"
#include "kernel/posix/exports.h"
#include "kernel/posix/interpose.h"
#include "kernel/posix/loader_words.h"
#include "kernel/posix/mount.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What tells that a path still means the file it meant. */
typedef struct identity {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed; /* modification: a chmod is no other file */
} identity;

/* Never freed: so many paths as were opened. */
typedef struct entry {
    khub__library library; /* first: what callers hold */
    identity file;
    struct entry *next;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `opened` and the chain behind it */
static entry *opened;

static int identify(identity *out, const char *path, khub_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return khub__fail_errno(err, path, "open it");
    *out = (identity){st.st_dev, st.st_ino, st.st_size, st.st_mtim};
    return KHUB_OK;
}

static int same(const identity *a, const identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static entry *find_opened(const char *path)
{
    entry *e = opened;
    while (e && strcmp(e->library.path, path) != 0)
        e = e->next;
    return e;
}

/* Adds `fresh`, or returns the one that another thread added meanwhile. */
static entry *add_opened(entry *fresh)
{
    pthread_mutex_lock(&lock);
    entry *e = find_opened(fresh->library.path);
    if (!e) {
        fresh->next = opened;
        opened = e = fresh;
    }
    pthread_mutex_unlock(&lock);
    return e;
}

static void entry_free(entry *e)
{
    if (!e) return;
    khub__free((void *)(uintptr_t)e->library.path);
    khub__free((void *)(uintptr_t)e->library.functions);
    khub__free(e);
}

/* Everything that can be known before code of the library runs. */
static int look(int *flags, const char *path, khub_error *err)
{
    khub__elf elf;
    int rc = khub__elf_open(&elf, path, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__mount_check(path, err);
    if (rc == KHUB_OK) rc = khub__interpose_siblings(&elf, err);
    if (rc == KHUB_OK) rc = khub__interpose_flags(flags, &elf, err);
    khub__elf_close(&elf);
    return rc;
}

static int load(entry *e, khub_error *err)
{
    const char *path = e->library.path;
    int flags;
    int rc = look(&flags, path, err);
    if (rc != KHUB_OK) return rc;
    khub__log(KHUB_LOG_DEBUG, "load", path, "loading it");
    /* NOW: a missing symbol fails here, not in the middle of a call, where it would end the process. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (!handle) rc = khub__loader_fail(err, path, dlerror());
    khub__log(KHUB_LOG_DEBUG, "loaded", path, "%s", handle ? "loaded" : "not loaded");
    if (!handle) return rc;
    /* From here on the handle is kept for good, failure or not: the library's code has run. */
    khub__library_function *functions;
    rc = khub__exports_read(&functions, &e->library.function_count, handle, path, err);
    e->library.functions = functions;
    return rc;
}

static int open_new(entry **out, const char *path, const identity *file, khub_error *err)
{
    entry *e = khub__calloc(1, sizeof(*e));
    if (e) e->library.path = khub__strdup(path);
    if (!e || !e->library.path) {
        khub__free(e);
        return khub__fail_memory(err, "opening a library");
    }
    e->file = *file;
    int rc = load(e, err);
    if (rc != KHUB_OK) {
        entry_free(e);
        return rc;
    }
    *out = add_opened(e);
    if (*out != e) entry_free(e);
    return KHUB_OK;
}

/* The path from the root on, symbolic links as they are. */
static int make_absolute(char **out, const char *path, khub_error *err)
{
    char here[PATH_MAX];
    while (!strncmp(path, "./", 2))
        path += 2;
    if (path[0] != '/' && !getcwd(here, sizeof(here)))
        return khub__fail_errno(err, path, "find the current directory");
    *out = khub__path_join(path[0] == '/' ? "" : here, path);
    return *out ? KHUB_OK : khub__fail_memory(err, "opening a library");
}

static int open_absolute(const khub__library **out, const char *path, khub_error *err)
{
    identity now;
    int rc = identify(&now, path, err);
    if (rc != KHUB_OK) return rc;
    pthread_mutex_lock(&lock);
    entry *e = find_opened(path);
    pthread_mutex_unlock(&lock);
    if (!e) rc = open_new(&e, path, &now, err);
    if (rc != KHUB_OK) return rc;
    if (!same(&e->file, &now))
        return khub__fail(err, KHUB_E_LOAD,
                          "%s: was replaced after this process loaded it; a process can't load another "
                          "library from the same path",
                          path);
    *out = &e->library;
    return KHUB_OK;
}

int khub__library_open(const khub__library **out, const char *path, khub_error *err)
{
    *out = NULL;
    char *absolute = NULL;
    int rc = make_absolute(&absolute, path, err);
    if (rc == KHUB_OK) rc = open_absolute(out, absolute, err);
    khub__free(absolute);
    return rc;
}

static int by_name(const void *key, const void *function)
{
    return strcmp(key, ((const khub__library_function *)function)->name);
}

const khub__library_function *khub__library_find(const khub__library *library, const char *name)
{
    return library->function_count ? bsearch(name, library->functions, library->function_count,
                                             sizeof(*library->functions), by_name)
                                   : NULL;
}
