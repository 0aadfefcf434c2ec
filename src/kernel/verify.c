/* khub_verify: every build that is there, judged as before it is loaded, every file hashed. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/judge.h"

#include <khub/verify.h>

typedef struct verifying {
    khub__way way;
    khub__session offline; /* for where the cache says that versions stand */
    khub_verified_fn fn;
    void *user;
    size_t wrong;
} verifying;

static int tell(verifying *v, const khub_verified *build, khub_error *err)
{
    if (build->trust && !khub_trust_holds(build->trust)) v->wrong++;
    if (!v->fn || v->fn(v->user, build) == 0) return KHUB_OK;
    return khub__fail(err, KHUB_E_CANCELED, "verifying was canceled");
}

/* ---- one build ---- */

static int is_verdict(int rc, const khub_kernel *kernel)
{
    return rc == KHUB_OK || (rc == KHUB_E_UNTRUSTED && !khub_trust_holds(kernel->trust));
}

/* What keeps a build from being loaded is wrong with it, whatever it is. */
static int take_failure(khub_kernel *kernel, int rc, const khub_error *why, khub_error *err)
{
    if (is_verdict(rc, kernel)) return KHUB_OK;
    if (rc == KHUB_E_NOMEM || rc == KHUB_E_CANCELED || rc == KHUB_E_UNSUPPORTED)
        return khub__fail(err, rc, "%s", why->message);
    khub__trust_add(kernel->trust, KHUB__ABOUT_CONTENT, KHUB_TRUST_REFUSED, "%s", why->message);
    return KHUB_OK;
}

/* After a refusal the rest is looked at all the same. */
static int judge(khub__judging *judging, khub_error *err)
{
    khub_kernel *kernel = judging->kernel;
    khub_error why = {0}, other = {0};
    int first = khub__judge_metadata(judging, &why);
    int rc = take_failure(kernel, khub__judge_content(judging, 0, &other), &other, err);
    if (rc == KHUB_OK &&
        (first != KHUB_E_NOTFOUND || khub_trust_holds(kernel->trust))) /* else it is told already */
        rc = take_failure(kernel, first, &why, err);
    if (rc == KHUB_OK && !judging->has_claim && !kernel->commit && khub_trust_holds(kernel->trust))
        khub__trust_add(kernel->trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_NOTED,
                        "%s: metadata.json has no digest: nothing says what the files should be",
                        kernel->build);
    return rc;
}

static int judge_build(verifying *v, khub_kernel *kernel, khub__place *place, khub_error *err)
{
    khub__judging judging;
    int rc = khub__judge_open(&judging, kernel, place, &v->way, err);
    if (rc == KHUB_OK) rc = judge(&judging, err);
    khub__judge_close(&judging);
    if (rc != KHUB_OK) return rc;
    if (khub__trust_end(kernel->trust, NULL) == KHUB_E_NOMEM)
        return khub__fail_memory(err, "verifying a build");
    const khub_verified build = {kernel->name, kernel->commit, kernel->variant, kernel->build, kernel->trust};
    return tell(v, &build, err);
}

/* `variant` NULL: `build` is a directory of its own. */
static int verify_build(verifying *v, const char *name, khub__place *place, const char *variant,
                        const char *build, khub_error *err)
{
    const khub__remote *remote = place->repository.remote;
    khub_kernel *kernel = khub__calloc(1, sizeof(*kernel));
    if (kernel) {
        kernel->name = khub__strdup(name);
        kernel->variant = khub__strdup(variant ? variant : khub__path_name(build));
        kernel->build = khub__strdup(build);
        kernel->commit = remote ? khub__strdup(remote->at.commit) : NULL;
    }
    int whole = kernel && kernel->name && kernel->variant && kernel->build && (!remote || kernel->commit);
    int rc = whole ? judge_build(v, kernel, place, err) : khub__fail_memory(err, "verifying a build");
    khub_kernel_close(kernel);
    return rc;
}

/* ---- one kernel ---- */

/* 1: more of the build is in the cache than what describes it. */
static int is_there(const khub__picked *files, const khub__remote *remote)
{
    for (size_t i = 0; i < files->count; i++) {
        const char *path = files->files[i]->path, *inside = strchr(path + strlen("build/"), '/') + 1;
        if (strcmp(inside, "metadata.json") != 0 && strcmp(inside, "metadata.json.sigstore") != 0 &&
            khub__store_has(&remote->store, remote->at.commit, path, UINT64_MAX))
            return 1;
    }
    return 0;
}

static int verify_named(verifying *v, const char *name, khub__place *place, const char *variant,
                        size_t *count, khub_error *err)
{
    const khub__remote *remote = place->repository.remote;
    khub__picked files = {0};
    int rc = remote ? khub__repository_pick(&files, &place->repository, variant, err) : KHUB_OK;
    int there = !remote || (rc == KHUB_OK && is_there(&files, remote));
    khub__picked_free(&files);
    if (rc != KHUB_OK || !there) return rc;
    char *build = khub__repository_build(&place->repository, variant);
    ++*count;
    rc = build ? verify_build(v, name, place, variant, build, err)
               : khub__fail_memory(err, "verifying a build");
    khub__free(build);
    return rc;
}

static int tell_absent(verifying *v, const char *name, const char *commit, khub_error *err)
{
    const khub_verified nothing = {.name = name, .commit = commit};
    return tell(v, &nothing, err);
}

static int verify_place(verifying *v, const char *name, khub__place *place, khub_error *err)
{
    size_t count = 0;
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < place->repository.count; i++)
        rc = verify_named(v, name, place, place->repository.names[i], &count, err);
    if (rc != KHUB_OK || count) return rc;
    return tell_absent(v, name, place->repository.remote ? place->remote.at.commit : NULL, err);
}

/* ---- names of the Hub ---- */

/* The commit that is meant, by the lock or by the cache; nobody is asked. */
static int find_commit(khub__wanted *wanted, verifying *v, khub_error *err)
{
    khub__store store = {0};
    khub__resolved at;
    if (v->way.locked) return khub__lockfile_pin(&v->way.lock, wanted, err);
    int rc = khub__store_open(&store, &wanted->repo, v->offline.options.cache_dir, err);
    if (rc == KHUB_OK) rc = khub__resolve(&at, &store, wanted, v->offline.client, 0, err);
    khub__store_close(&store);
    if (rc != KHUB_OK) return rc;
    khub__copy(wanted->revision, sizeof(wanted->revision), at.commit);
    wanted->is_commit = 1;
    return KHUB_OK;
}

static int has_snapshot(int *has, const khub__wanted *wanted, const verifying *v, khub_error *err)
{
    khub__store store = {0};
    int rc = khub__store_open(&store, &wanted->repo, v->offline.options.cache_dir, err);
    char *path = rc == KHUB_OK ? khub__store_snapshot(&store, wanted->revision) : NULL;
    if (rc == KHUB_OK && !path) rc = khub__fail_memory(err, "verifying a kernel");
    *has = path && khub__file_kind(path) == KHUB__FILE_DIRECTORY;
    khub__free(path);
    khub__store_close(&store);
    return rc;
}

/* Of a lock's entry that redirects the destination is an entry, too. */
static int verify_remote(verifying *v, const char *name, const khub__wanted *wanted, khub_error *err)
{
    khub__place place = {0};
    khub__wanted on;
    int rc = khub__remote_open_here(&place.remote, &on, &v->way.session, wanted, err);
    if (rc == KHUB_OK && !*on.repo.id) {
        rc = khub__repository_of(&place.repository, &place.remote, err);
        if (rc == KHUB_OK) rc = verify_place(v, name, &place, err);
    } else if (rc == KHUB_OK && !v->way.locked) {
        char next[KHUB__WANTED_NAME_MAX];
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: redirects to %s, which can be verified itself", name,
                        khub__wanted_name(next, &on));
    }
    khub__place_close(&place);
    return rc;
}

/* `absent`: 1 when it is in order that nothing of it is in the cache. */
static int verify_hub(verifying *v, const char *name, int absent, khub_error *err)
{
    khub__wanted wanted;
    int has = 0;
    int rc = khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, err);
    if (rc == KHUB_OK) rc = find_commit(&wanted, v, err);
    if (rc == KHUB_OK) rc = has_snapshot(&has, &wanted, v, err);
    if (rc != KHUB_OK) return rc;
    if (has) return verify_remote(v, name, &wanted, err);
    if (absent) return tell_absent(v, name, wanted.revision, err);
    return khub__fail(err, KHUB_E_OFFLINE, "%s: commit %s isn't in the cache", name, wanted.revision);
}

/* Every commit of a repository that is in the cache. */
static int verify_commits(verifying *v, const khub__wanted *wanted, khub_error *err)
{
    khub__store store = {0};
    char **commits = NULL, name[KHUB__WANTED_NAME_MAX];
    size_t count = 0;
    khub_error why = {0};
    int rc = khub__store_open(&store, &wanted->repo, v->offline.options.cache_dir, &why);
    if (rc == KHUB_OK) rc = khub__store_commits(&commits, &count, &store, &why);
    if (rc == KHUB_E_NOTFOUND || (rc == KHUB_OK && !count))
        rc = khub__fail(err, KHUB_E_OFFLINE, "%s: isn't in the cache (%s)", wanted->repo.id, store.cache);
    else if (rc != KHUB_OK)
        rc = khub__fail(err, rc, "%s", why.message);
    for (size_t i = 0; rc == KHUB_OK && i < count; i++) {
        khub__wanted one = *wanted;
        khub__copy(one.revision, sizeof(one.revision), commits[i]);
        one.is_commit = 1;
        rc = verify_remote(v, khub__wanted_name(name, &one), &one, err);
    }
    khub__free(commits);
    khub__store_close(&store);
    return rc;
}

static int verify_lock(verifying *v, khub_error *err)
{
    char name[KHUB__WANTED_NAME_MAX];
    int rc = KHUB_OK;
    for (size_t i = 0; rc == KHUB_OK && i < v->way.lock.count; i++)
        rc = verify_hub(v, khub__wanted_name(name, &v->way.lock.kernels[i].wanted), 1, err);
    return rc;
}

/* ---- directories ---- */

static int is_file_in(const char *folder, const char *name)
{
    char *path = khub__path_join(folder, name);
    int is = path && khub__file_kind(path) == KHUB__FILE_REGULAR;
    khub__free(path);
    return is;
}

static int verify_directory(verifying *v, const char *name, const char *path, khub_error *err)
{
    khub__place place = {0};
    khub_error why = {0};
    int rc = khub__repository_open(&place.repository, path, &why);
    if (rc == KHUB_OK) {
        rc = verify_place(v, name, &place, err);
    } else if (rc == KHUB_E_NOTFOUND && is_file_in(path, "metadata.json")) {
        place.repository.path = khub__path_parent(path);
        rc = place.repository.path ? verify_build(v, name, &place, NULL, path, err)
                                   : khub__fail_memory(err, "verifying a build");
    } else {
        rc = khub__fail(err, rc, "%s", why.message);
    }
    khub__place_close(&place);
    return rc;
}

static int verify(verifying *v, const char *name, khub_error *err)
{
    char *path;
    khub__wanted wanted;
    if (!name) return verify_lock(v, err);
    int rc = khub__repository_find(&path, name, err);
    if (rc == KHUB_OK && path) {
        rc = verify_directory(v, name, path, err);
        khub__free(path);
        return rc;
    }
    if (rc == KHUB_OK) rc = khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, err);
    if (rc != KHUB_OK) return rc;
    return *wanted.revision || v->way.locked ? verify_hub(v, name, 0, err) : verify_commits(v, &wanted, err);
}

static int open_verifying(verifying *v, const khub_verify_options *ours, khub_error *err)
{
    khub_hub_options offline;
    int rc = khub__way_open(&v->way, ours->hub, ours->lock, err);
    if (rc == KHUB_OK) rc = khub__way_session(&v->way, err);
    v->way.verifies = v->way.only_metadata = v->way.session.only_looks = 1;
    if (rc != KHUB_OK) return rc;
    offline = v->way.session.options;
    offline.struct_size = sizeof(offline);
    offline.offline = 1;
    return khub__session_open(&v->offline, &offline, err);
}

int khub_verify(size_t *wrong, const char *name, const khub_verify_options *options, khub_verified_fn fn,
                void *user, khub_error *err)
{
    khub_verify_options ours;
    verifying v = {.fn = fn, .user = user};
    if (wrong) *wrong = 0;
    int rc = khub__options(&ours, sizeof(ours), options, "khub_verify_options", err);
    if (rc == KHUB_OK && !name && !ours.lock)
        rc = khub__fail(err, KHUB_E_INVAL, "khub_verify: neither a name nor a lock is given");
    if (rc == KHUB_OK) rc = open_verifying(&v, &ours, err);
    if (rc == KHUB_OK) rc = verify(&v, name, err);
    khub__session_close(&v.offline);
    khub__way_close(&v.way);
    if (wrong) *wrong = v.wrong;
    return rc;
}
