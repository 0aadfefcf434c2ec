#include "kernel/posix/entrance.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/posix/interpose.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_UPS = 16 };

/* This process's directory for such directories. It stays until the process ends: a library may look beside
 * itself later, and must not find what another user made under the same name. */
static struct {
    pthread_mutex_t lock; /* guards the two below */
    pid_t owner;          /* a child of fork makes its own */
    char path[PATH_MAX];
} room = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((destructor)) static void leave_room(void)
{
    if (room.owner == getpid()) rmdir(room.path);
}

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
    char bits[2 * 8 * sizeof(number) + 1];
    size_t n = 0;
    for (; number; number >>= 1) {
        bits[n++] = '/';
        if (number & 1) bits[n++] = '.';
    }
    bits[n] = 0;
    snprintf(out, PATH_MAX, "/proc/self/fd%s/%d", bits, fd);
}

/* 1: what this user makes in there, nobody else can take away. */
static int is_safe(const char *base)
{
    struct stat st;
    if (base[0] != '/' || stat(base, &st) != 0 || !S_ISDIR(st.st_mode)) return 0;
    if (st.st_uid != 0 && st.st_uid != geteuid()) return 0;
    return !(st.st_mode & (S_IWGRP | S_IWOTH)) || (st.st_mode & S_ISVTX);
}

/* Memory first: on a disk it takes longer than all the rest. */
static int make_room(void)
{
    const char *const bases[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR"), "/tmp"};
    errno = EACCES;
    for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
        uint64_t random = 0;
        if (!bases[i] || !is_safe(bases[i])) continue;
        if (getrandom(&random, sizeof(random), 0) < 0) random = next_number();
        if (write_path(room.path, "%s/khub-%ld-%016llx", bases[i], (long)getpid(),
                       (unsigned long long)random) == 0 &&
            mkdir(room.path, 0700) == 0)
            return 0;
    }
    return -1;
}

static int is_room(void)
{
    struct stat st;
    return room.owner == getpid() && lstat(room.path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && !(st.st_mode & (S_IRWXG | S_IRWXO));
}

static int find_room(char out[PATH_MAX])
{
    pthread_mutex_lock(&room.lock);
    int rc = is_room() ? 0 : make_room();
    room.owner = rc == 0 ? getpid() : 0;
    if (rc == 0) memcpy(out, room.path, sizeof(room.path));
    pthread_mutex_unlock(&room.lock);
    return rc;
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

/* The most that any of the libraries goes up. KHUB_E_LOAD: more than is provided for, or one looks where
 * anybody's file may lie. */
static int check_search(size_t *ups, const khub__proven *proven, const char *build, khub_error *err)
{
    int rc = KHUB_OK;
    *ups = 0;
    for (size_t i = 0; rc == KHUB_OK && i < proven->count; i++) {
        khub__elf elf;
        const khub__proven_file *file = &proven->files[i];
        if (khub__elf_open_file(&elf, file->held.fd, (size_t)file->held.size, file->name, NULL) != KHUB_OK)
            continue; /* the loader would refuse it, too */
        rc = khub__interpose_search(&elf, err);
        if (count_ups(&elf) > *ups) *ups = count_ups(&elf);
        khub__elf_close(&elf);
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
    return make_dirs(path, e->own) != 0 ? -1 : symlink(target, path);
}

static int make_links(khub__entrance *e, size_t ups)
{
    char base[PATH_MAX], deeper[2 * MOST_UPS + 1] = "";
    for (size_t i = 0; i < ups; i++)
        memcpy(deeper + 2 * i, "/d", 3);
    if (find_room(base) != 0) return -1;
    e->own = strlen(base);
    if (write_path(e->dir, "%s/%u%s", base, next_number(), deeper) != 0) {
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

static void remove_links(const khub__entrance *e)
{
    char path[PATH_MAX];
    for (size_t i = 0; e->dir[0] && i < e->proven->count; i++) {
        if (write_path(path, "%s/%s", e->dir, e->proven->files[i].name) != 0) continue;
        unlink(path);
        remove_dirs(path, e->own);
    }
}

int khub__entrance_open(khub__entrance *out, const khub__proven *proven, const char *build, const char *name,
                        khub_error *err)
{
    *out = (khub__entrance){.build = build, .name = name, .proven = proven};
    if (proven->count == 1) {
        name_number(out->path, proven->files[0].held.fd, next_number());
        return KHUB_OK;
    }
    size_t ups;
    int rc = check_search(&ups, proven, build, err);
    if (rc != KHUB_OK) return rc;
    if (make_links(out, ups) == 0) return KHUB_OK;
    int e = errno;
    remove_links(out);
    return khub__fail(err, KHUB_E_IO,
                      "%s/%s: no private directory to load it through can be made: %s; looked at "
                      "XDG_RUNTIME_DIR, /dev/shm, TMPDIR and /tmp",
                      build, name, strerror(e));
}

/* The loader's entry for `opened` gets the name that the file has in the build, for good. */
static void rename_loaded(void *handle, const char *opened, const char *build, const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* two threads may have come to one library */
    struct link_map *map;
    char real[PATH_MAX];
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || write_path(real, "%s/%s", build, name) != 0) return;
    pthread_mutex_lock(&lock);
    char *kept = strcmp(map->l_name, opened) == 0 ? strdup(real) : NULL; /* the loader's, for good */
    if (kept) map->l_name = kept;
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
    entrance->dir[0] = 0;
}

char *khub__entrance_words(const khub__entrance *e, const char *words)
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
