#include "cache/disk.h"

#include "base/error.h"
#include "base/home.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int khub__disk_absolute(char **out, const char *path, khub_error *err)
{
    *out = NULL;
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    if (path[0] != '/' && !here) return khub__fail_errno(err, path, "find the current directory");
    while (path[0] == '.' && (path[1] == '/' || !path[1]))
        path += 1 + strspn(path + 1, "/");
    khub__text text = {0};
    if (here) khub__text_add(&text, here);
    if (here && path[0]) khub__text_add(&text, "/");
    khub__text_add(&text, path);
    free(here);
    *out = khub__text_take(&text);
    if (!*out) return khub__fail_memory(err, "looking for the cache");
    for (size_t n = strlen(*out); n > 1 && (*out)[n - 1] == '/'; n--)
        (*out)[n - 1] = 0;
    return KHUB_OK;
}

int khub__disk_path(char out[KHUB__DISK_PATH_MAX], const khub__store *store, const char *path)
{
    size_t folder = strlen(store->folder), length = strlen(path);
    if (folder + length + 2 > KHUB__DISK_PATH_MAX) return -1;
    memcpy(out, store->folder, folder);
    out[folder] = '/';
    memcpy(out + folder + 1, path, length + 1);
    return 0;
}

/* What puts the cache elsewhere. */
static const char *advice(void)
{
    return khub__env("KERNELS_CACHE") ? "KERNELS_CACHE or khub_hub_options.cache_dir names another"
                                      : "HF_HUB_CACHE or khub_hub_options.cache_dir names another";
}

int khub__disk_check_cache(const char *cache, khub_error *err)
{
    struct stat st;
    int there = stat(cache, &st) == 0;
    if (there && !S_ISDIR(st.st_mode))
        return khub__fail(err, KHUB_E_IO, "the cache %s is a file, a folder is needed; %s", cache, advice());
    if (!there && errno == ENOTDIR)
        return khub__fail(err, KHUB_E_IO, "the cache %s can't be made beneath a file; %s", cache, advice());
    return KHUB_OK;
}

/* The cache isn't there and can't be made, by errno. */
static int fail_to_make(khub_error *err, const char *cache)
{
    int e = errno;
    if (khub__disk_check_cache(cache, err) != KHUB_OK) return KHUB_E_IO;
    return khub__fail(err,
                      e == ENOSPC || e == EDQUOT ? KHUB_E_NOSPACE
                      : e == ENOMEM              ? KHUB_E_NOMEM
                                                 : KHUB_E_IO,
                      "the cache %s can't be made: %s; %s", cache, strerror(e), advice());
}

/* What an `e` of EROFS, EACCES or EPERM says about the cache as a whole. */
static const char *state_of(const char *cache, int e)
{
    if (e == EROFS) return " is read-only";
    if (access(cache, R_OK | X_OK) != 0) return " can't be read by this user";
    return access(cache, W_OK) != 0 ? " is read-only for this user" : "";
}

int khub__disk_fail(khub_error *err, const khub__store *store, const char *path, const char *what)
{
    int e = errno;
    if (e == EROFS || e == EACCES || e == EPERM)
        return khub__fail(err, KHUB_E_IO, "the cache %s%s: %s/%s: can't %s: %s; %s", store->cache,
                          state_of(store->cache, e), khub__path_name(store->folder), path, what, strerror(e),
                          advice());
    if (e == ELOOP || e == ENOTDIR)
        return khub__fail(err, KHUB_E_IO,
                          "%s/%s: can't %s: a link or a file stands where a directory should be",
                          store->folder, path, what);
    char full[1200];
    snprintf(full, sizeof(full), "%s/%s", store->folder, path);
    errno = e;
    return khub__fail_errno(err, full, what);
}

int khub__disk_write(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

void khub__disk_temporary(char out[KHUB__TEMPORARY_MAX], const char *before, const char *after)
{
    uint32_t random;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) { /* O_EXCL finds what isn't new */
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        random = (uint32_t)now.tv_nsec ^ (uint32_t)getpid() << 12;
    }
    snprintf(out, KHUB__TEMPORARY_MAX, "%s%08x%s", before, (unsigned)random, after);
}

int64_t khub__disk_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

long khub__disk_own_pid(void)
{
    return getpid();
}

/* mkdir -p, links followed: above a repository's folder the user may link as he likes. */
static int make_above(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return 0;
    if (errno != ENOENT) return -1;
    char *parent = khub__path_parent(path);
    if (!parent) {
        errno = ENOMEM;
        return -1;
    }
    int rc = make_above(parent);
    khub__free(parent);
    return rc != 0 ? rc : mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : -1;
}

/* So that backup tools leave the cache out. What it says, up to the words after "#", is the standard's. */
static void tag(int cache)
{
    static const char text[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                               "# This directory is a cache: what is in it can be fetched again.\n"
                               "# See https://bford.info/cachedir/\n";
    int fd = openat(cache, "CACHEDIR.TAG", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return;
    (void)!khub__disk_write(fd, text, sizeof(text) - 1);
    close(fd);
}

/* What of the cache it is that can't be made or opened. */
typedef enum { PART_REPOSITORY, PART_CACHE, PART_LOCKS } blame;

/* Goes from `dir` (which is closed; -1: errno says why) into a directory of it. */
static int step(int dir, const char *name, int make)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (dir < 0) return -1;
    int next = openat(dir, name, flags);
    if (next < 0 && errno == ENOENT && make && (mkdirat(dir, name, 0777) == 0 || errno == EEXIST))
        next = openat(dir, name, flags);
    int saved = errno;
    close(dir);
    errno = saved;
    return next;
}

/* FOLDER with snapshots/ in it, made in the open `locks` and renamed into the cache. */
static int make_in(blame *blamed, int locks, int cache, const char *name)
{
    char draft[KHUB__TEMPORARY_MAX], inner[KHUB__TEMPORARY_MAX + 16];
    khub__disk_temporary(draft, ".khub-", ".tmp");
    snprintf(inner, sizeof(inner), "%s/snapshots", draft);
    if (mkdirat(locks, draft, 0777) != 0) return -1;
    *blamed = PART_REPOSITORY;
    if (mkdirat(locks, inner, 0777) == 0 && renameat(locks, draft, cache, name) == 0) return 0;
    int saved = errno;
    unlinkat(locks, inner, AT_REMOVEDIR);
    unlinkat(locks, draft, AT_REMOVEDIR);
    if (saved == EEXIST || saved == ENOTEMPTY || saved == ENOTDIR) return 0; /* another process was faster */
    errno = saved;
    return -1;
}

/* Makes FOLDER with snapshots/ in it at once: a folder without is a broken one to the other tools. */
static int make_folder(blame *blamed, int cache, const char *name)
{
    *blamed = PART_LOCKS;
    int locks = step(fcntl(cache, F_DUPFD_CLOEXEC, 0), ".locks", 1);
    if (locks < 0) return -1;
    int rc = make_in(blamed, locks, cache, name), saved = errno;
    close(locks);
    errno = saved;
    return rc;
}

static int open_folder(blame *blamed, const khub__store *store, int make)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    *blamed = PART_REPOSITORY;
    int fd = open(store->folder, flags);
    if (fd >= 0 || errno != ENOENT || !make) return fd;
    int cache = make_above(store->cache) == 0 ? open(store->cache, flags) : -1;
    if (cache < 0) *blamed = PART_CACHE;
    if (cache < 0) return -1;
    tag(cache);
    int rc = make_folder(blamed, cache, khub__path_name(store->folder)), saved = errno;
    close(cache);
    errno = saved;
    return rc == 0 ? open(store->folder, flags) : -1;
}

static int fail_locks(khub_error *err, const khub__store *store)
{
    char folder[KHUB__DISK_PATH_MAX];
    int e = errno;
    snprintf(folder, sizeof(folder), "%s/.locks", store->cache);
    khub__store locks = {.cache = store->cache, .folder = folder};
    errno = e;
    return khub__disk_fail(err, &locks, khub__path_name(store->folder), "make it");
}

/* Goes from the open `folder` (which is closed; -1: errno says why) down to the directory of PATH. Fills
 * *out, or leaves out->dir -1 with errno. */
static void walk(khub__spot *out, int folder, const char *path, int make)
{
    char part[256]; /* as long as a name may be, and its NUL */
    const char *slash;
    out->name = path;
    out->dir = folder;
    while (out->dir >= 0 && (slash = strchr(out->name, '/')) != NULL) {
        size_t length = (size_t)(slash - out->name);
        if (length >= sizeof(part)) {
            close(out->dir);
            out->dir = -1;
            errno = ENAMETOOLONG;
            break;
        }
        memcpy(part, out->name, length);
        part[length] = 0;
        out->dir = step(out->dir, part, make);
        out->name = slash + 1;
    }
}

int khub__spot_open(khub__spot *out, const khub__store *store, const char *path, int make, khub_error *err)
{
    enum { ATTEMPTS = 10 };
    blame blamed;
    walk(out, open_folder(&blamed, store, make), path, make);
    for (int i = 1; make && out->dir < 0 && errno == ENOENT && i < ATTEMPTS; i++)
        walk(out, open_folder(&blamed, store, make), path,
             make); /* someone removed a directory that was just made */
    if (out->dir >= 0) return KHUB_OK;
    if (blamed == PART_CACHE) return fail_to_make(err, store->cache);
    if (blamed == PART_LOCKS) return fail_locks(err, store);
    if (errno == ENOTDIR && khub__disk_check_cache(store->cache, err) != KHUB_OK) return KHUB_E_IO;
    return make || errno != ENOENT
               ? khub__disk_fail(err, store, path, make ? "make it" : "open it")
               : khub__fail(err, KHUB_E_NOTFOUND, "%s/%s: isn't there", store->folder, path);
}

int khub__spot_open_plain(khub__spot *out, const khub__store *store, const char *path, int make,
                          khub_error *err)
{
    int cache = open(store->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    walk(out, step(cache, khub__path_name(store->folder), make), path, make);
    if (out->dir >= 0) return KHUB_OK;
    int saved = errno;
    int rc = saved != ENOENT ? khub__disk_fail(err, store, path, make ? "make it" : "open it")
                             : khub__fail(err, KHUB_E_NOTFOUND, "%s/%s: isn't there", store->folder, path);
    errno = saved;
    return rc;
}

void khub__spot_close(khub__spot *spot)
{
    if (spot->dir >= 0) close(spot->dir);
    spot->dir = -1;
}

int khub__disk_make(const khub__store *store, const char *path, khub_error *err)
{
    khub__spot spot;
    int rc = khub__spot_open(&spot, store, path, 1, err);
    if (rc != KHUB_OK) return rc;
    if (mkdirat(spot.dir, spot.name, 0777) != 0 && errno != EEXIST)
        rc = khub__disk_fail(err, store, path, "make it");
    khub__spot_close(&spot);
    return rc;
}

/* No sync: a ref that is empty after a power cut counts as absent, a list that is cut isn't JSON. */
static int write_temporary(int folder, const char *name, const void *data, size_t bytes)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    int failed = khub__disk_write(fd, data, bytes), saved = errno;
    if (close(fd) != 0 && !failed) failed = -1, saved = errno;
    if (failed) unlinkat(folder, name, 0);
    errno = saved;
    return failed;
}

int khub__disk_put(const khub__store *store, const char *path, const void *data, size_t bytes,
                   khub_error *err)
{
    khub__spot spot;
    int rc = khub__spot_open(&spot, store, path, 1, err);
    if (rc != KHUB_OK) return rc;
    /* in the repository's own folder: the other tools take every file in refs/ for a ref */
    char name[KHUB__TEMPORARY_MAX];
    khub__disk_temporary(name, ".khub-", ".tmp");
    blame unneeded;
    int folder = open_folder(&unneeded, store, 0);
    if (folder < 0 || write_temporary(folder, name, data, bytes) != 0) {
        rc = khub__disk_fail(err, store, path, "write it");
    } else if (renameat(folder, name, spot.dir, spot.name) != 0) {
        rc = khub__disk_fail(err, store, path, "put it in place");
        unlinkat(folder, name, 0);
    }
    if (folder >= 0) close(folder);
    khub__spot_close(&spot);
    return rc;
}

static int is_below(const char *real, const char *folder)
{
    char *root = realpath(folder, NULL);
    size_t length = root ? strlen(root) : 0;
    int below =
        root && strncmp(real, root, length) == 0 && (real[length] == '/' || (length == 1 && real[0] == '/'));
    free(root);
    return below;
}

/* The repository's folder may itself be a link to elsewhere, as the cache may. */
int khub__disk_inside(const khub__store *store, const char *path)
{
    char *real = realpath(path, NULL);
    int inside = real && (is_below(real, store->cache) || is_below(real, store->folder));
    free(real);
    return inside;
}

/* The file for reading, or -1 with errno (EXDEV: it leads out of the cache). */
static int open_inside(const khub__spot *spot, const khub__store *store, const char *path)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    int fd = openat(spot->dir, spot->name, flags | O_NOFOLLOW);
    if (fd >= 0 || errno != ELOOP) return fd;
    char full[KHUB__DISK_PATH_MAX];
    struct stat st;
    if (khub__disk_path(full, store, path) == 0 && khub__disk_inside(store, full))
        return openat(spot->dir, spot->name, flags);
    errno = fstatat(spot->dir, spot->name, &st, 0) != 0 ? ENOENT : EXDEV;
    return -1;
}

static int64_t age_of(const struct stat *st)
{
    int64_t age = (int64_t)time(NULL) - (int64_t)st->st_mtime;
    return age < 0 ? INT64_MAX : age;
}

static int read_small(char **out, size_t *bytes, int fd, const khub__store *store, const char *path,
                      size_t max, khub_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return khub__disk_fail(err, store, path, "look at it");
    if (!S_ISREG(st.st_mode))
        return khub__fail(err, KHUB_E_FORMAT, "%s/%s: isn't a file", store->folder, path);
    if ((uint64_t)st.st_size > max)
        return khub__fail(err, KHUB_E_FORMAT, "%s/%s: is %lld bytes long, at most %zu are read",
                          store->folder, path, (long long)st.st_size, max);
    char *data = khub__malloc((size_t)st.st_size + 1);
    if (!data) return khub__fail_memory(err, "reading the cache");
    size_t have = 0;
    ssize_t n = 1;
    while (have < (size_t)st.st_size && n > 0) {
        n = read(fd, data + have, (size_t)st.st_size - have);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            have += (size_t)n;
    }
    if (n < 0) {
        khub__free(data);
        return khub__disk_fail(err, store, path, "read it");
    }
    data[have] = 0;
    *out = data;
    *bytes = have;
    return KHUB_OK;
}

int khub__disk_get(char **out, size_t *bytes, int64_t *age_s, const khub__store *store, const char *path,
                   size_t max, khub_error *err)
{
    *out = NULL;
    khub__spot spot;
    int rc = khub__spot_open(&spot, store, path, 0, err);
    if (rc != KHUB_OK) return rc;
    int fd = open_inside(&spot, store, path);
    struct stat st;
    if (fd < 0 && errno == EXDEV)
        rc = khub__fail(err, KHUB_E_UNTRUSTED, "%s/%s: leads out of the cache, so it isn't read",
                        store->folder, path);
    else if (fd < 0 && errno == ENOENT)
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s/%s: isn't there", store->folder, path);
    else if (fd < 0)
        rc = khub__disk_fail(err, store, path, "open it");
    else
        rc = read_small(out, bytes, fd, store, path, max, err);
    if (rc == KHUB_OK && age_s) *age_s = fstat(fd, &st) == 0 ? age_of(&st) : INT64_MAX;
    if (fd >= 0) close(fd);
    khub__spot_close(&spot);
    return rc;
}

int khub__disk_touch(const khub__store *store, const char *path)
{
    khub__spot spot;
    if (khub__spot_open(&spot, store, path, 0, NULL) != KHUB_OK) return -1;
    int rc = utimensat(spot.dir, spot.name, NULL, AT_SYMLINK_NOFOLLOW), saved = errno;
    khub__spot_close(&spot);
    errno = saved;
    return rc;
}
