#include "fetch/remote.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/ours.h"
#include "base/path.h"
#include "cache/disk.h"
#include "fetch/snapshots.h"
#include "fetch/status.h"

#include <stdio.h>

enum { MAX_REDIRECTS = 5 };

int khub__session_open(khub__session *out, const khub_hub_options *options, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = khub__options(&out->options, sizeof(out->options), options, "khub_hub_options", err);
    khub__hub_settings settings = {0};
    if (rc == KHUB_OK) rc = khub__hub_settings_read(&settings, &out->options, err);
    if (rc != KHUB_OK) return rc;
    out->rules = (khub__rules){.given = out->options.policy, .named = out->options.trust};
    return khub__client_open(&out->client, &settings, out->options.progress, out->options.progress_user, err);
}

void khub__session_close(khub__session *session)
{
    khub__client_close(session->client);
    khub__rules_close(&session->rules);
    memset(session, 0, sizeof(*session));
}

/* Kernels were model repositories once, and a cache may still hold them as such: good enough offline. */
static int open_store(khub__remote *remote, khub_error *err)
{
    const char *dir = remote->session->options.cache_dir;
    int rc = khub__store_open(&remote->store, &remote->wanted.repo, dir, err);
    if (rc == KHUB_OK) rc = khub__disk_check_cache(remote->store.cache, err); /* before anything is asked */
    if (rc != KHUB_OK || remote->wanted.repo.kind != KHUB__REPO_KERNEL ||
        !khub__client_offline(remote->session->client) ||
        khub__file_kind(remote->store.folder) == KHUB__FILE_DIRECTORY)
        return rc;
    khub__store old = {0};
    khub__repo model = remote->wanted.repo;
    model.kind = KHUB__REPO_MODEL;
    rc = khub__store_open(&old, &model, dir, err);
    if (rc != KHUB_OK || khub__file_kind(old.folder) != KHUB__FILE_DIRECTORY) {
        khub__store_close(&old);
        return rc;
    }
    khub__log(KHUB_LOG_NOTICE, "get", model.id,
              "is in the cache as a model repository, the retired type of kernels: %s", old.folder);
    khub__store_close(&remote->store);
    remote->store = old;
    return KHUB_OK;
}

/* Whose list of files the cache has: one that came from elsewhere, after a rename, is that repository's, also
 * when nothing is asked. */
static int recall_move(khub__remote *remote, khub_error *err)
{
    khub_error why = {0};
    if (strcmp(remote->at.repo.id, remote->store.repo.id) != 0) return KHUB_OK; /* the Hub said so just now */
    int rc = khub__store_moved(&remote->at.repo, &remote->store, remote->at.commit, &why);
    return rc == KHUB_OK || rc == KHUB_E_NOTFOUND ? KHUB_OK : khub__fail(err, rc, "%s", why.message);
}

/* A list whose origin can't be kept isn't kept either. */
static void keep_tree(const khub__remote *remote)
{
    khub_error why = {0};
    const char *commit = remote->at.commit;
    int rc = KHUB_OK;
    if (strcmp(remote->at.repo.id, remote->store.repo.id) != 0)
        rc = khub__store_set_moved(&remote->store, commit, &remote->at.repo, &why);
    if (rc == KHUB_OK) rc = khub__store_set_tree(&remote->store, commit, &remote->tree, &why);
    if (rc != KHUB_OK)
        khub__log(KHUB_LOG_DEBUG, "get", remote->wanted.repo.id,
                  "the cache doesn't keep the list of files: %s", why.message);
}

static void note_move(khub__remote *remote, const khub__repo *there)
{
    if (!*there->id) return;
    khub__log(KHUB_LOG_NOTICE, "get", remote->wanted.repo.id, "is called %s now", there->id);
    remote->at.repo = *there;
}

/* The cache's list. One that others may have written proves nothing: the Hub is asked where it can be, else
 * *foreign says so (khub_free). KHUB_E_NOTFOUND: there is none that counts. */
static int cached_tree(khub__remote *remote, khub_error *err)
{
    char name[KHUB__COMMIT_MAX + 16];
    khub_error why = {0};
    snprintf(name, sizeof(name), "trees/%s.json", remote->at.commit);
    int rc = khub__disk_is_ours(&remote->store, name, &why);
    if (rc == KHUB_E_NOMEM) return khub__fail_memory(err, "reading the list of files");
    if (rc == KHUB_E_UNTRUSTED) {
        if (!khub__client_offline(remote->session->client)) return KHUB_E_NOTFOUND;
        if (!(remote->foreign = khub__strdup(why.message)))
            return khub__fail_memory(err, "reading the list of files");
    }
    return khub__store_tree(&remote->tree, &remote->store, remote->at.commit, err);
}

/* The cache's list, else the Hub's; a snapshot's own files when neither is to be had. */
static int learn_tree(khub__remote *remote, khub_error *err)
{
    const char *commit = remote->at.commit;
    khub_error why = {0}, other = {0};
    khub__repo there;
    int rc = cached_tree(remote, &why);
    if (rc == KHUB_OK) return recall_move(remote, err);
    if (rc != KHUB_E_NOTFOUND) return khub__fail(err, rc, "%s", why.message);
    khub_error_clear(&why);
    rc = khub__client_tree(&remote->tree, &there, remote->session->client, &remote->at.repo, commit, &why);
    if (rc == KHUB_OK) {
        note_move(remote, &there);
        keep_tree(remote);
        return KHUB_OK;
    }
    int shown = rc == KHUB_E_OFFLINE || rc == KHUB_E_NETWORK
                    ? khub__snapshot_tree(&remote->tree, &remote->store, commit, &other)
                    : rc;
    if (shown == KHUB_OK) return KHUB_OK;
    if (shown == KHUB_E_NOMEM) return khub__fail(err, shown, "%s", other.message);
    char advice[KHUB__ADVICE_MAX];
    if (rc == KHUB_E_OFFLINE)
        return khub__fail(err, rc, "%s@%s: isn't in the cache (%s); %s", remote->wanted.repo.id, commit,
                          remote->store.cache,
                          khub__advise_download(advice, &remote->store, &remote->wanted));
    return khub__fail(err, rc, "%s", why.message);
}

static int open_one(khub__remote *out, khub__session *session, const khub__wanted *wanted, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->session = session;
    out->wanted = *wanted;
    int rc = open_store(out, err);
    if (rc == KHUB_OK)
        rc = khub__resolve(&out->at, &out->store, wanted, session->client, session->options.refresh, err);
    if (rc == KHUB_OK) rc = learn_tree(out, err);
    if (rc == KHUB_OK && !(out->path = khub__store_snapshot(&out->store, out->at.commit)))
        rc = khub__fail_memory(err, "opening a repository of the Hub");
    if (rc != KHUB_OK) khub__remote_close(out);
    return rc;
}

int khub__remote_check_size(const khub__remote *remote, const char *path, uint64_t most, khub_error *err)
{
    const khub__tree_file *file = khub__tree_find(&remote->tree, path);
    if (!file || file->size == UINT64_MAX || file->size <= most) return KHUB_OK;
    return khub__fail(err, KHUB_E_FORMAT, "%s: its %s is %llu bytes long, at most %llu are read",
                      remote->at.repo.id, path, (unsigned long long)file->size, (unsigned long long)most);
}

/* What kernel-status.toml says, if there is one. */
static int read_status(khub__status *out, khub__remote *remote, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    if (remote->wanted.repo.kind != KHUB__REPO_KERNEL ||
        !khub__tree_find(&remote->tree, "kernel-status.toml"))
        return KHUB_OK;
    khub__bytes text = {0};
    int rc = khub__remote_read(&text, remote, "kernel-status.toml", KHUB__STATUS_MAX_BYTES, err);
    if (rc == KHUB_OK) rc = khub__remote_check_believed(remote, "kernel-status.toml", err);
    char *path = khub__path_join(remote->path, "kernel-status.toml");
    if (rc == KHUB_OK)
        rc = path ? khub__status_parse(out, text.data, text.length, path, err)
                  : khub__fail_memory(err, "reading kernel-status.toml");
    khub__bytes_free(&text);
    khub__free(path);
    return rc;
}

/* The version asked for stays the version asked for; who asked for a revision gets the one that the redirect
 * names. */
static int redirect(khub__wanted *wanted, const khub__session *session, const khub__status *status,
                    khub_error *err)
{
    char name[KHUB__REPO_ID_MAX + KHUB__REVISION_MAX + 2];
    khub__wanted next;
    khub_error why = {0};
    char range[KHUB__RANGE_TEXT];
    khub__range_text(range, &wanted->range);
    if (wanted->is_range) /* not the revision, here and below: a lock may have put a commit there */
        snprintf(name, sizeof(name), "%s@%s", status->destination, range);
    else if (wanted->version >= 0)
        snprintf(name, sizeof(name), "%s@v%lld", status->destination, (long long)wanted->version);
    else
        snprintf(name, sizeof(name), "%s@%s", status->destination, status->revision);
    if (khub__wanted_parse(&next, KHUB__REPO_KERNEL, name, &why) != KHUB_OK)
        return khub__fail(err, KHUB_E_FORMAT, "%s: its kernel-status.toml redirects to what is no kernel: %s",
                          wanted->repo.id, why.message);
    khub__log(KHUB_LOG_NOTICE, "get", wanted->repo.id, "its publisher redirects to %s", name);
    *wanted = next;
    return session->pin ? session->pin(session->pin_user, wanted, err) : KHUB_OK;
}

int khub__remote_open_here(khub__remote *out, khub__wanted *on, khub__session *session,
                           const khub__wanted *wanted, khub_error *err)
{
    khub__status status = {0};
    memset(on, 0, sizeof(*on));
    int rc = open_one(out, session, wanted, err);
    if (rc == KHUB_OK) rc = read_status(&status, out, err);
    if (rc == KHUB_OK && *status.destination) {
        *on = *wanted;
        rc = redirect(on, session, &status, err);
    }
    if (rc != KHUB_OK) khub__remote_close(out);
    return rc;
}

int khub__remote_open(khub__remote *out, khub__session *session, const khub__wanted *wanted, khub_error *err)
{
    khub__wanted at = *wanted, on;
    for (int hops = 0; hops <= MAX_REDIRECTS; hops++) {
        int rc = khub__remote_open_here(out, &on, session, &at, err);
        if (rc != KHUB_OK || !*on.repo.id) return rc;
        khub__remote_close(out);
        at = on;
    }
    return khub__fail(err, KHUB_E_FORMAT,
                      "%s: kernel-status.toml redirects more than %d times, now to %s; a circle?",
                      wanted->repo.id, MAX_REDIRECTS, at.repo.id);
}

void khub__remote_close(khub__remote *remote)
{
    khub__store_close(&remote->store);
    khub__tree_free(&remote->tree);
    khub__free(remote->path);
    khub__free(remote->foreign);
    memset(remote, 0, sizeof(*remote));
}

/* Puts the files that the snapshot lacks first. */
static void look(khub__picked *picked, const khub__remote *remote)
{
    picked->missing = 0;
    for (size_t i = 0; i < picked->count; i++) {
        const khub__tree_file *file = picked->files[i];
        if (khub__store_has(&remote->store, remote->at.commit, file->path, file->size)) continue;
        picked->files[i] = picked->files[picked->missing];
        picked->files[picked->missing++] = file;
    }
}

int khub__remote_pick(khub__picked *out, const khub__remote *remote, khub__pick_fn *pick, void *user,
                      khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->files = khub__calloc(remote->tree.count + 1, sizeof(*out->files));
    if (!out->files) return khub__fail_memory(err, "picking files");
    for (size_t i = 0; i < remote->tree.count; i++)
        if (pick(user, remote->tree.files[i].path)) out->files[out->count++] = &remote->tree.files[i];
    look(out, remote);
    return KHUB_OK;
}

void khub__picked_free(khub__picked *picked)
{
    khub__free(picked->files);
    memset(picked, 0, sizeof(*picked));
}

/* The files that are on their way, and where each goes. */
typedef struct batch {
    khub__fetch *files;
    khub__blob **blobs;
    size_t count;
    int distrust; /* 1: what the cache has under their names is something else */
} batch;

static void free_load(batch *load)
{
    for (size_t i = 0; i < load->count; i++)
        khub__blob_free(load->blobs[i]);
    khub__free(load->blobs);
    khub__free(load->files);
}

static int plan(batch *load, const khub__remote *remote, const khub__picked *picked, khub_error *err)
{
    load->files = khub__calloc(picked->missing, sizeof(*load->files));
    load->blobs = khub__calloc(picked->missing, sizeof(khub__blob *));
    if (!load->files || !load->blobs) return khub__fail_memory(err, "fetching");
    while (load->count < picked->missing) {
        const khub__tree_file *file = picked->files[load->count];
        khub__blob **blob = &load->blobs[load->count];
        int rc = khub__blob_new(blob, &remote->store, remote->at.commit, file->path, err);
        if (rc != KHUB_OK) return rc;
        if (load->distrust) khub__blob_distrust(*blob);
        load->files[load->count++] =
            (khub__fetch){file->path, file->size, khub__tree_etag(file), &khub__blob_sink, *blob};
    }
    return KHUB_OK;
}

static int bring(khub__remote *remote, const khub__picked *picked, int distrust, khub_error *err)
{
    batch load = {.distrust = distrust};
    char what[KHUB__REPO_ID_MAX + KHUB__REVISION_MAX + 3];
    snprintf(what, sizeof(what), "%s@%s", remote->wanted.repo.id,
             *remote->wanted.revision ? remote->wanted.revision : "main");
    int rc = plan(&load, remote, picked, err);
    if (rc == KHUB_OK) {
        khub_error why = {0};
        rc = khub__client_fetch(remote->session->client, &remote->at.repo, remote->at.commit, load.files,
                                load.count, what, &why);
        char advice[KHUB__ADVICE_MAX];
        if (rc == KHUB_E_OFFLINE)
            khub__fail(err, rc,
                       "%s: %zu of its files %s in the cache (%s, for one), and the network is off; %s", what,
                       load.count, load.count == 1 ? "isn't" : "aren't", load.files[0].path,
                       khub__advise_download(advice, &remote->store, &remote->wanted));
        else if (rc != KHUB_OK)
            khub__fail(err, rc, "%s", why.message);
    }
    free_load(&load);
    return rc;
}

int khub__remote_bring(khub__remote *remote, khub__picked *picked, khub_error *err)
{
    enum { ROUNDS = 3 };
    for (int round = 0; picked->missing > 0; round++) {
        const char *name = remote->wanted.repo.id;
        if (round == ROUNDS)
            return khub__fail(err, KHUB_E_IO,
                              "%s: %zu of its files (%s, for one) were taken out of the cache %s while they "
                              "were fetched",
                              name, picked->missing, picked->files[0]->path, remote->store.cache);
        if (round > 0)
            khub__log(KHUB_LOG_NOTICE, "get", name,
                      "%zu of its files were taken out of the cache meanwhile and are fetched again",
                      picked->missing);
        int rc = bring(remote, picked, 0, err);
        if (rc != KHUB_OK) return rc;
        look(picked, remote);
    }
    return KHUB_OK;
}

int khub__remote_mend(khub__remote *remote, const khub__tree_file **files, size_t count, khub_error *err)
{
    const khub__picked all = {files, count, count};
    return bring(remote, &all, 1, err);
}

/* Reads what the snapshot has. KHUB_E_UNTRUSTED: it isn't what the list says. */
static int read_file(khub__bytes *out, const khub__remote *remote, const khub__tree_file *file, size_t most,
                     khub_error *err)
{
    khub_error why = {0};
    char *full = khub__path_join(remote->path, file->path);
    int rc =
        full ? khub__snapshot_read(out, full, file, most, &why) : khub__fail_memory(&why, "reading a file");
    khub__free(full);
    if (rc == KHUB_E_UNTRUSTED)
        return khub__fail(err, rc, "%s: %s: %s", remote->at.repo.id, file->path, why.message);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
}

/* KHUB_E_UNTRUSTED: it can't be fetched again. */
static int mend_file(khub__remote *remote, const khub__tree_file *file, const khub_error *damage,
                     khub_error *err)
{
    const char *name = remote->at.repo.id;
    khub_error why = {0};
    if (remote->session->only_looks || khub__client_offline(remote->session->client))
        return khub__fail(err, KHUB_E_UNTRUSTED, "%s", damage->message);
    khub__log(KHUB_LOG_WARNING, "get", name, "damaged in the cache, and fetched again: %s", damage->message);
    int rc = khub__remote_mend(remote, &file, 1, &why);
    if (rc == KHUB_OK) return rc;
    if (rc == KHUB_E_NOMEM || rc == KHUB_E_CANCELED) return khub__fail(err, rc, "%s", why.message);
    khub__log(KHUB_LOG_WARNING, "get", name, "it can't be fetched again: %s", why.message);
    return khub__fail(err, KHUB_E_UNTRUSTED, "%s", damage->message);
}

int khub__remote_read(khub__bytes *out, khub__remote *remote, const char *path, size_t most, khub_error *err)
{
    const khub__tree_file *file = khub__tree_find(&remote->tree, path);
    khub_error damage = {0};
    memset(out, 0, sizeof(*out));
    if (!file) return khub__fail(err, KHUB_E_NOTFOUND, "%s: has no %s", remote->at.repo.id, path);
    khub__picked one = {&file, 1, 0};
    int rc = khub__remote_check_size(remote, path, most, err);
    if (rc != KHUB_OK) return rc;
    look(&one, remote);
    rc = khub__remote_bring(remote, &one, err);
    if (rc != KHUB_OK) return rc;
    rc = read_file(out, remote, file, most, &damage);
    if (rc != KHUB_E_UNTRUSTED) return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", damage.message);
    rc = mend_file(remote, file, &damage, err);
    return rc == KHUB_OK ? read_file(out, remote, file, most, err) : rc;
}

int khub__remote_check_believed(const khub__remote *remote, const char *path, khub_error *err)
{
    const khub__tree_file *file = khub__tree_find(&remote->tree, path);
    khub_error why = {0};
    if (remote->foreign)
        return khub__fail(err, KHUB_E_UNTRUSTED, "%s: nothing proves what its %s says: %s",
                          remote->at.repo.id, path, remote->foreign);
    if (file && khub__tree_etag(file)) return KHUB_OK;
    char *full = khub__path_join(remote->path, path);
    int rc = full ? khub__path_is_ours(NULL, full, &why) : khub__fail_memory(&why, "reading a file");
    khub__free(full);
    if (rc == KHUB_E_UNTRUSTED)
        return khub__fail(err, rc, "%s: nothing proves what its %s says: %s", remote->at.repo.id, path,
                          why.message);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
}

int khub__remote_fetch(khub__remote *remote, khub__pick_fn *pick, void *user, khub_error *err)
{
    khub__picked picked;
    int rc = khub__remote_pick(&picked, remote, pick, user, err);
    if (rc == KHUB_OK) rc = khub__remote_bring(remote, &picked, err);
    khub__picked_free(&picked);
    return rc;
}
