/* khub_lock: from names to the commits of a whole tree of kernels. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/path.h"
#include "base/text.h"
#include "fetch/lockfile.h"
#include "kernel/needs.h"
#include "kernel/repository.h"
#include "trust/publisher.h"
#include "variant/name.h"

#include <khub/lock.h>

#include <stdio.h>

enum { MAX_LOCKED = 10000 };

/* What one call knows. */
typedef struct locking {
    const khub_hub_options *hub; /* the caller's; may be NULL */
    khub__session session;
    khub__lockfile kept;  /* what stays where it is */
    khub__lockfile found; /* the result */
} locking;

static int lock_one(locking *l, const char *name, const khub__chain *before, khub_error *err);

/* Whether the result has an entry for exactly this name. */
static int is_found(const locking *l, const khub__wanted *wanted)
{
    for (size_t i = 0; i < l->found.count; i++) {
        const khub__wanted *there = &l->found.kernels[i].wanted;
        if (!strcmp(there->repo.id, wanted->repo.id) && !strcmp(there->revision, wanted->revision)) return 1;
    }
    return 0;
}

/* A range stands for the highest version in it, by what stays or by what the Hub says. */
static int settle(khub__wanted *wanted, const locking *l, khub_error *err)
{
    char name[KHUB__WANTED_NAME_MAX];
    if (!wanted->is_range) return KHUB_OK;
    const khub__locked *kept = khub__lockfile_find(&l->kept, wanted);
    if (kept && kept->wanted.version >= 0) {
        *wanted = kept->wanted;
        return KHUB_OK;
    }
    khub_versions *versions;
    const khub_version_info *at, *best = NULL;
    int rc = khub_versions_list(&versions, khub__wanted_name(name, wanted), l->hub, err);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; (at = khub_versions_at(versions, i)); i++)
        best = at;
    if (best) {
        snprintf(name, sizeof(name), "%s@v%lld", wanted->repo.id, (long long)best->version);
        rc = khub__wanted_parse(wanted, KHUB__REPO_KERNEL, name, err);
    } else {
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: there is no such version", name);
    }
    khub_versions_free(versions);
    return rc;
}

static int is_metadata(void *user, const char *path)
{
    (void)user;
    khub__variant_name parts;
    char name[256];
    size_t length = strncmp(path, "build/", 6) == 0 ? strcspn(path + 6, "/") : 0;
    if (!length || length >= sizeof(name) || strcmp(path + 6 + length, "/metadata.json") != 0) return 0;
    memcpy(name, path + 6, length);
    name[length] = 0;
    return khub__variant_name_parse(&parts,
                                    name); /* who doesn't understand the name doesn't load the build */
}

static int read_metadata(khub__metadata *out, khub__remote *remote, const char *file, khub_error *err)
{
    khub__bytes text;
    memset(out, 0, sizeof(*out));
    int rc = khub__remote_read(&text, remote, file, KHUB__METADATA_MAX, err);
    if (rc == KHUB_OK) rc = khub__remote_check_believed(remote, file, err);
    char *path = khub__path_join(remote->path, file);
    if (rc == KHUB_OK)
        rc = path ? khub__metadata_parse(out, text.data, text.length, path, err)
                  : khub__fail_memory(err, "locking kernels");
    khub__free(path);
    khub__bytes_free(&text);
    return rc;
}

static int lock_needs(locking *l, khub__remote *remote, const char *file, const khub__chain *here,
                      khub_error *err)
{
    khub__metadata metadata;
    char name[KHUB__NEED_NAME_MAX];
    int rc = read_metadata(&metadata, remote, file, err);
    for (size_t i = 0; rc == KHUB_OK && i < metadata.need_count; i++) {
        khub_error why = {0};
        rc = khub__need_name(name, &metadata.needs[i], &why);
        if (rc == KHUB_OK) rc = lock_one(l, name, here, &why);
        if (rc != KHUB_OK) khub__fail(err, rc, "%s (needed by %s)", why.message, here->name);
    }
    khub__metadata_free(&metadata); /* zeroed when it wasn't read */
    return rc;
}

/* What all builds of a repository need. One without a metadata.json can't be loaded, so it needs nothing. */
static int lock_builds(locking *l, khub__remote *remote, const khub__chain *here, khub_error *err)
{
    khub__picked files;
    int rc = khub__remote_pick(&files, remote, is_metadata, NULL, err);
    for (size_t i = 0; rc == KHUB_OK && i < files.count; i++)
        rc = khub__remote_check_size(remote, files.files[i]->path, KHUB__METADATA_MAX, err);
    if (rc == KHUB_OK) rc = khub__remote_bring(remote, &files, err);
    for (size_t i = 0; rc == KHUB_OK && i < files.count; i++)
        rc = lock_needs(l, remote, files.files[i]->path, here, err);
    khub__picked_free(&files);
    return rc;
}

/* A lock says where a version stands, so that what the cache remembers isn't enough while there is a network.
 */
static int check_asked(const khub__remote *remote, khub_error *err)
{
    char name[KHUB__WANTED_NAME_MAX];
    if (remote->at.asked || remote->wanted.is_commit || khub__client_offline(remote->session->client))
        return KHUB_OK;
    return khub__fail(err, KHUB_E_NETWORK,
                      "%s: where it stands couldn't be asked; offline (--offline) the cache's word is taken",
                      khub__wanted_name(name, &remote->wanted));
}

static int check_publisher(const khub__remote *remote, khub_error *err)
{
    return khub__publisher_check(NULL, &remote->store, &remote->at.repo, remote->session->client,
                                 &remote->session->rules, 0, err);
}

static int has_builds(const khub__tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (!strncmp(tree->files[i].path, "build/", 6)) return 1;
    return 0;
}

/* `wanted` as it is to stand in the lock. */
static int lock_wanted(locking *l, const khub__wanted *wanted, const khub__chain *here, khub_error *err)
{
    khub__wanted pinned = *wanted, on;
    khub__remote remote = {0};
    char name[KHUB__WANTED_NAME_MAX], next[KHUB__WANTED_NAME_MAX];
    if (l->found.count >= MAX_LOCKED)
        return khub__fail(err, KHUB_E_FORMAT, "more than %d kernels are needed", MAX_LOCKED);
    if (khub__lockfile_find(&l->kept, wanted)) khub__lockfile_pin(&l->kept, &pinned, NULL);
    int rc = khub__remote_open_here(&remote, &on, &l->session, &pinned, err);
    if (rc == KHUB_OK) rc = check_asked(&remote, err);
    if (rc == KHUB_OK && *on.repo.id) {
        rc = lock_one(l, khub__wanted_name(next, &on), here, err);
    } else if (rc == KHUB_OK) {
        rc = check_publisher(&remote, err);
        if (rc == KHUB_OK && !has_builds(&remote.tree))
            rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: is no kernel repository: it holds no directory build/",
                            khub__wanted_name(name, wanted));
        if (rc == KHUB_OK) rc = lock_builds(l, &remote, here, err);
    }
    if (rc == KHUB_OK) rc = khub__lockfile_add(&l->found, wanted, remote.at.commit, err);
    khub__remote_close(&remote);
    return rc;
}

static int lock_one(locking *l, const char *name, const khub__chain *before, khub_error *err)
{
    char exact[KHUB__WANTED_NAME_MAX];
    khub__wanted wanted;
    int rc = khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, name, err);
    if (rc == KHUB_OK) rc = settle(&wanted, l, err);
    if (rc != KHUB_OK || is_found(l, &wanted)) return rc;
    const khub__chain here = {khub__wanted_name(exact, &wanted), before};
    rc = khub__chain_check(before, exact, err);
    return rc == KHUB_OK ? lock_wanted(l, &wanted, &here, err) : rc;
}

static int copy_kernels(khub_locked_kernel **out, size_t *count, const khub__lockfile *lock, khub_error *err)
{
    if (!lock->count) return KHUB_OK;
    *out = khub__calloc(lock->count, sizeof(**out));
    if (!*out) return khub__fail_memory(err, "reading a lock");
    for (*count = 0; *count < lock->count; ++*count) {
        char name[KHUB__WANTED_NAME_MAX];
        khub_locked_kernel *to = &(*out)[*count];
        khub__copy(to->name, sizeof(to->name), khub__wanted_name(name, &lock->kernels[*count].wanted));
        khub__copy(to->commit, sizeof(to->commit), lock->kernels[*count].commit);
    }
    return KHUB_OK;
}

int khub_lock_read(khub_locked_kernel **out, size_t *count, const char *path, khub_error *err)
{
    int missing = khub__given("khub_lock_read", out && count && path, err);
    if (missing != KHUB_OK) return missing;
    khub__lockfile lock;
    *out = NULL;
    *count = 0;
    int rc = khub__lockfile_read(&lock, path, err);
    if (rc == KHUB_OK) rc = copy_kernels(out, count, &lock, err);
    khub__lockfile_free(&lock);
    return rc;
}

static int open_locking(locking *l, const khub_lock_options *options, khub_error *err)
{
    khub_lock_options ours;
    int rc = khub__options(&ours, sizeof(ours), options, "khub_lock_options", err);
    if (rc != KHUB_OK) return rc;
    l->hub = ours.hub;
    rc = khub__session_open(&l->session, ours.hub, err);
    l->session.options.refresh = 1;
    return rc == KHUB_OK && ours.lock ? khub__lockfile_read(&l->kept, ours.lock, err) : rc;
}

int khub_lock(khub_locked_kernel **out, size_t *count, const char *const *names,
              const khub_lock_options *options, khub_error *err)
{
    int missing = khub__given("khub_lock", out && count && names, err);
    if (missing != KHUB_OK) return missing;
    locking l = {0};
    *out = NULL;
    *count = 0;
    int rc = open_locking(&l, options, err);
    for (; rc == KHUB_OK && *names; names++)
        rc = lock_one(&l, *names, NULL, err);
    if (rc == KHUB_OK) rc = khub__lockfile_sort(&l.found, err);
    if (rc == KHUB_OK) rc = copy_kernels(out, count, &l.found, err);
    khub__session_close(&l.session);
    khub__lockfile_free(&l.kept);
    khub__lockfile_free(&l.found);
    return rc;
}

static int take(khub__lockfile *lock, const khub_locked_kernel *kernel, khub_error *err)
{
    khub__wanted wanted;
    if (!memchr(kernel->name, 0, sizeof(kernel->name)) ||
        !memchr(kernel->commit, 0, sizeof(kernel->commit)) || !khub__is_commit(kernel->commit))
        return khub__fail(err, KHUB_E_INVAL, "%.200s: \"%.64s\" is no commit (40 or 64 hex digits)",
                          kernel->name, kernel->commit);
    int rc = khub__wanted_parse(&wanted, KHUB__REPO_KERNEL, kernel->name, err);
    return rc == KHUB_OK ? khub__lockfile_add(lock, &wanted, kernel->commit, err) : rc;
}

int khub_lock_text(char **text, const khub_locked_kernel *kernels, size_t count, khub_error *err)
{
    int missing = khub__given("khub_lock_text", text && (kernels || !count), err);
    if (missing != KHUB_OK) return missing;
    khub__lockfile lock = {0};
    int rc = KHUB_OK;
    *text = NULL;
    for (size_t i = 0; rc == KHUB_OK && i < count; i++)
        rc = take(&lock, &kernels[i], err);
    if (rc == KHUB_OK) rc = khub__lockfile_text(text, &lock, err);
    khub__lockfile_free(&lock);
    return rc;
}

int khub_lock_write(const char *path, const khub_locked_kernel *kernels, size_t count, khub_error *err)
{
    int missing = khub__given("khub_lock_write", path != NULL, err);
    if (missing != KHUB_OK) return missing;
    char *text = NULL;
    khub__draft *draft = NULL;
    int rc = khub_lock_text(&text, kernels, count, err);
    if (rc == KHUB_OK) rc = khub__draft_open(&draft, path, err);
    if (rc == KHUB_OK) rc = khub__draft_write(draft, text, strlen(text), err);
    if (rc == KHUB_OK)
        rc = khub__draft_commit(draft, err);
    else
        khub__draft_discard(draft);
    khub_free(text);
    return rc;
}
