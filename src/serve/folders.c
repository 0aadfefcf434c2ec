/* A repository as folders: each folder of ORG/NAME is a branch; or ORG/NAME is itself the only state there
 * is: then it is the branch main, and vN where its builds say that they are version N. */
#include "serve/layout.h"

#include "base/error.h"
#include "serve/folder.h"
#include "serve/version.h"

#include <stdio.h>

enum { PATH_SIZE = 1024 };

typedef struct branches {
    serve_look *look;
    const char *where;
} branches;

static int is_folders(const char *where)
{
    return serve_root_folder(NULL, where);
}

/* 1 when the folder is a state rather than a folder of states. */
static int is_state(const char *where, serve_kind kind)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", where, kind == SERVE_KERNEL ? "build" : "config.json");
    return kind == SERVE_KERNEL ? serve_root_folder(NULL, path) : serve_root_has(path);
}

static int look_at_state(serve_look *look, const char *where, khub_error *err)
{
    serve_listing *listing;
    int rc = serve_folder_list(&listing, where, NULL, NULL, err);
    if (rc != KHUB_OK) return rc;
    char name[24];
    int64_t version;
    rc = serve_version_of(&version, listing, err);
    snprintf(name, sizeof(name), "v%lld", (long long)version);
    if (rc == KHUB_OK) rc = serve_refs_add(look->refs, "main", listing->commit, SERVE_BRANCH, err);
    if (rc == KHUB_OK && version >= 0)
        rc = serve_refs_add(look->refs, name, listing->commit, SERVE_BRANCH, err);
    int kept = look->keep(look->self, listing, rc == KHUB_OK ? err : NULL);
    return rc == KHUB_OK ? kept : rc;
}

/* A branch whose files are being changed stays what it was; one that is being made isn't there yet. */
static int keep_branch(serve_look *look, const char *name, khub_error *err)
{
    const serve_ref *ref = look->before ? serve_refs_find(look->before, SERVE_BRANCH, name) : NULL;
    return ref ? serve_refs_add(look->refs, name, ref->commit, SERVE_BRANCH, err) : KHUB_OK;
}

/* A folder of the repository's folder: a branch of that name. */
static int look_at_branch(void *self, const serve_node *node, khub_error *err)
{
    branches *all = self;
    char path[PATH_SIZE];
    serve_listing *listing;
    khub_error why = {0};
    if (node->kind != SERVE_NODE_FOLDER || node->name[0] == '.' || !serve_is_path(node->name)) return KHUB_OK;
    if (snprintf(path, sizeof(path), "%s/%s", all->where, node->name) >= (int)sizeof(path)) return KHUB_OK;
    int rc = serve_folder_list(&listing, path, NULL, NULL, &why);
    if (rc == KHUB_E_NOTFOUND) return keep_branch(all->look, node->name, err);
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    rc = serve_refs_add(all->look->refs, node->name, listing->commit, SERVE_BRANCH, err);
    int kept = all->look->keep(all->look->self, listing, rc == KHUB_OK ? err : NULL);
    return rc == KHUB_OK ? kept : rc;
}

static int look_folders(serve_look *look, const char *where, serve_kind kind, khub_error *err)
{
    branches all = {look, where};
    return is_state(where, kind) ? look_at_state(look, where, err)
                                 : serve_root_each(where, look_at_branch, &all, err);
}

const serve_layout serve_layout_folders = {.is = is_folders, .look = look_folders};
