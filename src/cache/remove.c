/* Removing what isn't wanted any more. The order keeps what is seen whole: refs before the snapshot that they
 * name, a snapshot at once, a blob after the last snapshot that showed it. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "cache/layout.h"
#include "cache/link.h"
#include "cache/lock.h"
#include "cache/take_out.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64 }; /* locks that are held at once, each an open file */

/* What goes of one repository. */
typedef struct plan {
    const khub_cache *cache;
    const khub__cached_repo *repo;
    const unsigned char *chosen; /* for each snapshot of the cache: 1 goes */
    size_t left;                 /* snapshots of the repository that stay */
    unsigned char *gone;         /* for each blob: 1 goes */
    int unused;                  /* 1: blobs that no snapshot shows and partial downloads go too */
    int dry_run;
    khub_removed *removed;
    khub_pruned_fn gone_fn; /* NULL: nobody wants to know */
    void *user;
} plan;

static int is_of(const plan *p, const khub__cached_snapshot *snapshot)
{
    return &p->cache->repos[snapshot->repo] == p->repo;
}

/* Marks the blobs that only chosen snapshots show. */
static void choose_blobs(plan *p)
{
    for (size_t i = 0; i < p->repo->blob_count; i++)
        p->gone[i] = p->repo->blobs[i].shown > 0 || p->unused;
    for (size_t i = 0; i < p->cache->snapshot_count; i++) {
        const khub__cached_snapshot *snapshot = &p->cache->snapshots[i];
        if (!is_of(p, snapshot) || p->chosen[i]) continue;
        for (size_t k = 0; k < snapshot->revision.file_count; k++)
            if (snapshot->files[k].blob != KHUB__NO_BLOB) p->gone[snapshot->files[k].blob] = 0;
    }
}

static int take_out_receipts(const khub__store *store, const char *commit, khub_error *err)
{
    char **names = NULL;
    size_t count = 0;
    int rc = khub__dir_list(&names, &count, store->folder, err);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++)
        if (khub__layout_is_receipt_of(names[i], commit)) rc = khub__take_out_file(store, names[i], err);
    khub__free(names);
    return rc;
}

static int take_out_snapshot(const plan *p, const khub_cached_revision *revision, khub_error *err)
{
    khub__store store = khub__scan_store(p->cache, p->repo);
    char path[KHUB__LAYOUT_MAX];
    int rc = KHUB_OK;
    for (const char *const *ref = revision->refs; rc == KHUB_OK && *ref; ref++)
        rc = khub__take_out_ref(&store, *ref, revision->commit, err);
    snprintf(path, sizeof(path), "snapshots/%s", revision->commit);
    if (rc == KHUB_OK) rc = khub__take_out_tree(&store, path, err);
    snprintf(path, sizeof(path), ".no_exist/%s", revision->commit);
    if (rc == KHUB_OK) rc = khub__take_out_tree(&store, path, err);
    if (rc == KHUB_OK) rc = take_out_receipts(&store, revision->commit, err);
    snprintf(path, sizeof(path), "trees/%s.json", revision->commit);
    if (rc == KHUB_OK) rc = khub__take_out_file(&store, path, err);
    snprintf(path, sizeof(path), "moved/%s", revision->commit);
    if (rc == KHUB_OK) rc = khub__take_out_file(&store, path, err);
    return rc;
}

static int remove_snapshot(const plan *p, const khub__cached_snapshot *snapshot, khub_error *err)
{
    const khub_cached_revision *revision = &snapshot->revision;
    int rc = p->dry_run ? KHUB_OK : take_out_snapshot(p, revision, err);
    if (rc != KHUB_OK) return rc;
    p->removed->revisions++;
    for (size_t k = 0; k < revision->file_count; k++) /* copies go with it */
        if (!snapshot->files[k].is_link) p->removed->bytes += snapshot->files[k].size;
    if (p->gone_fn) p->gone_fn(p->user, revision);
    return KHUB_OK;
}

/* Some blobs whose locks we hold. Who brings a blob or links to one holds its lock until the link is made, so
 * that what no snapshot shows now isn't about to be shown. */
typedef struct batch {
    const plan *p;
    const khub__cached_blob *blob[BATCH];
    khub__lock lock[BATCH];
    int shown[BATCH];
    size_t count;
} batch;

static int see_link(void *user, const khub__walked *entry, khub_error *err)
{
    batch *b = user;
    (void)err;
    const char *name = entry->is_link ? khub__link_blob(b->p->repo->path, entry->full, entry->target) : NULL;
    for (size_t i = 0; i < b->count; i++) {
        const char *blob = b->blob[i]->name;
        if (name ? !strcmp(name, blob)
                 : entry->is_link && khub__scan_same(b->p->repo->path, blob, entry->full))
            b->shown[i] = 1;
    }
    return KHUB_OK;
}

static int remove_blob(const plan *p, const khub__cached_blob *blob, khub_error *err)
{
    khub__store store = khub__scan_store(p->cache, p->repo);
    char path[KHUB__LAYOUT_MAX];
    snprintf(path, sizeof(path), "blobs/%.300s", blob->name);
    int rc = khub__take_out_file(&store, path, err);
    if (rc != KHUB_OK) return rc;
    p->removed->blobs++;
    p->removed->bytes += blob->bytes;
    return KHUB_OK;
}

/* Removes what of the batch isn't shown, and gives the locks back. */
static int empty_batch(batch *b, khub_error *err)
{
    char snapshots[4096];
    snprintf(snapshots, sizeof(snapshots), "%s/snapshots", b->p->repo->path);
    int rc = b->count ? khub__walk(snapshots, see_link, b, err) : KHUB_OK;
    for (size_t i = 0; i < b->count; i++) {
        if (rc == KHUB_OK && !b->shown[i]) rc = remove_blob(b->p, b->blob[i], err);
        khub__lock_release(&b->lock[i], 1);
    }
    b->count = 0;
    return rc;
}

/* One that another process is bringing, or linking to, stays. */
static int add_to_batch(batch *b, const khub__cached_blob *blob, khub_error *err)
{
    khub__store store = khub__scan_store(b->p->cache, b->p->repo);
    khub__lock *lock = &b->lock[b->count];
    *lock = (khub__lock){.fd = -1};
    int rc = khub__lock_try(lock, &store, blob->name, err);
    if (rc != 0) {
        khub__lock_release(lock, 0);
        return rc < 0 ? rc : KHUB_OK;
    }
    b->blob[b->count] = blob;
    b->shown[b->count++] = 0;
    return b->count == BATCH ? empty_batch(b, err) : KHUB_OK;
}

static int remove_blobs(plan *p, khub_error *err)
{
    batch b = {.p = p};
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < p->repo->blob_count; i++) {
        const khub__cached_blob *blob = &p->repo->blobs[i];
        if (!p->gone[i]) continue;
        if (!p->dry_run) {
            rc = add_to_batch(&b, blob, err);
        } else {
            p->removed->blobs++;
            p->removed->bytes += blob->bytes;
        }
    }
    int end = empty_batch(&b, rc == KHUB_OK ? err : NULL);
    return rc == KHUB_OK ? end : rc;
}

/* "ETAG" of ETAG.RANDOM.incomplete or ETAG.incomplete: who writes it holds the lock of that name. */
static int remove_partial(plan *p, const char *name, khub_error *err)
{
    char etag[256], path[KHUB__LAYOUT_MAX];
    khub__store store = khub__scan_store(p->cache, p->repo);
    khub__lock lock = {.fd = -1};
    snprintf(etag, sizeof(etag), "%.*s", (int)strcspn(name, "."), name);
    snprintf(path, sizeof(path), "blobs/%.300s", name);
    int rc = khub__lock_try(&lock, &store, etag, err);
    uint64_t bytes = 0;
    if (rc == 0) {
        bytes = khub__scan_size(&store, path);
        if (!p->dry_run) khub__lock_write_note(&lock, "");
        rc = p->dry_run ? KHUB_OK : khub__take_out_file(&store, path, err);
        if (rc == KHUB_OK) p->removed->bytes += bytes;
        if (rc == KHUB_OK) p->removed->partial_downloads++;
    }
    khub__lock_release(&lock, 1);
    return rc < 0 ? rc : KHUB_OK;
}

/* What is left of a repository without snapshots, if nothing of it is being fetched: a small file that comes
 * may have no name, so that its folder looks empty. */
static int remove_rest(const plan *p, khub_error *err)
{
    khub__store store = khub__scan_store(p->cache, p->repo);
    int busy = p->dry_run ? 0 : khub__lock_any_held(&store, err);
    if (busy) return busy < 0 ? busy : KHUB_OK;
    int rc = p->dry_run ? 1 : khub__take_out_folder(&store, err);
    p->removed->repositories += rc == 1;
    return rc < 0 ? rc : KHUB_OK;
}

static int carry_out(plan *p, khub_error *err)
{
    int rc = KHUB_OK;
    if (p->repo->linked) return KHUB_OK; /* the cache's warning says so */
    p->gone = khub__malloc(p->repo->blob_count);
    if (!p->gone) return khub__fail_memory(err, "removing from the cache");
    p->left = 0;
    for (size_t i = 0; i < p->cache->snapshot_count; i++)
        p->left += is_of(p, &p->cache->snapshots[i]) && !p->chosen[i];
    if (!p->left) p->unused = 1;
    choose_blobs(p);
    for (size_t i = 0; rc == KHUB_OK && i < p->cache->snapshot_count; i++)
        if (p->chosen[i] && is_of(p, &p->cache->snapshots[i]))
            rc = remove_snapshot(p, &p->cache->snapshots[i], err);
    if (rc == KHUB_OK) rc = remove_blobs(p, err);
    for (size_t i = 0; rc == KHUB_OK && p->unused && p->repo->partials[i]; i++)
        rc = remove_partial(p, p->repo->partials[i], err);
    khub__store store = khub__scan_store(p->cache, p->repo);
    if (rc == KHUB_OK && p->unused && !p->dry_run) rc = khub__take_out_drafts(&store, err);
    if (rc == KHUB_OK && !p->left) rc = remove_rest(p, err);
    khub__free(p->gone);
    return rc;
}

static const khub__cached_repo *find_repo(const khub_cache *cache, const char *kind, const char *id,
                                          khub_error *err)
{
    const char *other = NULL;
    for (size_t i = 0; i < cache->repo_count; i++) {
        if (strcmp(cache->repos[i].id, id) != 0) continue;
        if (!strcmp(cache->repos[i].kind, kind)) return &cache->repos[i];
        other = cache->repos[i].kind;
    }
    if (other)
        khub__fail(err, KHUB_E_NOTFOUND, "%s: is in the cache as a %s, not as a %s", id, other, kind);
    else
        khub__fail(err, KHUB_E_NOTFOUND, "%s: no such %s is in the cache (%s)", id, kind, cache->path);
    return NULL;
}

int khub_cache_remove(khub_removed *removed, const khub_cache *cache, const char *kind,
                      const char *repository, const char *commit, int dry_run, khub_error *err)
{
    memset(removed, 0, sizeof(*removed));
    const khub__cached_repo *repo = find_repo(cache, kind, repository, err);
    if (!repo) return KHUB_E_NOTFOUND;
    if (repo->linked)
        return khub__fail(err, KHUB_E_IO,
                          "%s: is a link where the cache has a directory, and nothing is removed through it; "
                          "remove the link itself first",
                          repo->linked);
    unsigned char *chosen = khub__calloc(cache->snapshot_count + 1, 1);
    if (!chosen) return khub__fail_memory(err, "removing from the cache");
    plan p = {.cache = cache, .repo = repo, .chosen = chosen, .dry_run = dry_run, .removed = removed};
    size_t found = 0;
    for (size_t i = 0; i < cache->snapshot_count; i++) {
        chosen[i] = is_of(&p, &cache->snapshots[i]) &&
                    (!commit || !strcmp(cache->snapshots[i].revision.commit, commit));
        found += chosen[i];
    }
    int rc = commit && !found
                 ? khub__fail(err, KHUB_E_NOTFOUND, "%s: there is no snapshot of %s in the cache (%s)",
                              repository, commit, cache->path)
                 : carry_out(&p, err);
    khub__free(chosen);
    return rc;
}

int khub_cache_prune(khub_removed *removed, const khub_cache *cache, int dry_run, khub_pruned_fn fn,
                     void *user, khub_error *err)
{
    memset(removed, 0, sizeof(*removed));
    unsigned char *chosen = khub__calloc(cache->snapshot_count + 1, 1);
    if (!chosen) return khub__fail_memory(err, "pruning the cache");
    for (size_t i = 0; i < cache->snapshot_count; i++)
        chosen[i] = cache->snapshots[i].revision.refs[0] == NULL &&
                    !cache->repos[cache->snapshots[i].repo].refs_unknown;
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < cache->repo_count; i++) {
        khub__store store = khub__scan_store(cache, &cache->repos[i]);
        int busy = khub__lock_any_held(&store, err); /* its ref may come at the end of the fetch */
        if (busy < 0) rc = busy;
        for (size_t k = 0; busy > 0 && k < cache->snapshot_count; k++)
            chosen[k] &= cache->snapshots[k].repo != i;
        plan p = {.cache = cache,
                  .repo = &cache->repos[i],
                  .chosen = chosen,
                  .unused = 1,
                  .dry_run = dry_run,
                  .removed = removed,
                  .gone_fn = fn,
                  .user = user};
        if (rc == KHUB_OK) rc = carry_out(&p, err);
    }
    khub__free(chosen);
    return rc;
}
