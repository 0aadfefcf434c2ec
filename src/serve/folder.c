#include "serve/folder.h"

#include "base/error.h"
#include "serve/address.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DEPTH_MAX = 64, PATH_SIZE = 4096, TRIES = 2 };

typedef struct walk {
    serve_listing *listing;
    serve_names_fn names;
    size_t skip;       /* bytes of a path below DIR before the path in the repository */
    const char *where; /* the folder at hand */
    serve_identity
        above[DEPTH_MAX]; /* the folders that lead here: one that comes again is a circle of links */
    size_t depth;
} walk;

static int name_file(serve_entry *entry, const walk *w, khub_error *err)
{
    if (w->names && w->names(&entry->names, entry->where, entry->size) == 0) return KHUB_OK;
    return serve_names_of(&entry->names, entry->where, &entry->identity,
                          serve_is_lfs(entry->path, entry->size), err);
}

static int add_file(walk *w, char *where, const serve_identity *identity, khub_error *err)
{
    serve_entry entry = {
        .path = where + w->skip, .where = where, .size = identity->size, .identity = *identity};
    khub_error why = {0};
    int rc = name_file(&entry, w, &why);
    if (rc == KHUB_E_DENIED) return KHUB_OK; /* can't be read: isn't served */
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    return serve_listing_add(w->listing, &entry, err);
}

static int is_above(const walk *w, const serve_identity *identity)
{
    for (size_t i = 0; i < w->depth; i++)
        if (w->above[i].device == identity->device && w->above[i].inode == identity->inode) return 1;
    return 0;
}

static int walk_folder(walk *w, const char *where, const serve_identity *identity, khub_error *err);

static int add_node(void *self, const serve_node *node, khub_error *err)
{
    walk *w = self;
    char below[PATH_SIZE];
    if (snprintf(below, sizeof(below), "%s/%s", w->where, node->name) >= (int)sizeof(below)) return KHUB_OK;
    if (!strcmp(node->name, ".git") || !serve_is_path(below + w->skip)) return KHUB_OK;
    if (node->kind == SERVE_NODE_FILE) return add_file(w, below, &node->identity, err);
    if (node->kind != SERVE_NODE_FOLDER || w->depth == DEPTH_MAX || is_above(w, &node->identity))
        return KHUB_OK;
    khub_error why = {0};
    int rc = walk_folder(w, below, &node->identity, &why);
    if (rc == KHUB_OK || rc == KHUB_E_DENIED || (rc == KHUB_E_NOTFOUND && !serve_root_folder(NULL, below)))
        return KHUB_OK; /* it went */
    return khub__fail(err, rc, "%s", why.message);
}

static int walk_folder(walk *w, const char *where, const serve_identity *identity, khub_error *err)
{
    const char *before = w->where;
    w->where = where;
    w->above[w->depth++] = *identity;
    int rc = serve_root_each(where, add_node, w, err);
    w->depth--;
    w->where = before;
    return rc;
}

static int list_once(serve_listing **out, const char *where, const char *commit, serve_names_fn names,
                     khub_error *err)
{
    int rc = serve_listing_new(out, err);
    if (rc != KHUB_OK) return rc;
    walk w = {.listing = *out, .names = names, .skip = strlen(where) + 1};
    if (commit) snprintf((*out)->commit, sizeof((*out)->commit), "%s", commit);
    serve_identity top;
    rc = serve_root_folder(&top, where) ? walk_folder(&w, where, &top, err)
                                        : khub__fail(err, KHUB_E_NOTFOUND, "%s: isn't there", where);
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
        if (rc != KHUB_E_NOTFOUND || i == TRIES || !serve_root_folder(NULL, where))
            return khub__fail(err, rc, "%s", why.message);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}
