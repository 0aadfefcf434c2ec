/* Rehashes what is in the cache. */
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "cache/scan.h"

#include <stdio.h>

enum { DETAIL_MAX = 400 };

/* What was found about one content: a blob is read once, however many files show it. */
typedef struct finding {
    int known;
    khub_file_state state;
    char detail[DETAIL_MAX];
} finding;

typedef struct verifier {
    const khub_cache *cache;
    khub_verify_fn fn;
    void *user;
    finding *blobs; /* of the repository at hand */
    size_t bad;
} verifier;

/* Compares a file's content with the name that it should have. */
static int compare(finding *out, const char *path, const char *name, khub_error *err)
{
    khub__hash_kind kind;
    khub__stream file;
    khub__hash *hash = NULL;
    khub_error why = {0};
    char hex[KHUB__HASH_HEX_MAX + 1];
    *out = (finding){.known = 1, .state = KHUB_FILE_UNKNOWN};
    if (khub__hash_kind_of(&kind, name) != 0) {
        snprintf(out->detail, sizeof(out->detail), "\"%.100s\" isn't the name of a content", name);
        return KHUB_OK;
    }
    int rc = khub__stream_open(&file, path, &why);
    if (rc == KHUB_E_NOTFOUND) {
        out->state = KHUB_FILE_MISSING;
        snprintf(out->detail, sizeof(out->detail), "blob %s isn't there", name);
        return KHUB_OK;
    }
    if (rc == KHUB_E_FORMAT) { /* a pipe, a device, a directory */
        out->state = KHUB_FILE_CHANGED;
        snprintf(out->detail, sizeof(out->detail), "%.*s", DETAIL_MAX - 1, why.message);
        return KHUB_OK;
    }
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    rc = khub__hash_new(&hash, kind, file.size, err);
    if (rc == KHUB_OK) rc = khub__hash_stream(&hash, 1, &file, err);
    if (rc == KHUB_OK) {
        khub__hash_end(hash, hex);
        out->state = strcmp(hex, name) == 0 ? KHUB_FILE_GOOD : KHUB_FILE_CHANGED;
        if (out->state == KHUB_FILE_CHANGED)
            snprintf(out->detail, sizeof(out->detail), "the content hashes to %s, its name is %s", hex, name);
    }
    khub__hash_free(hash);
    khub__stream_close(&file);
    return rc;
}

static int judge_blob(verifier *v, finding *out, const khub__cached_repo *repo, long index, khub_error *err)
{
    finding *found = &v->blobs[index];
    int rc = KHUB_OK;
    if (!found->known) {
        khub_error why = {0};
        char path[4096];
        snprintf(path, sizeof(path), "%s/blobs/%s", repo->path, repo->blobs[index].name);
        rc = compare(found, path, repo->blobs[index].name, &why);
        if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    }
    *out = *found;
    return KHUB_OK;
}

/* A link is told by the blob's name, and by what the commit's list of files (if there is one) says that it
 * is. */
static int judge_link(verifier *v, finding *out, const khub__cached_repo *repo, const khub__cached_file *file,
                      const char *expected, khub_error *err)
{
    *out = (finding){.state = KHUB_FILE_MISSING};
    if (file->blob == KHUB__NO_BLOB) {
        snprintf(out->detail, sizeof(out->detail), "shows %.200s, which is no blob of this repository",
                 file->target);
        return KHUB_OK;
    }
    const char *name = repo->blobs[file->blob].name;
    if (expected && strcmp(name, expected) != 0) {
        out->state = KHUB_FILE_CHANGED;
        snprintf(out->detail, sizeof(out->detail), "shows blob %.80s, the commit's list of files says %s",
                 name, expected);
        return KHUB_OK;
    }
    return judge_blob(v, out, repo, file->blob, err);
}

static int judge_copy(finding *out, const khub_cached_revision *revision, const khub__cached_file *file,
                      const char *expected, khub_error *err)
{
    *out = (finding){.state = KHUB_FILE_UNKNOWN};
    if (!expected) {
        snprintf(out->detail, sizeof(out->detail), "nothing says what it should be");
        return KHUB_OK;
    }
    char *path = khub__path_join(revision->path, file->path);
    int rc = path ? compare(out, path, expected, err) : khub__fail_memory(err, "verifying the cache");
    khub__free(path);
    return rc;
}

static int verify_snapshot(verifier *v, const khub__cached_snapshot *snapshot, khub_error *err)
{
    const khub__cached_repo *repo = &v->cache->repos[snapshot->repo];
    const khub_cached_revision *revision = &snapshot->revision;
    khub__store store = khub__scan_store(v->cache, repo);
    khub__tree tree = {0};
    finding found;
    int rc =
        khub__is_commit(revision->commit) ? khub__store_tree(&tree, &store, revision->commit, NULL) : KHUB_OK;
    rc = rc == KHUB_E_NOMEM ? khub__fail_memory(err, "verifying the cache") : KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < revision->file_count; i++) {
        const khub__cached_file *file = &snapshot->files[i];
        const khub__tree_file *listed = khub__tree_find(&tree, file->path);
        const char *expected = listed ? khub__tree_etag(listed) : NULL;
        rc = file->is_link ? judge_link(v, &found, repo, file, expected, err)
                           : judge_copy(&found, revision, file, expected, err);
        if (rc != KHUB_OK) break;
        v->bad += found.state == KHUB_FILE_CHANGED || found.state == KHUB_FILE_MISSING;
        if (v->fn &&
            v->fn(v->user, revision, file->path, found.state, found.detail[0] ? found.detail : NULL) != 0)
            rc = khub__fail(err, KHUB_E_CANCELED, "verifying the cache was canceled");
    }
    khub__tree_free(&tree);
    return rc;
}

static int verify_repo(verifier *v, size_t repo, khub_error *err)
{
    v->blobs = khub__calloc(v->cache->repos[repo].blob_count, sizeof(*v->blobs));
    int rc = v->blobs ? KHUB_OK : khub__fail_memory(err, "verifying the cache");
    for (size_t i = 0; rc == KHUB_OK && i < v->cache->snapshot_count; i++)
        if (v->cache->snapshots[i].repo == repo) rc = verify_snapshot(v, &v->cache->snapshots[i], err);
    khub__free(v->blobs);
    return rc;
}

int khub_cache_verify(size_t *bad, const khub_cache *cache, const char *repository, khub_verify_fn fn,
                      void *user, khub_error *err)
{
    *bad = 0;
    verifier v = {.cache = cache, .fn = fn, .user = user};
    int rc = KHUB_OK, found = 0;
    for (size_t i = 0; rc == KHUB_OK && i < cache->repo_count; i++) {
        if (repository && strcmp(cache->repos[i].id, repository) != 0) continue;
        found = 1;
        rc = verify_repo(&v, i, err);
    }
    if (rc == KHUB_OK && repository && !found)
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: isn't in the cache (%s)", repository, cache->path);
    *bad = v.bad;
    return rc;
}
