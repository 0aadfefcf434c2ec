#include "kernel/lockfile.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#include <khub/kernel.h>

#include <stdio.h>

enum { LOCK_MAX_BYTES = 16 << 20, MAX_KERNELS = 100000 };

/* {"dependency": {"repo-id", "version" | "revision"}, "lock": {"commit"}} */
static int read_newer(char *name, size_t size, const char **commit, const json_t *entry,
                      const khub__json_source *source)
{
    const json_t *dependency = NULL, *lock = NULL;
    const char *id = NULL, *revision = NULL;
    int64_t version = -1;
    int rc = khub__json_object(&dependency, entry, "dependency", source);
    if (rc == KHUB_OK) rc = khub__json_object(&lock, entry, "lock", source);
    if (rc == KHUB_OK && dependency) rc = khub__json_string(&id, dependency, "repo-id", source);
    if (rc == KHUB_OK && dependency) rc = khub__json_string(&revision, dependency, "revision", source);
    if (rc == KHUB_OK && dependency) rc = khub__json_integer(&version, dependency, "version", source);
    if (rc == KHUB_OK && lock) rc = khub__json_string(commit, lock, "commit", source);
    if (rc != KHUB_OK || !id) return rc;
    if (version < -1)
        return khub__fail(source->err, KHUB_E_FORMAT, "%s: has version %lld, versions start at 0",
                          source->file, (long long)version);
    if (version >= 0)
        snprintf(name, size, "%s@v%lld", id, (long long)version);
    else
        snprintf(name, size, "%s%s%s", id, revision ? "@" : "", revision ? revision : "");
    return KHUB_OK;
}

/* {"repo_id", "sha", "variants"}: before version 0.17 of the Python package */
static int read_older(char *name, size_t size, const char **commit, const json_t *entry,
                      const khub__json_source *source)
{
    const char *id = NULL;
    int rc = khub__json_string(&id, entry, "repo_id", source);
    if (rc == KHUB_OK) rc = khub__json_string(commit, entry, "sha", source);
    if (rc == KHUB_OK && id) khub__copy(name, size, id);
    return rc;
}

static int read_entry(khub__lockfile *out, const json_t *entry, size_t i, khub_error *err)
{
    char where[4200], name[KHUB__REPO_ID_MAX + KHUB__REVISION_MAX + 3] = "";
    const char *commit = NULL;
    snprintf(where, sizeof(where), "%s: entry %zu", out->path, i);
    khub__json_source source = {where, err};
    if (!json_is_object(entry))
        return khub__fail(err, KHUB_E_FORMAT, "%s: is %s, an object is expected", where,
                          khub__json_type_name(entry));
    int rc = json_object_get(entry, "dependency") ? read_newer(name, sizeof(name), &commit, entry, &source)
                                                  : read_older(name, sizeof(name), &commit, entry, &source);
    if (rc != KHUB_OK) return rc;
    if (!*name || !commit)
        return khub__fail(err, KHUB_E_FORMAT, "%s: has no %s", where, *name ? "commit" : "repository");
    if (!khub__is_commit(commit))
        return khub__fail(err, KHUB_E_FORMAT, "%s: %.80s: \"%.80s\" is no commit (40 or 64 hex digits)",
                          where, name, commit);
    if (khub__grow((void **)&out->kernels, &out->capacity, out->count + 1, sizeof(*out->kernels),
                   MAX_KERNELS))
        return khub__fail_memory(err, "reading a lock");
    khub__locked *kernel = &out->kernels[out->count];
    khub_error why = {0};
    if (khub__wanted_parse(&kernel->wanted, KHUB__REPO_KERNEL, name, &why) != KHUB_OK)
        return khub__fail(err, KHUB_E_FORMAT, "%s: %s", where, why.message);
    khub__copy(kernel->commit, sizeof(kernel->commit), commit);
    out->count++;
    return KHUB_OK;
}

int khub__lockfile_read(khub__lockfile *out, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    json_t *entries = NULL;
    out->path = khub__strdup(path);
    int rc = out->path ? khub__json_read_array(&entries, path, LOCK_MAX_BYTES, err)
                       : khub__fail_memory(err, "reading a lock");
    for (size_t i = 0; rc == KHUB_OK && i < json_array_size(entries); i++)
        rc = read_entry(out, json_array_get(entries, i), i, err);
    json_decref(entries);
    if (rc != KHUB_OK) khub__lockfile_free(out);
    return rc;
}

void khub__lockfile_free(khub__lockfile *lock)
{
    khub__free(lock->kernels);
    khub__free(lock->path);
    memset(lock, 0, sizeof(*lock));
}

static int is_meant(const khub__wanted *there, const khub__wanted *wanted)
{
    if (strcmp(there->repo.id, wanted->repo.id) != 0) return 0;
    if (!*there->revision || !*wanted->revision || !strcmp(there->revision, wanted->revision)) return 1;
    return wanted->is_range && khub__range_has(&wanted->range, there->version);
}

const char *khub__lockfile_find(const khub__lockfile *lock, const khub__wanted *wanted)
{
    const khub__locked *best = NULL; /* of a range the highest version */
    for (size_t i = 0; i < lock->count; i++)
        if (is_meant(&lock->kernels[i].wanted, wanted) &&
            (!best || (wanted->is_range && lock->kernels[i].wanted.version > best->wanted.version)))
            best = &lock->kernels[i];
    return best ? best->commit : NULL;
}

int khub_lock_read(khub_locked_kernel **out, size_t *count, const char *path, khub_error *err)
{
    int missing = khub__given("khub_lock_read", out && count && path, err);
    if (missing != KHUB_OK) return missing;
    khub__lockfile lock;
    *out = NULL;
    *count = 0;
    int rc = khub__lockfile_read(&lock, path, err);
    if (rc != KHUB_OK) return rc;
    *out = lock.count ? khub__calloc(lock.count, sizeof(**out)) : NULL;
    if (lock.count && !*out) rc = khub__fail_memory(err, "reading a lock");
    if (rc == KHUB_OK) *count = lock.count;
    for (size_t i = 0; i < *count; i++) {
        const khub__locked *kernel = &lock.kernels[i];
        snprintf((*out)[i].name, sizeof((*out)[i].name), "%s%s%s", kernel->wanted.repo.id,
                 *kernel->wanted.revision ? "@" : "", kernel->wanted.revision);
        khub__copy((*out)[i].commit, sizeof((*out)[i].commit), kernel->commit);
    }
    khub__lockfile_free(&lock);
    return rc;
}
