/* A repository in a Hugging Face cache: refs/REV hold commits, snapshots/COMMIT the files, as links whose
 * targets are named by the content. A cache may hold a part of a commit's files; that part is served. */
#include "serve/layout.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "serve/folder.h"
#include "serve/pointer.h"
#include "serve/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024, SNAPSHOTS_MAX = 10000, DEPTH_MAX = 8 };

typedef struct snapshot {
    char commit[41];
    int64_t made_ns;
} snapshot;

static int is_hex(const char *text, size_t digits)
{
    return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static int is_cache(const char *where)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/snapshots", where);
    return serve_root_folder(NULL, path);
}

/* ---- snapshots ---- */

typedef struct snapshots {
    snapshot *all;
    size_t count, capacity;
} snapshots;

static int add_snapshot(void *self, const serve_node *node, khub_error *err)
{
    snapshots *found = self;
    if (node->kind != SERVE_NODE_FOLDER || !is_hex(node->name, 40)) return KHUB_OK;
    if (khub__grow((void **)&found->all, &found->capacity, found->count + 1, sizeof(*found->all),
                   SNAPSHOTS_MAX) != 0)
        return khub__fail_memory(err, "listing a cache");
    snapshot *added = &found->all[found->count++];
    memcpy(added->commit, node->name, 41);
    added->made_ns = node->identity.modified_ns;
    return KHUB_OK;
}

static int newest_first(const void *a, const void *b)
{
    const snapshot *one = a, *two = b;
    if (one->made_ns != two->made_ns) return one->made_ns < two->made_ns ? 1 : -1;
    return strcmp(one->commit, two->commit);
}

static int has_snapshot(const snapshots *found, const char *commit)
{
    for (size_t i = 0; i < found->count; i++)
        if (!strcmp(found->all[i].commit, commit)) return 1;
    return 0;
}

/* The names that a link's target tells. */
static int names_of_link(serve_names *out, const char *where, uint64_t size)
{
    char target[PATH_SIZE];
    if (serve_root_link(target, sizeof(target), where) != 0) return -1;
    const char *name = khub__path_name(target);
    out->sha256[0] = 0;
    if (is_hex(name, 40)) {
        memcpy(out->oid, name, 41);
        return 0;
    }
    if (!is_hex(name, 64)) return -1;
    memcpy(out->sha256, name, 65);
    return serve_pointer_oid(out->oid, name, size, NULL) == KHUB_OK ? 0 : -1;
}

static int list_snapshot(serve_listing **out, const char *where, const char *commit, khub_error *err)
{
    char path[PATH_SIZE];
    if (!is_hex(commit, 40)) return khub__fail(err, KHUB_E_NOTFOUND, "%s: is no commit", commit);
    snprintf(path, sizeof(path), "%s/snapshots/%s", where, commit);
    return serve_folder_list(out, path, commit, names_of_link, err);
}

/* ---- refs ---- */

typedef struct refs_walk {
    serve_look *look;
    const snapshots *snapshots;
    const char *where; /* the folder at hand */
    size_t skip;       /* bytes of a path before the ref's name */
    int depth;
} refs_walk;

static int read_ref(char commit[41], const char *path)
{
    char text[128];
    int64_t n = serve_root_read(text, sizeof(text) - 1, path);
    if (n < 40) return -1;
    text[n] = 0;
    const char *start = text + strspn(text, " \t\r\n");
    size_t length = strspn(start, "0123456789abcdef");
    if (length != 40 || start[40 + strspn(start + 40, " \t\r\n")]) return -1;
    memcpy(commit, start, 40);
    commit[40] = 0;
    return 0;
}

static int walk_refs(refs_walk *walk, const char *where, khub_error *err);

static int add_ref(void *self, const serve_node *node, khub_error *err)
{
    refs_walk *walk = self;
    char path[PATH_SIZE], commit[41];
    if (snprintf(path, sizeof(path), "%s/%s", walk->where, node->name) >= (int)sizeof(path)) return KHUB_OK;
    const char *ref = path + walk->skip;
    if (node->name[0] == '.' || node->kind == SERVE_NODE_OTHER) return KHUB_OK;
    if (node->kind == SERVE_NODE_FOLDER)
        return walk->depth < DEPTH_MAX ? walk_refs(walk, path, err) : KHUB_OK;
    if (!serve_is_path(ref) || read_ref(commit, path) != 0 || !has_snapshot(walk->snapshots, commit))
        return KHUB_OK;
    return serve_refs_add(walk->look->refs, ref, commit,
                          strncmp(ref, "refs/", 5) ? SERVE_BRANCH : SERVE_OTHER_REF, err);
}

/* A folder that isn't there has no refs. */
static int walk_refs(refs_walk *walk, const char *where, khub_error *err)
{
    const char *before = walk->where;
    walk->where = where;
    walk->depth++;
    int rc = serve_root_folder(NULL, where) ? serve_root_each(where, add_ref, walk, err) : KHUB_OK;
    walk->depth--;
    walk->where = before;
    return rc;
}

/* Lists a snapshot. When its builds say that they are version N and no ref is named vN, that is one: the
 * Python package asks for versions by commit and so leaves no such ref. */
static int look_at_snapshot(serve_look *look, const char *where, const char *commit, serve_kind kind,
                            khub_error *err)
{
    serve_listing *listing;
    char name[24];
    khub_error why = {0};
    int rc = list_snapshot(&listing, where, commit, &why);
    if (rc == KHUB_E_NOTFOUND) return KHUB_OK; /* it went */
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    int64_t version = -1;
    if (kind == SERVE_KERNEL) rc = serve_version_of(&version, listing, err);
    snprintf(name, sizeof(name), "v%lld", (long long)version);
    if (rc == KHUB_OK && version >= 0 && !serve_refs_find(look->refs, SERVE_BRANCH, name))
        rc = serve_refs_add(look->refs, name, commit, SERVE_BRANCH, err);
    int kept = look->keep(look->self, listing, rc == KHUB_OK ? err : NULL);
    return rc == KHUB_OK ? kept : rc;
}

static int look_cache(serve_look *look, const char *where, serve_kind kind, khub_error *err)
{
    snapshots found = {0};
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/snapshots", where);
    int rc = serve_root_each(path, add_snapshot, &found, err);
    if (found.count) qsort(found.all, found.count, sizeof(*found.all), newest_first);
    snprintf(path, sizeof(path), "%s/refs", where);
    refs_walk walk = {look, &found, NULL, strlen(path) + 1, 0};
    if (rc == KHUB_OK) rc = walk_refs(&walk, path, err);
    for (size_t i = 0; i < found.count && rc == KHUB_OK; i++)
        rc = look_at_snapshot(look, where, found.all[i].commit, kind, err);
    khub__free(found.all);
    return rc;
}

const serve_layout serve_layout_cache = {
    .is = is_cache, .look = look_cache, .list = list_snapshot, .grows = 1};
