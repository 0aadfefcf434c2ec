/* Reads one repository of a cache. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "cache/link.h"
#include "cache/scan.h"

#include <stdlib.h>

/* One repository while it is read. */
typedef struct scan {
    khub_cache *cache;
    khub__cached_repo *repo;
    khub__cached_file *files; /* of the snapshot at hand */
    size_t file_count, file_capacity;
    char **refs;
    char (*commits)[KHUB__COMMIT_MAX + 1]; /* that the refs name; "" for one that can't be read */
    size_t ref_count;
} scan;

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "reading the cache");
}

/* What can't be read is a warning, not the end; only memory is. */
static int tolerate(khub_cache *cache, int rc, const khub_error *why, khub_error *err)
{
    if (rc == KHUB_OK) return rc;
    return rc == KHUB_E_NOMEM ? no_memory(err) : khub__scan_warn(cache, err, "%s", why->message);
}

static int is_partial(const char *name)
{
    size_t n = strlen(name);
    return n > 11 && !strcmp(name + n - 11, ".incomplete");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const khub__cached_blob *)a)->name, ((const khub__cached_blob *)b)->name);
}

static khub__cached_blob *find_blob(const khub__cached_repo *repo, const char *name)
{
    const khub__cached_blob key = {.name = name};
    if (!name || !repo->blob_count) return NULL;
    return bsearch(&key, repo->blobs, repo->blob_count, sizeof(key), by_name);
}

/* Room for the entries of blobs/, then each of them. */
typedef struct blob_list {
    scan *s;
    size_t room, partials;
    const char **partial;
} blob_list;

static int count_entry(void *user, const khub__walked *entry, khub_error *err)
{
    (void)entry;
    (void)err;
    ((blob_list *)user)->room++;
    return KHUB_OK;
}

static int take_blob(void *user, const khub__walked *entry, khub_error *err)
{
    blob_list *list = user;
    khub__cached_repo *repo = list->s->repo;
    if (entry->is_directory)
        return khub__scan_warn(list->s->cache, err, "%s: is a directory among blobs", entry->full);
    if (repo->blob_count + list->partials >= list->room) return KHUB_OK; /* came while we read */
    const char *name = khub__pool_text(&list->s->cache->pool, entry->path);
    if (!name) return no_memory(err);
    if (is_partial(name)) {
        list->partial[list->partials++] = name;
        return KHUB_OK;
    }
    khub__cached_blob *blob = &repo->blobs[repo->blob_count++];
    *blob = (khub__cached_blob){name, entry->size, entry->size, entry->read, entry->written, 0, 0};
    if (!entry->is_link) {
        list->s->cache->bytes += blob->bytes;
        return KHUB_OK;
    }
    blob->bytes = 0;
    return khub__scan_follow(blob, entry->full) == 0
               ? KHUB_OK
               : khub__scan_warn(list->s->cache, err, "%s: a blob that is a link to what isn't there",
                                 entry->full);
}

static int read_blobs(scan *s, khub_error *err)
{
    blob_list list = {.s = s};
    khub_error why = {0};
    char *dir = khub__path_join(s->repo->path, "blobs");
    if (!dir) return no_memory(err);
    int rc = tolerate(s->cache, khub__walk(dir, count_entry, &list, &why), &why, err);
    s->repo->blobs = khub__pool_take(&s->cache->pool, list.room, sizeof(*s->repo->blobs));
    s->repo->partials = list.partial = khub__pool_take(&s->cache->pool, list.room + 1, sizeof(char *));
    memset(&why, 0, sizeof(why));
    if (rc == KHUB_OK && s->cache->pool.failed) rc = no_memory(err);
    if (rc == KHUB_OK) rc = tolerate(s->cache, khub__walk(dir, take_blob, &list, &why), &why, err);
    if (rc == KHUB_OK && s->repo->blob_count)
        qsort(s->repo->blobs, s->repo->blob_count, sizeof(*s->repo->blobs), by_name);
    khub__free(dir);
    return rc;
}

/* A ref that is gone or empty names nothing; one that can't be read may name any revision. */
static int see_ref(scan *s, int rc, const khub_error *why, khub_error *err)
{
    if (rc != KHUB_OK && rc != KHUB_E_NOTFOUND) s->repo->refs_unknown = 1;
    return tolerate(s->cache, rc, why, err);
}

static int list_refs(scan *s, const khub__store *store, khub_error *why)
{
    char *dir = khub__path_join(s->repo->path, "refs");
    enum khub__file_kind kind = dir ? khub__file_kind(dir) : KHUB__FILE_NONE;
    int rc = dir ? khub__store_refs(&s->refs, &s->ref_count, store, why) : KHUB_E_NOMEM;
    if (rc == KHUB_OK && kind != KHUB__FILE_NONE && kind != KHUB__FILE_DIRECTORY)
        rc = khub__fail(why, KHUB_E_FORMAT, "%s: isn't a directory", dir);
    khub__free(dir);
    return rc;
}

static int read_refs(scan *s, khub_error *err)
{
    khub_error why = {0};
    khub__store store = khub__scan_store(s->cache, s->repo);
    int rc = see_ref(s, list_refs(s, &store, &why), &why, err);
    s->commits = rc == KHUB_OK ? khub__calloc(s->ref_count, sizeof(*s->commits)) : NULL;
    if (rc == KHUB_OK && !s->commits) return no_memory(err);
    for (size_t i = 0; rc == KHUB_OK && i < s->ref_count; i++) {
        memset(&why, 0, sizeof(why));
        rc = see_ref(s, khub__store_ref(s->commits[i], NULL, &store, s->refs[i], &why), &why, err);
    }
    return rc;
}

/* The blob that a link shows: by its words, or, for one in other words, by being the same file. */
static khub__cached_blob *blob_of(const scan *s, const khub__walked *entry)
{
    const char *name = khub__link_blob(s->repo->path, entry->full, entry->target);
    if (name) return find_blob(s->repo, name);
    khub__cached_blob *blob = find_blob(s->repo, khub__path_name(entry->target));
    return blob && khub__scan_same(s->repo->path, blob->name, entry->full) ? blob : NULL;
}

static void see_times(khub_cached_revision *revision, int64_t read, int64_t written)
{
    if (read > revision->last_used) revision->last_used = read;
    if (written > revision->last_modified) revision->last_modified = written;
}

static int take_file(void *user, const khub__walked *entry, khub_error *err)
{
    scan *s = user;
    if (entry->is_directory) return KHUB_OK;
    if (khub__grow((void **)&s->files, &s->file_capacity, s->file_count + 1, sizeof(*s->files),
                   KHUB__SCAN_MAX))
        return no_memory(err);
    khub__cached_file *file = &s->files[s->file_count];
    *file = (khub__cached_file){.blob = KHUB__NO_BLOB, .is_link = entry->is_link, .size = entry->size};
    file->path = khub__pool_text(&s->cache->pool, entry->path);
    if (entry->is_link) file->target = khub__pool_text(&s->cache->pool, entry->target);
    if (s->cache->pool.failed) return no_memory(err);
    s->file_count++;
    khub__cached_snapshot *snapshot = &s->cache->snapshots[s->cache->snapshot_count - 1];
    if (!entry->is_link) {
        snapshot->revision.bytes += entry->size;
        snapshot->revision.own_bytes += entry->size;
        s->cache->bytes += entry->size;
        see_times(&snapshot->revision, entry->read, entry->written);
        return KHUB_OK;
    }
    khub__cached_blob *blob = blob_of(s, entry);
    if (!blob)
        return khub__scan_warn(s->cache, err, "%s: shows %s, which is no blob of this repository",
                               entry->full, entry->target);
    file->blob = blob - s->repo->blobs;
    if (blob->counted == s->cache->snapshot_count) return KHUB_OK; /* by another path */
    blob->counted = s->cache->snapshot_count;
    blob->shown++;
    snapshot->revision.bytes += blob->size;
    see_times(&snapshot->revision, blob->read, blob->written);
    return KHUB_OK;
}

static int name_refs(scan *s, khub_cached_revision *revision, khub_error *err)
{
    const char **refs = khub__pool_take(&s->cache->pool, s->ref_count + 1, sizeof(*refs));
    size_t n = 0;
    for (size_t i = 0; refs && i < s->ref_count; i++)
        if (!strcmp(s->commits[i], revision->commit))
            refs[n++] = khub__pool_text(&s->cache->pool, s->refs[i]);
    revision->refs = refs;
    return s->cache->pool.failed ? no_memory(err) : KHUB_OK;
}

static int read_snapshot(scan *s, const char *commit, khub_error *err)
{
    khub_cache *cache = s->cache;
    if (khub__grow((void **)&cache->snapshots, &cache->snapshot_capacity, cache->snapshot_count + 1,
                   sizeof(*cache->snapshots), KHUB__SCAN_MAX))
        return no_memory(err);
    khub__cached_snapshot *snapshot = &cache->snapshots[cache->snapshot_count++];
    memset(snapshot, 0, sizeof(*snapshot));
    khub_cached_revision *revision = &snapshot->revision;
    snapshot->repo = (size_t)(s->repo - cache->repos);
    revision->kind = s->repo->kind;
    revision->repository = s->repo->id;
    revision->commit = khub__pool_text(&cache->pool, commit);
    revision->path = khub__pool_textf(&cache->pool, "%s/snapshots/%s", s->repo->path, commit);
    if (cache->pool.failed) return no_memory(err);
    int rc = name_refs(s, revision, err);
    khub_error why = {0};
    s->file_count = 0;
    if (rc == KHUB_OK) rc = tolerate(cache, khub__walk(revision->path, take_file, s, &why), &why, err);
    if (rc != KHUB_OK) return rc;
    snapshot->files = khub__pool_take(&cache->pool, s->file_count, sizeof(*snapshot->files));
    if (!snapshot->files) return no_memory(err);
    if (s->file_count) memcpy(snapshot->files, s->files, s->file_count * sizeof(*s->files));
    revision->file_count = s->file_count;
    if (!s->file_count) revision->last_modified = khub__scan_written(revision->path);
    return KHUB_OK;
}

/* Of the blobs that only this one shows. All snapshots of the repository are read by now. */
static void add_own_bytes(scan *s, khub__cached_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->revision.file_count; i++) {
        khub__cached_blob *blob =
            snapshot->files[i].blob == KHUB__NO_BLOB ? NULL : &s->repo->blobs[snapshot->files[i].blob];
        if (!blob || blob->shown != 1 || !blob->counted) continue;
        blob->counted = 0; /* each once */
        snapshot->revision.own_bytes += blob->bytes;
    }
}

static int read_snapshots(scan *s, khub_error *err)
{
    char **names = NULL, *dir = khub__path_join(s->repo->path, "snapshots");
    size_t count = 0, first = s->cache->snapshot_count;
    khub_error why = {0};
    int rc = dir ? khub__dir_list_dirs(&names, &count, dir, &why) : KHUB_E_NOMEM;
    rc = tolerate(s->cache, rc, &why, err);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++)
        rc = read_snapshot(s, names[i], err);
    for (size_t i = first; rc == KHUB_OK && i < s->cache->snapshot_count; i++)
        add_own_bytes(s, &s->cache->snapshots[i]);
    khub__free(names);
    khub__free(dir);
    return rc;
}

static int check_refs(scan *s, khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < s->ref_count; i++) {
        char *path = khub__path_join(s->repo->path, "snapshots"), *full = NULL;
        if (path) full = khub__path_join(path, s->commits[i]);
        if (!full)
            rc = no_memory(err);
        else if (s->commits[i][0] && khub__file_kind(full) != KHUB__FILE_DIRECTORY)
            rc = khub__scan_warn(s->cache, err, "%s/refs/%s: names %s, of which there is no snapshot",
                                 s->repo->path, s->refs[i], s->commits[i]);
        khub__free(path);
        khub__free(full);
    }
    return rc;
}

/* What is behind a link isn't the cache's to remove, and without it nobody knows which blobs are shown. */
static int see_link(scan *s, const char *directory, khub_error *err)
{
    char target[512];
    const char *full = khub__pool_textf(&s->cache->pool, "%s%s", s->repo->path, directory);
    if (!full) return no_memory(err);
    khub__file_link(target, sizeof(target), full);
    if (!target[0]) return KHUB_OK;
    s->repo->linked = full;
    return khub__scan_warn(
        s->cache, err,
        "%s: is a link (to %s) where the cache has a directory; nothing of this repository "
        "is removed",
        full, target);
}

static int see_links(scan *s, khub_error *err)
{
    static const char *const directories[] = {"",           "/blobs", "/moved", "/.no_exist",
                                              "/snapshots", "/refs",  "/trees"};
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < sizeof(directories) / sizeof(*directories); i++)
        rc = see_link(s, directories[i], err);
    return rc;
}

int khub__scan_repo(khub_cache *cache, khub__cached_repo *repo, khub_error *err)
{
    scan s = {.cache = cache, .repo = repo};
    int rc = see_links(&s, err);
    if (rc == KHUB_OK) rc = read_blobs(&s, err);
    if (rc == KHUB_OK) rc = read_refs(&s, err);
    if (rc == KHUB_OK) rc = read_snapshots(&s, err);
    if (rc == KHUB_OK) rc = check_refs(&s, err);
    khub__free(s.files);
    khub__free(s.refs);
    khub__free(s.commits);
    return rc;
}
