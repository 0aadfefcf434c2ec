/* khub_download: files of a repository by pattern. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "fetch/glob.h"
#include "fetch/lockfile.h"
#include "fetch/remote.h"
#include "trust/publisher.h"

struct khub_snapshot {
    char *repository, *commit, *path;
};

static int any_pattern(void *user, const char *path)
{
    const char *const *patterns = user;
    if (!patterns) return 1;
    for (; *patterns; patterns++)
        if (khub__glob(*patterns, path)) return 1;
    return 0;
}

static int take_facts(khub_snapshot *out, const khub__remote *remote, khub_error *err)
{
    out->repository = khub__strdup(remote->at.repo.id);
    out->commit = khub__strdup(remote->at.commit);
    out->path = khub__strdup(remote->path);
    return out->repository && out->commit && out->path ? KHUB_OK : khub__fail_memory(err, "downloading");
}

/* What can run, or is read by what runs: the files of builds, but not what describes them. */
static int has_build(const khub__picked *picked)
{
    for (size_t i = 0; i < picked->count; i++) {
        const char *path = picked->files[i]->path;
        if (!strncmp(path, "build/", 6) && strcmp(strrchr(path, '/'), "/metadata.json") != 0) return 1;
    }
    return 0;
}

/* A model holds no code that runs here; whose kernels run is asked for before any of their builds comes. */
static int judge(const khub__remote *remote, const khub__picked *picked, khub_error *err)
{
    if (remote->wanted.repo.kind == KHUB__REPO_MODEL || !has_build(picked)) return KHUB_OK;
    return khub__publisher_check(NULL, &remote->store, &remote->at.repo, remote->session->client,
                                 &remote->session->rules, picked->missing > 0, err);
}

static int fail_none(const khub__remote *remote, const char *const *patterns, khub_error *err)
{
    int is_one = patterns && patterns[0] && !patterns[1];
    return khub__fail(err, KHUB_E_NOTFOUND, "%s: none of its %zu files matches the pattern%s%.200s",
                      remote->wanted.repo.id, remote->tree.count, is_one ? " " : "s",
                      is_one ? patterns[0] : "");
}

/* For khub__session.pin: `user` is the lock. */
static int pin(void *user, khub__wanted *wanted, khub_error *err)
{
    return khub__lockfile_pin(user, wanted, err);
}

/* `lock` NULL: none. */
static int download(khub_snapshot *out, khub__session *session, khub__wanted *wanted,
                    const char *const *patterns, khub__lockfile *lock, khub_error *err)
{
    khub__remote remote = {0};
    khub__picked picked = {0};
    session->pin = lock ? pin : NULL;
    session->pin_user = lock;
    int rc = lock ? khub__lockfile_pin(lock, wanted, err) : KHUB_OK;
    if (rc == KHUB_OK) rc = khub__remote_open(&remote, session, wanted, err);
    if (rc == KHUB_OK && lock)
        rc = khub__lockfile_check(lock, remote.wanted.repo.id, remote.at.commit, NULL, &remote.tree,
                                  &remote.store, err);
    if (rc == KHUB_OK)
        rc = khub__remote_pick(&picked, &remote, any_pattern, (void *)(uintptr_t)patterns, err);
    if (rc == KHUB_OK && !picked.count) rc = fail_none(&remote, patterns, err);
    if (rc == KHUB_OK) rc = judge(&remote, &picked, err);
    if (rc == KHUB_OK) rc = khub__remote_bring(&remote, &picked, err);
    if (rc == KHUB_OK) rc = take_facts(out, &remote, err);
    khub__picked_free(&picked);
    khub__remote_close(&remote);
    return rc;
}

int khub_download(khub_snapshot **out, const char *name, const khub_download_options *options,
                  khub_error *err)
{
    int missing = khub__given("khub_download", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    *out = NULL;
    if (!name || !*name) return khub__fail(err, KHUB_E_INVAL, "khub_download: no name is given");
    khub_download_options ours;
    khub__wanted wanted;
    khub__session session = {0};
    khub__lockfile lock = {0};
    int rc = khub__options(&ours, sizeof(ours), options, "khub_download_options", err);
    if (rc == KHUB_OK)
        rc = khub__wanted_parse(&wanted, ours.model ? KHUB__REPO_MODEL : KHUB__REPO_KERNEL, name, err);
    if (rc == KHUB_OK && ours.model && ours.lock)
        rc = khub__fail(err, KHUB_E_INVAL, "khub_download_options: a lock is of kernels, not of models");
    if (rc != KHUB_OK) return rc;
    if (ours.model && !*wanted.revision) khub__copy(wanted.revision, sizeof(wanted.revision), "main");
    khub_snapshot *snapshot = khub__calloc(1, sizeof(*snapshot));
    rc = snapshot ? khub__session_open(&session, ours.hub, err) : khub__fail_memory(err, "downloading");
    if (rc == KHUB_OK && ours.lock) rc = khub__lockfile_read(&lock, ours.lock, err);
    if (rc == KHUB_OK)
        rc = download(snapshot, &session, &wanted, ours.patterns, ours.lock ? &lock : NULL, err);
    khub__session_close(&session);
    khub__lockfile_free(&lock);
    if (rc == KHUB_OK)
        *out = snapshot;
    else
        khub_snapshot_free(snapshot);
    return rc;
}

int khub_trusted(const char *name, const khub_hub_options *options, khub_error *err)
{
    if (!name || !*name) return khub__fail(err, KHUB_E_INVAL, "khub_trusted: no name is given");
    khub__wanted wanted;
    khub__session session = {0};
    khub__store store = {0};
    int rc = khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, err);
    if (rc == KHUB_OK) rc = khub__session_open(&session, options, err);
    if (rc == KHUB_OK) rc = khub__store_open(&store, &wanted.repo, session.options.cache_dir, err);
    if (rc == KHUB_OK)
        rc = khub__publisher_check(NULL, &store, &wanted.repo, session.client, &session.rules, 0, err);
    khub__store_close(&store);
    khub__session_close(&session);
    return rc;
}

const char *khub_snapshot_repository(const khub_snapshot *snapshot)
{
    return snapshot->repository;
}

const char *khub_snapshot_commit(const khub_snapshot *snapshot)
{
    return snapshot->commit;
}

const char *khub_snapshot_path(const khub_snapshot *snapshot)
{
    return snapshot->path;
}

void khub_snapshot_free(khub_snapshot *snapshot)
{
    if (!snapshot) return;
    khub__free(snapshot->repository);
    khub__free(snapshot->commit);
    khub__free(snapshot->path);
    khub__free(snapshot);
}
