#include "base/ours.h"

#include "base/access_list.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_LINKS = 40, MAX_PATH = 4096 }; /* as Linux has them */

/* On the way: where it has come to, without links, and what is still to go. */
typedef struct walk {
    const char *asked; /* for messages */
    char at[MAX_PATH]; /* "" is the root */
    char rest[MAX_PATH];
    unsigned links;
} walk;

/* 1: a line (name:password:user:group:…) is of somebody else whose primary group this is. */
static int is_of_another(const char *line, const char *user, gid_t group)
{
    size_t name = strcspn(line, ":");
    const char *at = line;
    for (int field = 0; field < 3 && at; field++)
        at = (at = strchr(at, ':')) ? at + 1 : NULL;
    if (!at || strtoul(at, NULL, 10) != group) return 0;
    return strlen(user) != name || memcmp(line, user, name) != 0;
}

int khub__is_primary_group_of_one(const char *passwd, const char *user, uint32_t group)
{
    FILE *file = fopen(passwd, "re");
    char *line = NULL;
    size_t room = 0;
    if (!file) return 0;
    int only = 1;
    while (only && getline(&line, &room, file) > 0)
        only = !is_of_another(line, user, group);
    only = only && feof(file); /* not where reading failed */
    free(line);                /* getline's */
    fclose(file);
    return only;
}

/* The group that many systems make for each user, of the same name and with nobody else in it: what it may
 * write to (umask 002) nobody else may. Root's is that of others, too, on many systems. */
static int is_private(gid_t group)
{
    if (group == 0) return 0;
    char text[4096], names[4096];
    struct passwd user, *self = NULL;
    struct group record, *found = NULL;
    getpwuid_r(geteuid(), &user, text, sizeof(text), &self);
    if (!self || self->pw_gid != group) return 0;
    getgrgid_r(group, &record, names, sizeof(names),
               &found); /* one with many members doesn't fit: not private */
    if (!found || strcmp(found->gr_name, self->pw_name) != 0) return 0;
    for (char **member = found->gr_mem; *member; member++)
        if (strcmp(*member, self->pw_name) != 0) return 0;
    return khub__is_primary_group_of_one("/etc/passwd", self->pw_name, group);
}

/* The same. The last answer is kept: to ask is to read files, and a build has many. */
static int is_our_group(gid_t group)
{
    static _Atomic uint64_t ours, not_ours; /* user and group, and 1 */
    if (group != getegid()) return 0;
    uint64_t key = ((uint64_t)geteuid() << 32 | group) + 1;
    if (atomic_load(&ours) == key) return 1;
    if (atomic_load(&not_ours) == key) return 0;
    int answer = is_private(group);
    atomic_store(answer ? &ours : &not_ours, key);
    return answer;
}

static int others_may_write(uint32_t group, uint32_t mode, const char *path, int fd)
{
    if (mode & S_IWOTH) return 1;
    return (mode & S_IWGRP) && (!is_our_group(group) || khub__has_access_list(path, fd));
}

int khub__is_ours(uint32_t owner, uint32_t group, uint32_t mode, const char *path, int fd)
{
    return (owner == 0 || owner == geteuid()) && !others_may_write(group, mode, path, fd);
}

static int refuse(const walk *w, const struct stat *st, khub_error *err)
{
    const char *at = *w->at ? w->at : "/";
    const char *what = strcmp(at, w->asked) != 0 ? at : "it";
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return khub__fail(err, KHUB_E_UNTRUSTED, "%s: isn't believed, %s belongs to another user (%lu)",
                          w->asked, what, (unsigned long)st->st_uid);
    return khub__fail(err, KHUB_E_UNTRUSTED,
                      "%s: isn't believed, others may write to %s (mode %04o); chmod go-w %s", w->asked, what,
                      (unsigned)(st->st_mode & 07777), at);
}

/* A link's own mode says nothing; who may replace it is said by its directory. */
static int check(const walk *w, const struct stat *st, khub_error *err)
{
    int ours = st->st_uid == 0 || st->st_uid == geteuid();
    int open = !S_ISLNK(st->st_mode) && others_may_write(st->st_gid, st->st_mode, *w->at ? w->at : "/", -1);
    if (open && S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) && *w->rest) open = 0;
    return ours && !open ? KHUB_OK : refuse(w, st, err);
}

static int fail_length(const walk *w, khub_error *err)
{
    return khub__fail(err, KHUB_E_IO, "a path is longer than it may be: %.200s", w->asked);
}

/* The first part of the rest becomes the last of the way; "." and empty ones don't count. 0: there was none.
 */
static int step(walk *w)
{
    size_t skip = strspn(w->rest, "/"), length = strcspn(w->rest + skip, "/");
    size_t after = skip + length + strspn(w->rest + skip + length, "/");
    char part[MAX_PATH];
    if (!length) return 0;
    memcpy(part, w->rest + skip, length);
    part[length] = 0;
    memmove(w->rest, w->rest + after, strlen(w->rest + after) + 1);
    if (!strcmp(part, ".")) return 1;
    if (!strcmp(part, "..")) {
        char *last = strrchr(w->at, '/'); /* `at` has no links: what is above is what it says */
        if (last) *last = 0;
        return 1;
    }
    size_t have = strlen(w->at);
    if (have + length + 2 > sizeof(w->at)) return -1;
    w->at[have] = '/';
    memcpy(w->at + have + 1, part, length + 1);
    return 1;
}

/* What a link says takes its place. */
static int follow(walk *w, khub_error *err)
{
    char target[MAX_PATH];
    ssize_t n = readlink(w->at, target, sizeof(target) - 1);
    if (n < 0) return khub__fail_errno(err, w->at, "read the link");
    target[n] = 0;
    if (++w->links > MAX_LINKS) {
        errno = ELOOP;
        return khub__fail_errno(err, w->asked, "open it");
    }
    size_t rest = strlen(w->rest);
    if ((size_t)n + rest + 2 > sizeof(w->rest)) return fail_length(w, err);
    memmove(w->rest + n + 1, w->rest, rest + 1);
    memcpy(w->rest, target, (size_t)n);
    w->rest[n] = '/';
    if (*target == '/')
        *w->at = 0;
    else
        *strrchr(w->at, '/') = 0;
    return KHUB_OK;
}

static int go(walk *w, khub_error *err)
{
    for (;;) {
        struct stat st;
        if (lstat(*w->at ? w->at : "/", &st) != 0) return khub__fail_errno(err, w->at, "look at it");
        int rc = check(w, &st, err);
        if (rc == KHUB_OK && S_ISLNK(st.st_mode)) rc = follow(w, err);
        if (rc != KHUB_OK) return rc;
        int stepped = S_ISLNK(st.st_mode) ? 1 : step(w);
        if (stepped < 0) return fail_length(w, err);
        if (!stepped) return KHUB_OK;
    }
}

static int start(walk *w, const char *path, khub_error *err)
{
    w->asked = path;
    size_t have = 0;
    if (*path != '/') {
        if (!getcwd(w->rest, sizeof(w->rest) - 1)) return khub__fail_errno(err, path, "find the directory");
        have = strlen(w->rest);
        w->rest[have++] = '/';
    }
    if (have + strlen(path) >= sizeof(w->rest)) return fail_length(w, err);
    memcpy(w->rest + have, path, strlen(path) + 1);
    return KHUB_OK;
}

int khub__path_is_ours(char **real, const char *path, khub_error *err)
{
    if (real) *real = NULL;
    walk *w = khub__calloc(1, sizeof(*w));
    if (!w) return khub__fail_memory(err, "looking at a path");
    int rc = start(w, path, err);
    if (rc == KHUB_OK) rc = go(w, err);
    int found = rc == KHUB_OK || (rc == KHUB_E_NOTFOUND && !*w->rest);
    if (real && found && !(*real = khub__strdup(*w->at ? w->at : "/"))) {
        khub_error_clear(err);
        rc = khub__fail_memory(err, "looking at a path");
    }
    khub__free(w);
    return rc;
}

int khub__make_our_directory(const char *path, khub_error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST) return KHUB_OK;
    if (errno != ENOENT) return khub__fail_errno(err, path, "make the directory");
    char *above = khub__path_parent(path);
    int rc = above ? khub__make_our_directory(above, err) : khub__fail_memory(err, "making a directory");
    khub__free(above);
    if (rc == KHUB_OK && mkdir(path, 0700) != 0 && errno != EEXIST)
        rc = khub__fail_errno(err, path, "make the directory");
    return rc;
}
