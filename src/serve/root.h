/* DIR, and the only way to what is below it: nothing that is opened here lies outside, links included. */
#ifndef SERVE_ROOT_H
#define SERVE_ROOT_H

#include <khub/error.h>

/* Who a file is: when all of this is the same, so is its content. */
typedef struct serve_identity {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
} serve_identity;

typedef enum serve_node_kind { SERVE_NODE_FILE, SERVE_NODE_FOLDER, SERVE_NODE_OTHER } serve_node_kind;

/* A name in a folder. Links are followed while they stay in DIR; one that doesn't is SERVE_NODE_OTHER. */
typedef struct serve_node {
    const char *name;
    serve_node_kind kind;
    int link;
    serve_identity identity; /* of what a link leads to */
} serve_node;

/* Not KHUB_OK ends the listing. */
typedef int (*serve_node_fn)(void *self, const serve_node *node, khub_error *err);

/* Opens DIR, once for the process, before any other function of here. Paths are below it; "" is DIR itself.
 */
int serve_root_open(const char *dir, khub_error *err);

/* From now on the process can read nothing but DIR, where the system has such a rule (Landlock). */
void serve_root_confine(void);

/* Calls `each` for the names in a folder. KHUB_E_NOTFOUND: it isn't there, or lies outside; KHUB_E_DENIED: it
 * may not be read; KHUB_E_IO: the system can't say; KHUB_E_NOMEM; else what `each` returned. */
int serve_root_each(const char *folder, serve_node_fn each, void *self, khub_error *err);

/* 1 when there is something, inside. */
int serve_root_has(const char *path);

/* 1 and *identity (may be NULL) for a folder. */
int serve_root_folder(serve_identity *identity, const char *path);

/* Where a link points, as it says itself. -1: it is none, or too long. */
int serve_root_link(char *out, size_t size, const char *path);

/* Where a path really lies, links resolved: inside. -1: nowhere, outside, or too long. */
int serve_root_real(char *out, size_t size, const char *path);

/* Bytes of a small file; -1: it isn't there, or has more than `size`. */
int64_t serve_root_read(char *text, size_t size, const char *path);

/* A regular file for reading (serve_close), and who it is. -1 and errno: none. */
int serve_root_file(serve_identity *identity, const char *path);
int64_t serve_read(int fd, void *data, size_t bytes); /* the next bytes; 0: the end; -1 and errno */
int serve_is_same(int fd, const serve_identity *identity);
void serve_close(int fd);

int serve_identity_equal(const serve_identity *a, const serve_identity *b);

#endif
