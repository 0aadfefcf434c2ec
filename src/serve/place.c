#include "serve/place.h"

#include <stdio.h>
#include <string.h>

/* "kernels--ORG--NAME" */
static void put_cache_folder(char out[SERVE_PLACE_MAX], serve_kind kind, const char *id)
{
    size_t owner = strcspn(id, "/");
    snprintf(out, SERVE_PLACE_MAX, "%s--%.*s%s%s", kind == SERVE_KERNEL ? "kernels" : "models", (int)owner,
             id, id[owner] ? "--" : "", id[owner] ? id + owner + 1 : "");
}

/* A model without an owner is one folder: models/ORG must not be taken for one whose branches are ORG's. */
static int may_be_folders(const char *where, const char *id)
{
    char path[SERVE_PLACE_MAX + 16];
    snprintf(path, sizeof(path), "%s/config.json", where);
    return serve_layout_folders.is(where) && (strchr(id, '/') || serve_root_has(path));
}

const serve_layout *serve_place(char where[SERVE_PLACE_MAX], serve_kind kind, const char *id)
{
    const char *folder = kind == SERVE_MODEL ? "models/" : "";
    if (kind == SERVE_MODEL || strncmp(id, "models/", 7) != 0) {
        snprintf(where, SERVE_PLACE_MAX, "%s%s.git", folder, id);
        if (serve_layout_git.is(where)) return &serve_layout_git;
        snprintf(where, SERVE_PLACE_MAX, "%s%s", folder, id);
        if (serve_layout_git.is(where)) return &serve_layout_git;
        if (may_be_folders(where, id)) return &serve_layout_folders;
    }
    put_cache_folder(where, kind, id);
    return serve_layout_cache.is(where) ? &serve_layout_cache : NULL;
}

/* ---- owners ---- */

enum { FOUND = 1 };

/* "kernels--OWNER--…" and "models--OWNER--…". */
static int find_owner(void *self, const serve_node *node, khub_error *err)
{
    (void)err;
    const char *owner = self, *name = node->name;
    size_t length = strlen(owner), kind = !strncmp(name, "kernels--", 9)  ? 9
                                          : !strncmp(name, "models--", 8) ? 8
                                                                          : 0;
    return kind && !strncmp(name + kind, owner, length) && !strncmp(name + kind + length, "--", 2) ? FOUND
                                                                                                   : KHUB_OK;
}

int serve_has_owner(const char *owner)
{
    char where[SERVE_PLACE_MAX];
    snprintf(where, sizeof(where), "models/%s", owner);
    if (strcmp(owner, "models") != 0 && serve_root_folder(NULL, owner)) return 1;
    return serve_root_folder(NULL, where) ||
           serve_root_each("", find_owner, (void *)(uintptr_t)owner, NULL) == FOUND;
}
