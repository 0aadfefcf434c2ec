#include "serve/warm.h"

#include "serve/repository.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int stopped;

enum { ENDED = 1 };

typedef struct folder {
    serve_kind kind;
    const char *owner;
} folder;

static int ended(void)
{
    return atomic_load(&stopped) ? ENDED : KHUB_OK;
}

static int look_at(serve_kind kind, const char *id)
{
    serve_found found;
    serve_address address = {.what = SERVE_REFS, .kind = kind};
    snprintf(address.id, sizeof(address.id), "%s", id);
    serve_find(&found, &address, 1, NULL);
    serve_found_free(&found);
    return ended();
}

/* OWNER/NAME or OWNER/NAME.git */
static int look_at_name(void *self, const serve_node *node, khub_error *err)
{
    (void)err;
    const folder *in = self;
    char id[2 * SERVE_NAME_MAX + 2];
    size_t length = strlen(node->name);
    if (node->kind != SERVE_NODE_FOLDER || !serve_is_name(node->name)) return ended();
    if (length > 4 && !strcmp(node->name + length - 4, ".git")) length -= 4;
    snprintf(id, sizeof(id), "%s/%.*s", in->owner, (int)length, node->name);
    return look_at(in->kind, id);
}

/* models/OWNER, or a model without an owner */
static int look_at_models_of(void *self, const serve_node *node, khub_error *err)
{
    (void)self;
    char path[SERVE_NAME_MAX + 16];
    folder in = {SERVE_MODEL, node->name};
    if (node->kind != SERVE_NODE_FOLDER || !serve_is_name(node->name)) return ended();
    snprintf(path, sizeof(path), "models/%s", node->name);
    if (look_at(SERVE_MODEL, node->name) == ENDED) return ENDED;
    return serve_root_each(path, look_at_name, &in, err) == ENDED ? ENDED : ended();
}

/* KINDS--OWNER--NAME */
static int look_at_cached(serve_kind kind, const char *rest)
{
    const char *name = strstr(rest, "--");
    char id[SERVE_ID_MAX + 1];
    if (!name || strlen(rest) > SERVE_ID_MAX) return ended();
    snprintf(id, sizeof(id), "%.*s/%s", (int)(name - rest), rest, name + 2);
    return look_at(kind, id);
}

static int look_at_top(void *self, const serve_node *node, khub_error *err)
{
    (void)self;
    folder in = {SERVE_KERNEL, node->name};
    if (node->kind != SERVE_NODE_FOLDER) return ended();
    if (!strncmp(node->name, "kernels--", 9)) return look_at_cached(SERVE_KERNEL, node->name + 9);
    if (!strncmp(node->name, "models--", 8)) return look_at_cached(SERVE_MODEL, node->name + 8);
    if (!serve_is_name(node->name)) return ended();
    serve_node_fn each = strcmp(node->name, "models") ? look_at_name : look_at_models_of;
    return serve_root_each(node->name, each, &in, err) == ENDED ? ENDED : ended();
}

void serve_warm(void)
{
    serve_root_each("", look_at_top, NULL, NULL);
}

void serve_warm_stop(void)
{
    atomic_store(&stopped, 1);
}
