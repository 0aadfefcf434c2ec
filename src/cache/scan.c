/* Reads a whole cache. */
#include "cache/scan.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "cache/disk.h"
#include "cache/layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "reading the cache");
}

int khub__scan_warn(khub_cache *cache, khub_error *err, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char *kept = khub__pool_text(&cache->pool, text);
    if (!kept || khub__grow((void **)&cache->warnings, &cache->warning_capacity, cache->warning_count + 1,
                            sizeof(*cache->warnings), KHUB__SCAN_MAX))
        return no_memory(err);
    cache->warnings[cache->warning_count++] = kept;
    return KHUB_OK;
}

khub__store khub__scan_store(const khub_cache *cache, const khub__cached_repo *repo)
{
    khub__store store = {.cache = (char *)cache->path, .folder = (char *)repo->path};
    snprintf(store.repo.id, sizeof(store.repo.id), "%s", repo->id);
    return store;
}

/* "ORG--NAME" as "ORG/NAME". */
static const char *id_of(khub__pool *pool, const char *name)
{
    khub__text text = {0};
    for (const char *at = name; *at;) {
        int dashes = !strncmp(at, "--", 2);
        khub__text_add_bytes(&text, dashes ? "/" : at, 1);
        at += 1 + dashes;
    }
    const char *id = text.failed ? NULL : khub__pool_text(pool, text.data);
    if (!id) pool->failed = 1;
    khub__text_free(&text);
    return id;
}

static int take_folder(khub_cache *cache, const char *folder, khub_error *err)
{
    static const char *const known[] = {".locks", "CACHEDIR.TAG", ".DS_Store", "Thumbs.db", "desktop.ini"};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(folder, known[i])) return KHUB_OK;
    const char *name, *kind = khub__layout_kind(&name, folder);
    char *full = khub__path_join(cache->path, folder);
    if (!full) return no_memory(err);
    int is_directory = khub__file_kind(full) == KHUB__FILE_DIRECTORY, rc = KHUB_OK;
    if (!kind || !is_directory) {
        if (strcmp(folder, "blobs") != 0 || !khub__scan_shared(&cache->bytes, full))
            rc = khub__scan_warn(cache, err, "%s: is no repository of a cache; it is left alone", full);
    } else {
        khub__cached_repo *repo = &cache->repos[cache->repo_count++]; /* there is room for each folder */
        *repo = (khub__cached_repo){.kind = kind, .id = id_of(&cache->pool, name)};
        repo->path = khub__pool_text(&cache->pool, full);
        rc = cache->pool.failed ? no_memory(err) : khub__scan_repo(cache, repo, err);
    }
    khub__free(full);
    return rc;
}

static int by_kind_and_name(const void *a, const void *b)
{
    const khub_cached_revision *x = &((const khub__cached_snapshot *)a)->revision;
    const khub_cached_revision *y = &((const khub__cached_snapshot *)b)->revision;
    int order = strcmp(x->kind, y->kind);
    if (!order) order = strcmp(x->repository, y->repository);
    return order ? order : strcmp(x->commit, y->commit);
}

static int read_all(khub_cache *cache, khub_error *err)
{
    char **names = NULL;
    size_t count = 0;
    int rc = khub__disk_check_cache(cache->path, err);
    if (rc == KHUB_OK && khub__file_kind(cache->path) == KHUB__FILE_NONE) return KHUB_OK;
    if (rc == KHUB_OK) rc = khub__dir_list(&names, &count, cache->path, err);
    if (rc == KHUB_OK && khub__grow((void **)&cache->repos, &cache->repo_capacity, count,
                                    sizeof(*cache->repos), KHUB__SCAN_MAX))
        rc = no_memory(err);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++)
        rc = take_folder(cache, names[i], err);
    if (cache->snapshot_count)
        qsort(cache->snapshots, cache->snapshot_count, sizeof(*cache->snapshots), by_kind_and_name);
    khub__free(names);
    return rc;
}

int khub_cache_read(khub_cache **out, const char *cache_dir, khub_error *err)
{
    *out = NULL;
    char *dir;
    int rc = khub_cache_dir(&dir, cache_dir, err);
    if (rc != KHUB_OK) return rc;
    khub_cache *cache = khub__calloc(1, sizeof(*cache));
    if (cache) cache->path = khub__pool_text(&cache->pool, dir);
    khub__free(dir);
    if (!cache || !cache->path)
        rc = no_memory(err);
    else
        rc = read_all(cache, err);
    if (rc == KHUB_OK)
        *out = cache;
    else
        khub_cache_free(cache);
    return rc;
}

void khub_cache_free(khub_cache *cache)
{
    if (!cache) return;
    khub__free(cache->repos);
    khub__free(cache->snapshots);
    khub__free(cache->warnings);
    khub__pool_free(&cache->pool);
    khub__free(cache);
}

const khub_cached_revision *khub_cache_at(const khub_cache *cache, size_t i)
{
    return i < cache->snapshot_count ? &cache->snapshots[i].revision : NULL;
}

const char *khub_cache_warning(const khub_cache *cache, size_t i)
{
    return i < cache->warning_count ? cache->warnings[i] : NULL;
}

const char *khub_cache_path(const khub_cache *cache)
{
    return cache->path;
}

uint64_t khub_cache_bytes(const khub_cache *cache)
{
    return cache->bytes;
}
