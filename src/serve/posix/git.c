/* A bare git repository: its branches, tags and commits, its files as blobs, and as LFS objects where a blob
 * is a pointer to one. */
#include "serve/git.h"

#include "base/error.h"
#include "base/memory.h"
#include "serve/layout.h"
#include "serve/pointer.h"

#include <git2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, POINTER_MAX = 1024, DEPTH_MAX = 32 };

int serve_git_start(khub_error *err)
{
    if (git_libgit2_init() < 0) return khub__fail(err, KHUB_E_UNSUPPORTED, "libgit2 doesn't start");
    for (int level = GIT_CONFIG_LEVEL_PROGRAMDATA; level <= GIT_CONFIG_LEVEL_GLOBAL; level++)
        git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, ""); /* no configuration from outside DIR */
    git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);        /* nothing of a repository is ever run */
    return KHUB_OK;
}

void serve_git_stop(void)
{
    git_libgit2_shutdown();
}

/* ---- opening one ---- */

static int has(const char *where, const char *name)
{
    char path[PATH_SIZE];
    return snprintf(path, sizeof(path), "%s/%s", where, name) < (int)sizeof(path) && serve_root_has(path);
}

static int is_git(const char *where)
{
    return has(where, "HEAD") && has(where, "objects") && has(where, "refs");
}

typedef struct search {
    const char *where; /* the folder at hand */
    int depth;
} search;

/* Fails at a link: libgit2 would follow it out of DIR. */
static int refuse_links(void *self, const serve_node *node, khub_error *err)
{
    search *all = self;
    char path[PATH_SIZE];
    if (snprintf(path, sizeof(path), "%s/%s", all->where, node->name) >= (int)sizeof(path) || node->link ||
        all->depth == DEPTH_MAX)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: takes a part of itself from elsewhere", all->where);
    search below = {path, all->depth + 1};
    return node->kind == SERVE_NODE_FOLDER ? serve_root_each(path, refuse_links, &below, err) : KHUB_OK;
}

/* The words of libgit2's last failure. */
static const char *words(void)
{
    const git_error *last = git_error_last();
    return last && last->message ? last->message : "libgit2 doesn't say why";
}

static int open_git(git_repository **out, const char *where, khub_error *err)
{
    char path[PATH_SIZE];
    search all = {where, 0};
    if (has(where, "objects/info/alternates") || has(where, "commondir"))
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: takes a part of itself from elsewhere", where);
    int rc = serve_root_each(where, refuse_links, &all, err);
    if (rc != KHUB_OK) return rc;
    if (serve_root_real(path, sizeof(path), where) != 0)
        return khub__fail(err, KHUB_E_NOTFOUND, "%s: isn't there", where);
    if (git_repository_open_bare(out, path) == 0) return KHUB_OK;
    return khub__fail(err, KHUB_E_FORMAT, "%s: %s", where, words());
}

/* ---- refs ---- */

static serve_ref_kind kind_of(const char **name)
{
    const char *full = *name;
    if (!strncmp(full, "refs/heads/", 11)) return *name += 11, SERVE_BRANCH;
    if (!strncmp(full, "refs/tags/", 10)) return *name += 10, SERVE_TAG;
    return SERVE_OTHER_REF;
}

static int add_reference(serve_look *look, git_reference *reference, khub_error *err)
{
    const char *name = git_reference_name(reference);
    serve_ref_kind kind = kind_of(&name);
    git_object *commit = NULL;
    char hex[41];
    if (!serve_is_path(name) || git_reference_peel(&commit, reference, GIT_OBJECT_COMMIT) != 0)
        return KHUB_OK;
    git_oid_tostr(hex, sizeof(hex), git_object_id(commit));
    git_object_free(commit);
    return serve_refs_add(look->refs, name, hex, kind, err);
}

static int look_git(serve_look *look, const char *where, serve_kind kind, khub_error *err)
{
    (void)kind;
    git_repository *repository = NULL;
    git_reference_iterator *all = NULL;
    git_reference *reference;
    int rc = open_git(&repository, where, err);
    if (rc == KHUB_OK && git_reference_iterator_new(&all, repository) != 0)
        rc = khub__fail(err, KHUB_E_FORMAT, "%s: %s", where, words());
    while (rc == KHUB_OK && git_reference_next(&reference, all) == 0) {
        rc = add_reference(look, reference, err);
        git_reference_free(reference);
    }
    git_reference_iterator_free(all);
    git_repository_free(repository);
    return rc;
}

/* ---- the files of a commit ---- */

typedef struct git_source {
    serve_source source; /* first */
    git_repository *repository;
    pthread_mutex_t lock; /* of the repository: libgit2's objects are used by one thread at a time */
} git_source;

static int read_git(char **data, size_t *bytes, serve_source *source, const char *hex, khub_error *err)
{
    git_source *self = (git_source *)source;
    git_oid oid;
    git_blob *blob = NULL;
    int rc = KHUB_OK;
    pthread_mutex_lock(&self->lock);
    if (git_oid_fromstr(&oid, hex) != 0 || git_blob_lookup(&blob, self->repository, &oid) != 0)
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: %s", hex, words());
    if (rc == KHUB_OK) {
        *bytes = (size_t)git_blob_rawsize(blob);
        *data = malloc(*bytes + 1);
        if (!*data) rc = khub__fail_memory(err, "reading a blob");
    }
    if (rc == KHUB_OK && *bytes) memcpy(*data, git_blob_rawcontent(blob), *bytes);
    git_blob_free(blob);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

static void close_git(serve_source *source)
{
    git_source *self = (git_source *)source;
    git_repository_free(self->repository);
    pthread_mutex_destroy(&self->lock);
    khub__free(self);
}

typedef struct tree_walk {
    serve_listing *listing;
    git_repository *repository;
    git_odb *objects;
    const char *where;
    khub_error *err;
    int rc;
} tree_walk;

/* Makes the entry of a pointer the entry of the LFS object that it points to, which may not be there. */
static void follow_pointer(serve_entry *entry, char path[PATH_SIZE], const tree_walk *walk,
                           const git_oid *oid)
{
    git_blob *blob = NULL;
    uint64_t size;
    if (git_blob_lookup(&blob, walk->repository, oid) != 0) return;
    if (serve_pointer_read(entry->names.sha256, &size, git_blob_rawcontent(blob),
                           (size_t)git_blob_rawsize(blob)) == 0) {
        const char *name = entry->names.sha256;
        entry->size = size;
        snprintf(path, PATH_SIZE, "%s/lfs/objects/%.2s/%.2s/%s", walk->where, name, name + 2, name);
        entry->where = path;
    }
    git_blob_free(blob);
}

/* One entry of the commit's tree. Links, and other repositories inside, aren't served. */
static int add_tree_entry(const char *folder, const git_tree_entry *found, void *self)
{
    tree_walk *walk = self;
    char path[PATH_SIZE], object[PATH_SIZE];
    git_filemode_t mode = git_tree_entry_filemode(found);
    git_object_t type;
    size_t size = 0;
    if (mode != GIT_FILEMODE_BLOB && mode != GIT_FILEMODE_BLOB_EXECUTABLE) return 0;
    if (snprintf(path, sizeof(path), "%s%s", folder, git_tree_entry_name(found)) >= PATH_SIZE ||
        !serve_is_path(path))
        return 0;
    const git_oid *oid = git_tree_entry_id(found);
    if (git_odb_read_header(&size, &type, walk->objects, oid) != 0) {
        walk->rc = khub__fail(walk->err, KHUB_E_FORMAT, "%s: %s: %s", walk->where, path, words());
        return -1;
    }
    serve_entry entry = {.path = path, .size = size};
    git_oid_tostr(entry.names.oid, sizeof(entry.names.oid), oid);
    if (size < POINTER_MAX) follow_pointer(&entry, object, walk, oid);
    walk->rc = serve_listing_add(walk->listing, &entry, walk->err);
    return walk->rc == KHUB_OK ? 0 : -1;
}

/* git's own names for the folders. */
static void name_folders(serve_listing *listing, const git_tree *tree)
{
    for (size_t i = 0; i < listing->count; i++) {
        git_tree_entry *found = NULL;
        if (!listing->entries[i].directory) continue;
        if (git_tree_entry_bypath(&found, tree, listing->entries[i].path) == 0)
            git_oid_tostr(listing->entries[i].names.oid, 41, git_tree_entry_id(found));
        git_tree_entry_free(found);
    }
}

static int add_tree(serve_listing *listing, git_repository *repository, const git_tree *tree,
                    const char *where, khub_error *err)
{
    tree_walk walk = {listing, repository, NULL, where, err, KHUB_OK};
    if (git_repository_odb(&walk.objects, repository) != 0)
        return khub__fail(err, KHUB_E_FORMAT, "%s: %s", where, words());
    if (git_tree_walk(tree, GIT_TREEWALK_PRE, add_tree_entry, &walk) != 0 && walk.rc == KHUB_OK)
        walk.rc = khub__fail(err, KHUB_E_FORMAT, "%s: %s", where, words());
    git_odb_free(walk.objects);
    if (walk.rc == KHUB_OK) walk.rc = serve_listing_close(listing, err);
    if (walk.rc == KHUB_OK) name_folders(listing, tree);
    return walk.rc;
}

/* Takes over the repository. */
static int new_source(serve_source **out, git_repository *repository, khub_error *err)
{
    git_source *made = khub__calloc(1, sizeof(*made));
    if (!made) {
        git_repository_free(repository);
        return khub__fail_memory(err, "reading a repository");
    }
    made->source.read = read_git;
    made->source.close = close_git;
    made->repository = repository;
    pthread_mutex_init(&made->lock, NULL);
    *out = &made->source;
    return KHUB_OK;
}

static int fill(serve_listing *listing, const char *where, const char *hex, khub_error *err)
{
    git_repository *repository = NULL;
    git_commit *commit = NULL;
    git_tree *tree = NULL;
    git_oid oid;
    int rc = open_git(&repository, where, err);
    if (rc == KHUB_OK) rc = new_source(&listing->source, repository, err);
    if (rc != KHUB_OK) return rc;
    if (git_oid_fromstr(&oid, hex) != 0 || git_commit_lookup(&commit, repository, &oid) != 0)
        return khub__fail(err, KHUB_E_NOTFOUND, "%s: has no commit %s", where, hex);
    rc = git_commit_tree(&tree, commit) == 0 ? add_tree(listing, repository, tree, where, err)
                                             : khub__fail(err, KHUB_E_FORMAT, "%s: %s", where, words());
    git_tree_free(tree);
    git_commit_free(commit);
    return rc;
}

static int list_git(serve_listing **out, const char *where, const char *commit, khub_error *err)
{
    int rc = serve_listing_new(out, err);
    if (rc != KHUB_OK) return rc;
    snprintf((*out)->commit, sizeof((*out)->commit), "%s", commit);
    rc = fill(*out, where, commit, err);
    if (rc == KHUB_OK) return rc;
    serve_listing_free(*out);
    *out = NULL;
    return rc;
}

const serve_layout serve_layout_git = {.is = is_git, .look = look_git, .list = list_git};
