/* DIR, and the only way to what is below it: nothing that is opened here lies outside, links included. */
#ifndef SERVE_ROOT_H
#define SERVE_ROOT_H

#include <khub/error.h>

#include <sys/stat.h>

/* Who a file is: when all of this is the same, so is its content. */
typedef struct serve_identity {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
} serve_identity;

/* Opens DIR, once for the process, before any other function of here. */
int serve_root_open(const char *dir, khub_error *err);

/* From now on the process can read nothing but DIR, where the system has such a rule (Landlock). */
void serve_root_confine(void);

/* open(2) with O_CLOEXEC and O_NONBLOCK of `path` below DIR ("" is DIR itself). Links are followed while they
 * stay inside. -1 and errno; EXDEV: it leads out. */
int serve_root_at(const char *path, int flags);

/* Where a link below DIR points, as it says itself. -1: it is none, or too long. */
int serve_root_link(char *out, size_t size, const char *path);

/* 1 when `path` below DIR is a directory. */
int serve_root_is_directory(const char *path);

/* A regular file for reading, and who it is. -1: none. */
int serve_root_file(serve_identity *identity, const char *path);

void serve_identity_of(serve_identity *out, const struct stat *st);
int serve_identity_equal(const serve_identity *a, const serve_identity *b);

#endif
