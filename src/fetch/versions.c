/* khub_versions_list: the versions of a kernel repository. */
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "fetch/remote.h"
#include "fetch/snapshots.h"

#include <stdlib.h>

enum { MAX_VERSIONS = 100000 };

struct khub_versions {
    khub_version_info *infos;
    char (*commits)[KHUB__COMMIT_MAX + 1];
    size_t count, capacity, commit_capacity;
    int offline;
};

static int add(khub_versions *versions, int64_t version, const char *commit, khub_error *err)
{
    size_t need = versions->count + 1;
    if (khub__grow((void **)&versions->infos, &versions->capacity, need, sizeof(*versions->infos),
                   MAX_VERSIONS) ||
        khub__grow((void **)&versions->commits, &versions->commit_capacity, need, sizeof(*versions->commits),
                   MAX_VERSIONS))
        return khub__fail_memory(err, "listing versions");
    khub__copy(versions->commits[versions->count], sizeof(*versions->commits), commit);
    versions->infos[versions->count++] = (khub_version_info){.version = version};
    return KHUB_OK;
}

/* Of all versions, or of those in the range that was asked for. */
static int is_wanted(const khub__wanted *wanted, int64_t version)
{
    return version >= 0 && (!wanted->is_range || khub__range_has(&wanted->range, version));
}

static int from_hub(khub_versions *versions, const khub__wanted *wanted, khub__client *client,
                    khub_error *err)
{
    khub__refs refs = {0};
    int rc = khub__client_refs(&refs, client, &wanted->repo, err);
    for (size_t i = 0; i < refs.branch_count && rc == KHUB_OK; i++) {
        int64_t version = khub__version_of(refs.branches[i].name);
        if (is_wanted(wanted, version)) rc = add(versions, version, refs.branches[i].commit, err);
    }
    khub__refs_free(&refs);
    return rc;
}

static int from_cache(khub_versions *versions, const khub__wanted *wanted, const khub__store *store,
                      khub_error *err)
{
    char **refs = NULL;
    size_t count = 0;
    int rc = khub__store_refs(&refs, &count, store, err);
    for (size_t i = 0; i < count && rc == KHUB_OK; i++) {
        char commit[KHUB__COMMIT_MAX + 1];
        int64_t age_s, version = khub__version_of(refs[i]);
        khub_error ignored = {0};
        if (!is_wanted(wanted, version)) continue;
        int known = khub__store_ref(commit, &age_s, store, refs[i], &ignored);
        if (known == KHUB_OK) rc = add(versions, version, commit, err);
        if (known == KHUB_E_NOMEM) rc = khub__fail_memory(err, "listing versions");
    }
    khub__free(refs);
    versions->offline = 1;
    return rc;
}

static int by_version(const void *a, const void *b)
{
    const khub_version_info *x = a, *y = b;
    return (x->version > y->version) - (x->version < y->version);
}

/* The commits' places are final now. */
static int finish(khub_versions *versions, const khub__store *store, khub_error *err)
{
    for (size_t i = 0; i < versions->count; i++) {
        khub_version_info *info = &versions->infos[i];
        info->commit = versions->commits[i];
        char *snapshot = khub__store_snapshot(store, info->commit);
        if (!snapshot) return khub__fail_memory(err, "listing versions");
        info->cached = khub__file_kind(snapshot) == KHUB__FILE_DIRECTORY;
        khub__free(snapshot);
    }
    if (versions->count) qsort(versions->infos, versions->count, sizeof(*versions->infos), by_version);
    return KHUB_OK;
}

static int list(khub_versions *versions, khub__session *session, const khub__wanted *wanted, khub_error *err)
{
    const khub__repo *repo = &wanted->repo;
    khub__store store = {0};
    khub_error why = {0};
    int rc = khub__store_open(&store, repo, session->options.cache_dir, err);
    if (rc == KHUB_OK) {
        int asked = from_hub(versions, wanted, session->client, &why);
        int falls_back = asked == KHUB_E_NETWORK && khub__file_kind(store.folder) == KHUB__FILE_DIRECTORY;
        if (falls_back)
            khub__log(KHUB_LOG_NOTICE, "versions", repo->id,
                      "the Hub can't be reached (%s); the cache answers", why.message);
        if (asked == KHUB_E_OFFLINE || falls_back)
            rc = from_cache(versions, wanted, &store, err);
        else if (asked != KHUB_OK)
            rc = khub__fail(err, asked, "%s", why.message);
    }
    if (rc == KHUB_OK) rc = finish(versions, &store, err);
    khub__store_close(&store);
    return rc;
}

int khub_versions_list(khub_versions **out, const char *name, const khub_hub_options *options,
                       khub_error *err)
{
    int missing = khub__given("khub_versions_list", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    *out = NULL;
    if (!name || !*name) return khub__fail(err, KHUB_E_INVAL, "khub_versions_list: no name is given");
    khub__wanted wanted;
    khub__session session = {0};
    int rc = khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, err);
    if (rc == KHUB_OK && *wanted.revision && !wanted.is_range)
        rc = khub__fail(
            err, KHUB_E_INVAL,
            "%s: the versions of a repository are asked for without \"@\", or with a range of them", name);
    if (rc != KHUB_OK) return rc;
    khub_versions *versions = khub__calloc(1, sizeof(*versions));
    rc = versions ? khub__session_open(&session, options, err) : khub__fail_memory(err, "listing versions");
    if (rc == KHUB_OK) rc = list(versions, &session, &wanted, err);
    khub__session_close(&session);
    if (rc == KHUB_OK)
        *out = versions;
    else
        khub_versions_free(versions);
    return rc;
}

const khub_version_info *khub_versions_at(const khub_versions *versions, size_t i)
{
    return i < versions->count ? &versions->infos[i] : NULL;
}

int khub_versions_offline(const khub_versions *versions)
{
    return versions->offline;
}

void khub_versions_free(khub_versions *versions)
{
    if (!versions) return;
    khub__free(versions->infos);
    khub__free(versions->commits);
    khub__free(versions);
}
