#include "fetch/resolve.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cache/disk.h"
#include "fetch/snapshots.h"

#include <stdio.h>
#include <stdlib.h>

enum { REFRESH_S = 600 };

int64_t khub__refresh_seconds(void)
{
    const char *text = getenv("KHUB_REFRESH_SECONDS");
    char *end;
    long long seconds = text ? strtoll(text, &end, 10) : -1;
    return text && end != text && !*end && seconds >= 0 ? seconds : REFRESH_S;
}

static int by_version(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* "0, 1, 3": the versions among the branches, lowest first. NULL: no memory. */
static char *list_versions(const khub__refs *refs)
{
    khub__text text = {0};
    size_t count = 0;
    int64_t *versions = khub__calloc(refs->branch_count + 1, sizeof(*versions));
    if (!versions) return NULL;
    for (size_t i = 0; i < refs->branch_count; i++)
        if ((versions[count] = khub__version_of(refs->branches[i].name)) >= 0) count++;
    qsort(versions, count, sizeof(*versions), by_version);
    for (size_t i = 0; i < count; i++)
        khub__text_addf(&text, "%s%lld", i ? ", " : "", (long long)versions[i]);
    if (!count) khub__text_add(&text, "none");
    khub__free(versions);
    return khub__text_take(&text);
}

static const khub__ref *find_ref(const khub__refs *refs, const char *name)
{
    for (size_t i = 0; i < refs->branch_count; i++)
        if (!strcmp(refs->branches[i].name, name)) return &refs->branches[i];
    for (size_t i = 0; i < refs->tag_count; i++)
        if (!strcmp(refs->tags[i].name, name)) return &refs->tags[i];
    return NULL;
}

static const char *hint(const khub__wanted *wanted)
{
    return khub__commit_hint(wanted->revision + (wanted->version >= 0)); /* behind the "v" */
}

/* The branch of the highest version in the range. */
static const khub__ref *find_highest(const khub__refs *refs, const khub__range *range)
{
    const khub__ref *best = NULL;
    int64_t highest = -1;
    for (size_t i = 0; i < refs->branch_count; i++) {
        int64_t version = khub__version_of(refs->branches[i].name);
        if (version <= highest || !khub__range_has(range, version)) continue;
        highest = version;
        best = &refs->branches[i];
    }
    return best;
}

static int fail_version(const khub__refs *refs, const khub__wanted *wanted, khub_error *err)
{
    char *versions = list_versions(refs);
    if (!versions) return khub__fail_memory(err, "resolving a version");
    int rc;
    if (!*wanted->revision)
        rc = khub__fail(
            err, KHUB_E_INVAL,
            "%s: which version? Its versions: %s; a version never changes what its functions mean, so "
            "one has to be named: %s@v1",
            wanted->repo.id, versions, wanted->repo.id);
    else if (wanted->version >= 0)
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: there is no version %lld; its versions: %s%s",
                        wanted->repo.id, (long long)wanted->version, versions, hint(wanted));
    else if (wanted->is_range)
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: no version is in the range %s; its versions: %s",
                        wanted->repo.id, wanted->revision, versions);
    else
        rc = khub__fail(err, KHUB_E_NOTFOUND,
                        "%s: there is no version, branch or tag \"%s\"; its versions: %s", wanted->repo.id,
                        wanted->revision, versions);
    khub__free(versions);
    return rc;
}

static void note_newer(const khub__refs *refs, const khub__wanted *wanted)
{
    int64_t newest = wanted->version;
    if (newest < 0) return;
    for (size_t i = 0; i < refs->branch_count; i++)
        if (khub__version_of(refs->branches[i].name) > newest)
            newest = khub__version_of(refs->branches[i].name);
    if (newest > wanted->version)
        khub__log(KHUB_LOG_NOTICE, "get", wanted->repo.id, "version %lld is used; there is version %lld",
                  (long long)wanted->version, (long long)newest);
}

/* Where the Hub says that it stands; a cache that can't keep it is asked for it again. */
static void keep(const khub__store *store, const char *revision, const char *commit)
{
    khub_error why = {0};
    if (khub__store_set_ref(store, revision, commit, &why) != KHUB_OK)
        khub__log(KHUB_LOG_DEBUG, "get", store->repo.id, "the cache doesn't keep where %s stands: %s",
                  revision, why.message);
}

/* The list of branches and tags answers, and says which versions there are when it isn't there. */
static int ask_version(khub__resolved *out, const khub__store *store, const khub__wanted *wanted,
                       khub__client *client, khub_error *err)
{
    khub__refs refs = {0};
    khub_error why = {0};
    const char *id = wanted->repo.id;
    int rc = khub__client_refs(&refs, client, &wanted->repo, &why);
    if (rc == KHUB_E_NETWORK && !*wanted->revision)
        return khub__fail(
            err, rc, "%s: which version? One is named as %s@v1, and the Hub can't say which there are: %s",
            id, id, why.message);
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    const khub__ref *ref = wanted->is_range    ? find_highest(&refs, &wanted->range)
                           : *wanted->revision ? find_ref(&refs, wanted->revision)
                                               : NULL;
    if (ref) {
        memcpy(out->commit, ref->commit, sizeof(out->commit));
        note_newer(&refs, wanted);
        if (wanted->is_range) keep(store, ref->name, ref->commit); /* it is a version like any other */
    } else {
        rc = fail_version(&refs, wanted, err);
    }
    if (*refs.moved_to.id) {
        khub__log(KHUB_LOG_NOTICE, "get", wanted->repo.id, "is called %s now", refs.moved_to.id);
        out->repo = refs.moved_to;
    }
    khub__refs_free(&refs);
    return rc;
}

/* A version that is written wrong, or a branch or tag with such a name: "vv", "v1x", "1.0". */
static int is_nearly_a_version(const khub__wanted *wanted)
{
    const char *revision = wanted->revision;
    return wanted->repo.kind == KHUB__REPO_KERNEL && !wanted->is_range && *revision &&
           strchr("vV0123456789", *revision) && !strchr(revision, '/') && !*hint(wanted);
}

static int ask(khub__resolved *out, const khub__store *store, const khub__wanted *wanted,
               khub__client *client, khub_error *err)
{
    int rc = wanted->version >= 0 || wanted->is_range || !*wanted->revision || is_nearly_a_version(wanted)
                 ? ask_version(out, store, wanted, client, err)
                 : khub__client_commit(out->commit, client, &wanted->repo, wanted->revision, err);
    if (rc != KHUB_OK) return rc;
    out->asked = 1;
    keep(store, wanted->revision, out->commit);
    return KHUB_OK;
}

const char *khub__advise_download(char out[KHUB__ADVICE_MAX], const khub__store *store,
                                  const khub__wanted *wanted)
{
    const char *quote = wanted->is_range ? "'" : ""; /* ">" is the shell's */
    snprintf(out, KHUB__ADVICE_MAX, "where there is a network, run: khub download %s%s%s@%s%s --cache-dir %s",
             wanted->repo.kind == KHUB__REPO_MODEL ? "--model " : "", quote, wanted->repo.id,
             *wanted->revision ? wanted->revision : "VERSION", quote, store->cache);
    return out;
}

static int fail_offline(const khub__store *store, const khub__wanted *wanted, khub_error *err)
{
    char **commits = NULL;
    size_t count = 0;
    khub__text list = {0};
    khub_error ignored = {0};
    if (khub__store_commits(&commits, &count, store, &ignored) == KHUB_OK)
        for (size_t i = 0; i < count; i++)
            khub__text_addf(&list, "%s%s", i ? ", " : "; the cache has the commits ", commits[i]);
    khub__free(commits);
    char advice[KHUB__ADVICE_MAX];
    int rc =
        khub__fail(err, KHUB_E_OFFLINE, "%s%s%s: isn't in the cache (%s)%s%s; %s", wanted->repo.id,
                   *wanted->revision ? "@" : "", wanted->revision, store->cache, list.length ? list.data : "",
                   hint(wanted), khub__advise_download(advice, store, wanted));
    khub__text_free(&list);
    return rc;
}

/* The highest version in the range whose ref the cache has; -1: none. */
static int64_t highest_ref(char commit[KHUB__COMMIT_MAX + 1], const khub__store *store,
                           const khub__range *range)
{
    char **refs = NULL, at[KHUB__COMMIT_MAX + 1];
    size_t count = 0;
    khub_error ignored = {0};
    int64_t highest = -1, age_s;
    if (khub__store_refs(&refs, &count, store, &ignored) != KHUB_OK) return -1;
    for (size_t i = 0; i < count; i++) {
        int64_t version = khub__version_of(refs[i]);
        if (version <= highest || !khub__range_has(range, version) ||
            khub__store_ref(at, &age_s, store, refs[i], NULL) != KHUB_OK)
            continue;
        highest = version;
        memcpy(commit, at, sizeof(at));
    }
    khub__free(refs);
    return highest;
}

/* Of a version or range without a ref: what the refs of versions say, or the snapshots themselves. */
static int guess(khub__resolved *out, int64_t *version, const khub__store *store, const khub__wanted *wanted,
                 khub_error *err)
{
    khub__range one = {wanted->version, wanted->version, {0}, 0};
    char commit[KHUB__COMMIT_MAX + 1];
    int64_t highest = wanted->is_range ? highest_ref(out->commit, store, &wanted->range) : -1;
    int rc = khub__snapshot_in_range(commit, version, store, wanted->is_range ? &wanted->range : &one, err);
    if (rc == KHUB_OK && *version > highest) memcpy(out->commit, commit, sizeof(commit));
    if (*version < highest) *version = highest;
    return rc == KHUB_E_NOTFOUND && highest >= 0 ? KHUB_OK : rc;
}

/* What the cache knows, however old: the ref, or a guess at the version *guessed (-1: none was needed). */
static int remember(khub__resolved *out, int64_t *guessed, const khub__store *store,
                    const khub__wanted *wanted, khub_error *err)
{
    *guessed = -1;
    int64_t age_s;
    khub_error why = {0};
    int rc = *wanted->revision ? khub__store_ref(out->commit, &age_s, store, wanted->revision, &why)
                               : KHUB_E_NOTFOUND;
    if (rc == KHUB_E_NOTFOUND && (wanted->version >= 0 || wanted->is_range)) {
        khub_error_clear(&why);
        rc = guess(out, guessed, store, wanted, &why);
    }
    if (rc == KHUB_E_NOTFOUND) return fail_offline(store, wanted, err);
    return rc == KHUB_OK ? KHUB_OK : khub__fail(err, rc, "%s", why.message);
}

static void note_guess(const khub__resolved *known, int64_t guessed, const khub__wanted *wanted)
{
    if (guessed < 0) return;
    if (wanted->is_range)
        khub__log(
            KHUB_LOG_NOTICE, "get", wanted->repo.id,
            "the cache doesn't know which version is the highest in %s; its version %lld is used (%.12s)",
            wanted->revision, (long long)guessed, known->commit);
    else
        khub__log(
            KHUB_LOG_NOTICE, "get", wanted->repo.id,
            "the cache doesn't know where v%lld stands; its newest snapshot of version %lld is used (%.12s)",
            (long long)guessed, (long long)guessed, known->commit);
}

/* The cache suffices when the Hub can't be reached: so it is worth one short attempt only. */
static int ask_or_remember(khub__resolved *out, const khub__store *store, const khub__wanted *wanted,
                           khub__client *client, khub_error *err)
{
    khub__resolved known = *out;
    khub_error unknown = {0}, why = {0};
    int64_t guessed;
    int remembered = remember(&known, &guessed, store, wanted, &unknown);
    if (remembered == KHUB_E_NOMEM) return khub__fail(err, remembered, "%s", unknown.message);
    khub__client_hurry(client, remembered == KHUB_OK);
    int rc = ask(out, store, wanted, client, &why);
    khub__client_hurry(client, 0);
    if (rc != KHUB_E_NETWORK || remembered != KHUB_OK)
        return rc == KHUB_OK ? KHUB_OK : khub__fail(err, rc, "%s", why.message);
    khub__log(KHUB_LOG_NOTICE, "get", wanted->repo.id,
              "the Hub can't be reached (%s); the cache's commit %.12s is used", why.message, known.commit);
    note_guess(&known, guessed, wanted);
    *out = known;
    return KHUB_OK;
}

/* One that another user may have written, who could choose an older commit so, is never fresh. */
static int is_fresh(char commit[KHUB__COMMIT_MAX + 1], const khub__store *store, const khub__wanted *wanted)
{
    char path[KHUB__REVISION_MAX + 8];
    int64_t age_s;
    khub_error ignored = {0};
    snprintf(path, sizeof(path), "refs/%s", wanted->revision);
    return *wanted->revision &&
           khub__store_ref(commit, &age_s, store, wanted->revision, &ignored) == KHUB_OK &&
           age_s < khub__refresh_seconds() && khub__disk_is_ours(store, path, &ignored) == KHUB_OK;
}

int khub__resolve(khub__resolved *out, const khub__store *store, const khub__wanted *wanted,
                  khub__client *client, int refresh, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->repo = wanted->repo;
    if (wanted->is_commit) {
        khub__copy(out->commit, sizeof(out->commit), wanted->revision);
        return KHUB_OK;
    }
    if (khub__client_offline(client)) {
        int64_t guessed;
        int rc = remember(out, &guessed, store, wanted, err);
        if (rc == KHUB_OK) note_guess(out, guessed, wanted);
        return rc;
    }
    if (!refresh && is_fresh(out->commit, store, wanted)) return KHUB_OK;
    return ask_or_remember(out, store, wanted, client, err);
}
