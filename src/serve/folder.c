#include "serve/folder.h"

#include "base/error.h"
#include "serve/address.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, PATH_SIZE = 4096, TRIES = 5 };

typedef struct walk {
    serve_listing *listing;
    serve_names_fn names;
    size_t skip; /* bytes of a path below DIR before the path in the repository */
    struct {
        dev_t device;
        ino_t inode;
    } above[DEPTH_MAX]; /* the folders that lead here: one that comes again is a circle of links */
    size_t depth;
} walk;

/* 1 when the failure tells about what is there, 0 when about the state of this process or the disk: then
 * leaving it out would be a lie. */
static int is_about_the_file(int reason)
{
    static const int known[] = {ENOENT, EACCES, EPERM, ELOOP, EXDEV, ENOTDIR, ENAMETOOLONG, ENXIO};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (reason == known[i]) return 1;
    return 0;
}

/* What a name in a folder is, links followed while they stay in DIR. -1: nothing that is served. */
static int look_at(struct stat *st, int folder, const char *name, const char *where)
{
    if (fstatat(folder, name, st, AT_SYMLINK_NOFOLLOW) != 0) return -1;
    if (!S_ISLNK(st->st_mode)) return 0;
    int fd = serve_root_at(where, O_PATH);
    if (fd < 0) return -1;
    int rc = fstat(fd, st);
    close(fd);
    return rc;
}

static int name_file(serve_entry *entry, const walk *w, khub_error *err)
{
    if (w->names && w->names(&entry->names, entry->where, entry->size) == 0) return KHUB_OK;
    return serve_names_of(&entry->names, entry->where, &entry->identity,
                          serve_is_lfs(entry->path, entry->size), err);
}

static int add_file(walk *w, char *where, const struct stat *st, khub_error *err)
{
    serve_entry entry = {.path = where + w->skip, .where = where};
    khub_error why = {0};
    serve_identity_of(&entry.identity, st);
    entry.size = entry.identity.size;
    int rc = name_file(&entry, w, &why);
    if (rc == KHUB_E_DENIED) return KHUB_OK; /* can't be read: isn't served */
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    return serve_listing_add(w->listing, &entry, err);
}

static int walk_folder(walk *w, const char *where, khub_error *err);

static int is_above(const walk *w, const struct stat *st)
{
    for (size_t i = 0; i < w->depth; i++)
        if (w->above[i].device == st->st_dev && w->above[i].inode == st->st_ino) return 1;
    return 0;
}

static int add_name(walk *w, int folder, const char *where, const char *name, khub_error *err)
{
    char below[PATH_SIZE];
    struct stat st;
    if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, ".git")) return KHUB_OK;
    if (snprintf(below, sizeof(below), "%s/%s", where, name) >= (int)sizeof(below)) return KHUB_OK;
    if (!serve_is_path(below + w->skip) || look_at(&st, folder, name, below) != 0) return KHUB_OK;
    if (S_ISREG(st.st_mode)) return add_file(w, below, &st, err);
    if (!S_ISDIR(st.st_mode) || w->depth == DEPTH_MAX || is_above(w, &st)) return KHUB_OK;
    return walk_folder(w, below, err);
}

static int walk_folder(walk *w, const char *where, khub_error *err)
{
    struct stat st;
    int fd = serve_root_at(where, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir || fstat(fd, &st) != 0) {
        int reason = errno;
        if (dir) closedir(dir);
        if (fd >= 0 && !dir) close(fd);
        if (w->depth && is_about_the_file(reason)) return KHUB_OK;
        return khub__fail(err, KHUB_E_NOTFOUND, "%s: %s", where, strerror(reason));
    }
    w->above[w->depth].device = st.st_dev;
    w->above[w->depth++].inode = st.st_ino;
    int rc = KHUB_OK;
    for (struct dirent *entry; rc == KHUB_OK && (entry = readdir(dir));)
        rc = add_name(w, fd, where, entry->d_name, err);
    w->depth--;
    closedir(dir);
    return rc;
}

static int list_once(serve_listing **out, const char *where, const char *commit, serve_names_fn names,
                     khub_error *err)
{
    int rc = serve_listing_new(out, err);
    if (rc != KHUB_OK) return rc;
    walk w = {.listing = *out, .names = names, .skip = strlen(where) + 1};
    if (commit) snprintf((*out)->commit, sizeof((*out)->commit), "%s", commit);
    rc = walk_folder(&w, where, err);
    if (rc == KHUB_OK) rc = serve_listing_close(*out, err);
    if (rc != KHUB_OK) {
        serve_listing_free(*out);
        *out = NULL;
    }
    return rc;
}

int serve_folder_list(serve_listing **out, const char *where, const char *commit, serve_names_fn names,
                      khub_error *err)
{
    for (int i = 1;; i++) {
        khub_error why = {0};
        int rc = list_once(out, where, commit, names, &why);
        if (rc == KHUB_OK) return rc;
        if (rc != KHUB_E_NOTFOUND || i == TRIES || !serve_root_is_directory(where))
            return khub__fail(err, rc, "%s", why.message);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}
