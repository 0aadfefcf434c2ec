#include "serve/root.h"

#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int root = -1;
static char real_path[PATH_MAX]; /* of DIR, links resolved */

static int path_of(char out[PATH_MAX], int fd)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    if (n < 0) return -1;
    out[n] = 0;
    return 0;
}

int serve_root_open(const char *dir, khub_error *err)
{
    root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) return khub__fail_errno(err, dir, "open it as a directory");
    if (path_of(real_path, root) != 0) return khub__fail_errno(err, dir, "find out where it is");
    return KHUB_OK;
}

/* Sanitizers read what the process does from /proc when it ends. */
void serve_root_confine(void)
{
    if (KHUB_SANITIZED) return;
    struct landlock_ruleset_attr rules = {
        .handled_access_fs =
            LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
            LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR |
            LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR};
    struct landlock_path_beneath_attr below = {
        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR, .parent_fd = root};
    int set = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
    if (set < 0) return;
    if (syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0 &&
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        syscall(SYS_landlock_restrict_self, set, 0);
    close(set);
}

/* What the path leads to, opened only to be looked at; it is opened for use when it turns out to lie inside.
 * For absolute links and for systems without openat2. */
static int open_checked(const char *path, int flags)
{
    char found[PATH_MAX], again[64];
    size_t length = strlen(real_path);
    int fd = openat(root, path, O_PATH | O_CLOEXEC);
    if (fd < 0) return -1;
    int inside = path_of(found, fd) == 0 && !strncmp(found, real_path, length) &&
                 (found[length] == '/' || !found[length] || length == 1);
    snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
    int out = inside ? open(again, flags) : -1;
    int reason = inside ? errno : EXDEV;
    close(fd);
    errno = reason;
    return out;
}

/* open(2) below DIR. Links are followed while they stay inside. -1 and errno; EXDEV: it leads out. */
static int open_below(const char *path, int flags)
{
    int more = flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK | O_NOCTTY; /* O_PATH takes no other */
    struct open_how how = {.flags = (unsigned)(flags | more),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    if (!*path) path = ".";
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    if (fd >= 0 || (errno != EXDEV && errno != ENOSYS && errno != EPERM && errno != EAGAIN)) return fd;
    return open_checked(path, (int)how.flags);
}

static void identify(serve_identity *out, const struct stat *st)
{
    out->device = st->st_dev;
    out->inode = st->st_ino;
    out->size = (uint64_t)st->st_size;
    out->modified_ns = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
    out->changed_ns = st->st_ctim.tv_sec * INT64_C(1000000000) + st->st_ctim.tv_nsec;
}

int serve_identity_equal(const serve_identity *a, const serve_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

/* ---- folders ---- */

/* What a link leads to; unchanged when that is nothing inside. */
static void follow(struct stat *st, const char *folder, const char *name)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "", name);
    int fd = length < PATH_MAX ? open_below(path, O_PATH) : -1;
    if (fd < 0) return;
    fstat(fd, st);
    close(fd);
}

/* 0, or -1: it just went. */
static int look_at(serve_node *node, int fd, const char *folder, const char *name)
{
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return -1;
    node->name = name;
    node->link = S_ISLNK(st.st_mode);
    if (node->link) follow(&st, folder, name);
    node->kind = S_ISREG(st.st_mode)   ? SERVE_NODE_FILE
                 : S_ISDIR(st.st_mode) ? SERVE_NODE_FOLDER
                                       : SERVE_NODE_OTHER;
    identify(&node->identity, &st);
    return 0;
}

/* A status for why a folder can't be listed. Not KHUB_E_IO when it tells about what is there; else about the
 * state of this process or the disk: then leaving it out would be a lie. */
static int status_of(int reason)
{
    static const int absent[] = {ENOENT, ELOOP, EXDEV, ENOTDIR, ENAMETOOLONG, ENXIO};
    if (reason == EACCES || reason == EPERM) return KHUB_E_DENIED;
    for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++)
        if (reason == absent[i]) return KHUB_E_NOTFOUND;
    return KHUB_E_IO;
}

int serve_root_each(const char *folder, serve_node_fn each, void *self, khub_error *err)
{
    int fd = open_below(folder, O_RDONLY | O_DIRECTORY), reason = errno, rc = KHUB_OK;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0) close(fd);
        return khub__fail(err, fd < 0 ? status_of(reason) : KHUB_E_NOMEM, "%s: %s",
                          *folder ? folder : "the served folder", strerror(reason));
    }
    for (struct dirent *entry; rc == KHUB_OK && (entry = readdir(dir));) {
        serve_node node;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (look_at(&node, fd, folder, entry->d_name) == 0) rc = each(self, &node, err);
    }
    closedir(dir);
    return rc;
}

int serve_root_has(const char *path)
{
    int fd = open_below(path, O_PATH);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

int serve_root_folder(serve_identity *identity, const char *path)
{
    struct stat st;
    int fd = open_below(path, O_PATH | O_DIRECTORY), rc = fd < 0 ? -1 : fstat(fd, &st);
    if (fd >= 0) close(fd);
    if (rc == 0 && identity) identify(identity, &st);
    return rc == 0;
}

/* ---- links ---- */

int serve_root_link(char *out, size_t size, const char *path)
{
    int fd = open_below(path, O_PATH | O_NOFOLLOW);
    if (fd < 0) return -1;
    ssize_t n = readlinkat(fd, "", out, size);
    close(fd);
    if (n < 0 || (size_t)n == size) return -1;
    out[n] = 0;
    return 0;
}

int serve_root_real(char *out, size_t size, const char *path)
{
    char found[PATH_MAX];
    int fd = open_below(path, O_PATH), rc = fd < 0 ? -1 : path_of(found, fd);
    if (fd >= 0) close(fd);
    if (rc != 0 || strlen(found) >= size) return -1;
    memcpy(out, found, strlen(found) + 1);
    return 0;
}

/* ---- files ---- */

int serve_root_file(serve_identity *identity, const char *path)
{
    struct stat st;
    int fd = open_below(path, O_RDONLY);
    if (fd < 0) return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    identify(identity, &st);
    return fd;
}

int64_t serve_read(int fd, void *data, size_t bytes)
{
    ssize_t n;
    do
        n = read(fd, data, bytes);
    while (n < 0 && errno == EINTR);
    return n;
}

int serve_is_same(int fd, const serve_identity *identity)
{
    struct stat st;
    serve_identity now;
    if (fstat(fd, &st) != 0) return 0;
    identify(&now, &st);
    return serve_identity_equal(&now, identity);
}

void serve_close(int fd)
{
    close(fd);
}

int64_t serve_root_read(char *text, size_t size, const char *path)
{
    serve_identity identity;
    size_t have = 0;
    int fd = serve_root_file(&identity, path);
    if (fd < 0) return -1;
    int64_t n = identity.size > size ? -1 : 1;
    while (n > 0 && have < size) {
        n = serve_read(fd, text + have, size - have);
        if (n > 0) have += (size_t)n;
    }
    close(fd);
    return n < 0 ? -1 : (int64_t)have;
}
