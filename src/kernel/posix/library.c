#include "kernel/library.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/signals.h"
#include "kernel/operators.h"
#include "kernel/posix/elf.h"
#include "kernel/posix/entrance.h"
#include "kernel/posix/exports.h"
#include "kernel/posix/interpose.h"
#include "kernel/posix/loader_words.h"
#include "kernel/posix/mount.h"
#include "kernel/posix/search.h"
#include "kernel/posix/siblings.h"

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
    char content[KHUB__HASH_HEX_MAX + 1]; /* that was proven; "": it was opened as it was */
    char *operators;                      /* the namespace of its operators; NULL: it has none */
    struct entry *next;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `opened` and the chain behind it */
static entry *opened;

static identity identity_of(const struct stat *st)
{
    return (identity){st->st_dev, st->st_ino, st->st_size, st->st_mtim};
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

/* The one whose operators are in that namespace, at whatever path it lies. */
static entry *find_registered(const char *operators)
{
    entry *e = opened;
    while (e && (!e->operators || strcmp(e->operators, operators) != 0))
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
    khub__free(e->operators);
    khub__free(e);
}

/* What is to be opened. */
typedef struct request {
    const char *path;           /* absolute */
    const char *operators;      /* NULL: it exports functions */
    const khub__proven *proven; /* NULL: what is at the path */
    const khub__proven_file *file;
    identity now;
} request;

/* What opening it depends on. */
typedef struct manner {
    int flags; /* more of dlopen's */
    int alone; /* as the entrance has it */
} manner;

/* 1: the whole build is this library, which looks nowhere. */
static int is_alone(const request *r, const khub__elf *elf)
{
    const char *path = khub__elf_runpath(elf);
    return r->proven && r->proven->count == 1 && (!path || !*path);
}

/* Everything that can be known before code of the library runs. */
static int look(manner *how, const request *r, khub_error *err)
{
    khub__elf elf;
    int rc = r->file ? khub__elf_open_file(&elf, r->file->held.fd, (size_t)r->file->held.size, r->path, err)
                     : khub__elf_open(&elf, r->path, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__mount_check(r->path, err);
    how->alone = is_alone(r, &elf);
    if (rc == KHUB_OK && (!r->proven || how->alone)) /* else the entrance looks at all of the build */
        rc = khub__search_check(&elf, r->proven, r->file ? r->file->name : NULL, err);
    if (rc == KHUB_OK && !r->proven) rc = khub__siblings_check(&elf, err);
    if (rc == KHUB_OK) rc = khub__interpose_flags(&how->flags, &elf, err);
    if (rc == KHUB_OK && r->operators) rc = khub__operators_check(r->operators, r->path, err);
    khub__elf_close(&elf);
    return rc;
}

/* NOW: a missing symbol fails here, not in the middle of a call, where it would end the process. */
static int open_path(void **handle, const char *path, int flags, khub_error *err)
{
    *handle = khub__dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    return *handle ? KHUB_OK : khub__loader_fail(err, path, dlerror());
}

static int open_proven(void **handle, const request *r, const manner *how, khub_error *err)
{
    khub__entrance entrance;
    char *build = khub__path_parent(r->path);
    *handle = NULL;
    int rc = build ? khub__entrance_open(&entrance, r->proven, build, r->file->name, how->alone, err)
                   : khub__fail_memory(err, "opening a library");
    if (rc == KHUB_OK && !khub__proven_still(r->proven)) { /* the last moment before its code runs */
        rc = khub__fail(err, KHUB_E_UNTRUSTED, "%s: is being written to while it is loaded", r->path);
        khub__entrance_close(&entrance, NULL);
    } else if (rc == KHUB_OK) {
        rc = khub__siblings_open(&entrance, err);
        if (rc == KHUB_OK) *handle = khub__dlopen(entrance.path, RTLD_NOW | RTLD_LOCAL | how->flags);
        if (rc == KHUB_OK && !*handle) rc = khub__entrance_refused(&entrance, err);
        khub__entrance_close(&entrance, *handle);
    }
    khub__free(build);
    return rc;
}

static int load(entry *e, const request *r, khub_error *err)
{
    const char *path = e->library.path;
    manner how;
    int rc = look(&how, r, err);
    if (rc != KHUB_OK) return rc;
    khub__log(KHUB_LOG_DEBUG, "load", path, "loading it");
    void *handle;
    rc = r->proven ? open_proven(&handle, r, &how, err) : open_path(&handle, path, how.flags, err);
    khub__log(KHUB_LOG_DEBUG, "loaded", path, "%s", handle ? "loaded" : "not loaded");
    if (!handle) return rc;
    /* From here on the handle is kept for good, failure or not: the library's code has run. */
    khub__library_function *functions;
    size_t *count = &e->library.function_count;
    rc = r->operators ? khub__operators_read(&functions, count, r->operators, path, err)
                      : khub__exports_read(&functions, count, handle, path, err);
    e->library.functions = functions;
    return rc;
}

static int open_new(entry **out, const request *r, khub_error *err)
{
    entry *e = khub__calloc(1, sizeof(*e));
    if (e) e->library.path = khub__strdup(r->path);
    if (e && r->operators) e->operators = khub__strdup(r->operators);
    if (!e || !e->library.path || (r->operators && !e->operators)) {
        entry_free(e);
        return khub__fail_memory(err, "opening a library");
    }
    e->file = r->now;
    if (r->file) memcpy(e->content, r->file->content, sizeof(e->content));
    int rc = load(e, r, err);
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

/* Of what is loaded; of a copy in memory that is what is at the path, if anything is. */
static int identify(request *r, khub_error *err)
{
    struct stat st;
    int held = r->file && !r->file->held.copied;
    if ((held ? fstat(r->file->held.fd, &st) : stat(r->path, &st)) == 0)
        r->now = identity_of(&st);
    else if (!r->file)
        return khub__fail_errno(err, r->path, "open it");
    return KHUB_OK;
}

static int is_same(const entry *e, const request *r)
{
    if (r->file && e->content[0]) return !strcmp(e->content, r->file->content);
    return same(&e->file, &r->now);
}

static int find_or_open(const khub__library **out, request *r, khub_error *err)
{
    int rc = KHUB_OK;
    pthread_mutex_lock(&lock);
    entry *e = find_opened(r->path), *other = r->operators ? find_registered(r->operators) : NULL;
    pthread_mutex_unlock(&lock);
    if (!e && other && is_same(other, r)) e = other; /* the same library from another place */
    if (!e) rc = open_new(&e, r, err);
    if (rc != KHUB_OK) return rc;
    if (!is_same(e, r))
        return khub__fail(err, KHUB_E_LOAD,
                          "%s: was replaced after this process loaded it; a process can't load another "
                          "library from the same path",
                          r->path);
    *out = &e->library;
    return KHUB_OK;
}

/* One at a time when it registers operators: those that another thread's loading registers are no stranger's.
 */
static int open_absolute(const khub__library **out, request *r, khub_error *err)
{
    static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
    int rc = identify(r, err);
    if (rc != KHUB_OK) return rc;
    if (r->operators) pthread_mutex_lock(&registering);
    rc = find_or_open(out, r, err);
    if (r->operators) pthread_mutex_unlock(&registering);
    return rc;
}

static int open_request(const khub__library **out, request *r, khub_error *err)
{
    const char *name = khub__path_name(r->path);
    if (r->proven && !(r->file = khub__proven_find(r->proven, name)))
        return khub__fail(err, KHUB_E_UNTRUSTED, "%s: isn't a file of its build whose content was proven",
                          r->path);
    return open_absolute(out, r, err);
}

int khub__library_open(const khub__library **out, const char *path, const char *operators,
                       const khub__proven *proven, khub_error *err)
{
    *out = NULL;
    char *absolute = NULL;
    int rc = make_absolute(&absolute, path, err);
    request r = {.path = absolute, .operators = operators, .proven = proven};
    if (rc == KHUB_OK) rc = open_request(out, &r, err);
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
