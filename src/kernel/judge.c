#include "kernel/judge.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "trust/publisher.h"
#include "trust/signed.h"

static khub__remote *remote_of(const khub__judging *j)
{
    return j->place->repository.remote;
}

/* What the words of decisions are about. */
static const char *about(const khub__judging *j)
{
    const khub__remote *remote = remote_of(j);
    return remote ? remote->at.repo.id : j->kernel->name;
}

static int open_remote(khub__judging *j, khub_error *err)
{
    khub__remote *remote = remote_of(j);
    j->proof.store = &remote->store;
    j->proof.commit = remote->at.commit;
    j->proof.variant = j->kernel->variant;
    j->proof.foreign = remote->foreign;
    int rc = khub__repository_pick(&j->files, &j->place->repository, j->kernel->variant, err);
    j->proof.files = j->files.files;
    j->proof.file_count = j->files.count;
    return rc == KHUB_OK ? khub__proof_open(&j->proof, err) : rc;
}

int khub__judge_open(khub__judging *out, khub_kernel *kernel, khub__place *place, khub__way *way,
                     khub_error *err)
{
    const khub__repository *at = &place->repository;
    *out = (khub__judging){.kernel = kernel,
                           .place = place,
                           .way = way,
                           .built_in = !at->remote && khub__repository_is_built_in(at->path)};
    int rc = khub__place_begin_trust(&kernel->trust, place, way, kernel->name, err);
    if (rc == KHUB_OK && !out->built_in)
        rc = khub__rules_policy(&out->policy, khub__place_rules(place, way), err);
    if (rc != KHUB_OK) return rc;
    out->proof = (khub__proof){.trust = kernel->trust,
                               .about = about(out),
                               .build = kernel->build,
                               .refuse_unknown = out->policy && out->policy->offline_refuse,
                               .whole = way->verifies};
    return at->remote ? open_remote(out, err) : KHUB_OK;
}

void khub__judge_close(khub__judging *j)
{
    khub__proven_drop(&j->proven);
    khub__metadata_free(&j->metadata);
    khub__proof_close(&j->proof);
    khub__picked_free(&j->files);
}

/* ---- metadata ---- */

static int judge_publisher(khub__judging *j, khub_error *err)
{
    khub__remote *remote = remote_of(j);
    int again = j->files.missing > 0 && !j->way->only_metadata;
    return remote ? khub__publisher_check(j->kernel->trust, &remote->store, &remote->at.repo,
                                          remote->session->client, &remote->session->rules, again, err)
                  : KHUB_OK;
}

/* Fetches damaged files again. KHUB_E_UNTRUSTED: it can't be done, or didn't help. */
static int mend(khub__judging *j, khub_error *err)
{
    khub__remote *remote = remote_of(j);
    khub_error why = {0};
    int can = remote && !khub__client_offline(remote->session->client);
    for (size_t i = 0; can && i < j->proof.damaged_count; i++)
        can = j->proof.damaged[i] && khub__tree_etag(j->proof.damaged[i]);
    if (!can) return khub__proof_refuse_damage(&j->proof, err);
    khub__log(KHUB_LOG_WARNING, "get", about(j), "damaged in the cache, and fetched again: %s",
              j->proof.damage.message);
    int rc = khub__remote_mend(remote, j->proof.damaged, j->proof.damaged_count, &why);
    if (rc == KHUB_E_NOMEM || rc == KHUB_E_CANCELED) return khub__fail(err, rc, "%s", why.message);
    if (rc != KHUB_OK) {
        khub__log(KHUB_LOG_WARNING, "get", about(j), "it can't be fetched again: %s", why.message);
        return khub__proof_refuse_damage(&j->proof, err);
    }
    khub__proof_again(&j->proof);
    return KHUB_OK;
}

static int parse(khub__judging *j, const khub__bytes *bytes, const char *path, khub_error *err)
{
    int rc = khub__metadata_parse(&j->metadata, bytes->data, bytes->length, path, err);
    j->has_claim = rc == KHUB_OK && j->metadata.digest && (!j->built_in || j->way->verifies);
    j->kernel->version = j->metadata.version;
    return j->has_claim ? khub__digest_read(&j->claim, j->metadata.digest, path, err) : rc;
}

/* Reads it, judges whose it is, and only then looks into it. */
static int read_metadata(khub__judging *j, khub_error *err)
{
    khub__bytes bytes = {0};
    khub_error why = {0};
    char *path = khub__path_join(j->kernel->build, "metadata.json");
    if (!path) return khub__fail_memory(err, "reading metadata.json");
    j->proof.read_believed = 0;
    int rc = khub__proof_read(&bytes, &j->proof, "metadata.json", KHUB__METADATA_MAX, &why);
    if (rc == KHUB_E_NOTFOUND)
        rc = khub__fail(err, rc, "%s: is missing; no build is loaded without one (docs/writing.md)", path);
    else if (rc != KHUB_OK)
        rc = khub__fail(err, rc, "%s", why.message);
    if (rc == KHUB_OK && !j->built_in) rc = khub__proof_signature(&j->proof, &bytes, j->policy, err);
    if (rc == KHUB_OK) rc = parse(j, &bytes, path, err);
    khub__bytes_free(&bytes);
    khub__free(path);
    return rc;
}

/* A build of an older version that is served for the one that was asked for isn't what a lock means. */
static void judge_version(const khub__judging *j)
{
    const khub__remote *remote = remote_of(j);
    if (!remote || remote->wanted.version < 0 || remote->wanted.version == j->metadata.version) return;
    int older = j->metadata.version < remote->wanted.version;
    khub__trust_add(j->kernel->trust, KHUB__ABOUT_VERSION,
                    j->way->locked && older ? KHUB_TRUST_REFUSED : KHUB_TRUST_NOTED,
                    "%s: version %lld was asked for, the metadata.json of build/%s says version %lld",
                    about(j), (long long)remote->wanted.version, j->kernel->variant,
                    (long long)j->metadata.version);
}

/* "-" and "_" are alike: a repository's name may have either, metadata.json's only the first. */
static int is_called(const char *name, const khub__repo *repo)
{
    const char *as = strchr(repo->id, '/');
    size_t i = 0;
    for (as = as ? as + 1 : repo->id; name && name[i]; i++)
        if (as[i] != name[i] && !(as[i] == '_' && name[i] == '-')) return 0;
    return name && !as[i];
}

static int is_version(int64_t version, const khub__wanted *wanted)
{
    return wanted->is_range ? khub__range_has(&wanted->range, version)
                            : wanted->version >= 0 && wanted->version == version;
}

/* Where the list of files is another user's, so is the word on which commit it is of. What a signature proves
 * is a kernel's name, its version and its files: that must be all that was asked for. */
static void judge_foreign(const khub__judging *j)
{
    const khub__remote *remote = remote_of(j);
    if (!remote || !j->proof.foreign) return;
    const khub__wanted *wanted = &remote->wanted;
    const char *fault = NULL;
    if (j->way->locked)
        fault = "a lock means one commit";
    else if (!wanted->is_range && wanted->version < 0)
        fault = "no version was asked for, which is all that a signature proves";
    else if (!is_called(j->metadata.name, &wanted->repo))
        fault = "metadata.json is another kernel's";
    else if (!is_version(j->metadata.version, wanted))
        fault = "metadata.json is another version's";
    if (fault)
        khub__trust_add(j->kernel->trust, KHUB__ABOUT_CACHE, KHUB_TRUST_REFUSED,
                        "%s: %s (it says %s, version %lld), and that this is commit %s isn't believed: %s",
                        about(j), fault, j->metadata.name, (long long)j->metadata.version, j->kernel->commit,
                        j->proof.foreign);
}

/* What the level asks for beside what is always asked for. */
static void judge_level(const khub__judging *j)
{
    khub_trust *trust = j->kernel->trust;
    khub_trust_level level = khub_trust_level_of(trust);
    int locked = remote_of(j) && j->way->locked && !j->proof.foreign;
    if (locked)
        khub__trust_add(trust, KHUB__ABOUT_LOCK, KHUB_TRUST_ACCEPTED, "%s: %s has commit %s", about(j),
                        j->way->lock.path, j->kernel->commit);
    if (j->built_in || j->has_claim || level == KHUB_TRUST_PUBLISHER) return;
    if (level == KHUB_TRUST_SIGNED || !locked)
        khub__trust_add(trust, KHUB__ABOUT_DIGEST, KHUB_TRUST_REFUSED,
                        "%s: metadata.json has no digest%s, which the level \"%s\" asks for", about(j),
                        level == KHUB_TRUST_SIGNED ? "" : ", and no lock is given",
                        khub_trust_level_name(level));
}

/* A lock of the older form has hashes of builds. */
static int judge_hash(khub__judging *j, khub_error *err)
{
    const khub__remote *remote = remote_of(j);
    khub_error why = {0};
    if (!remote) return KHUB_OK;
    int rc = khub__lockfile_check(&j->way->lock, remote->wanted.repo.id, remote->at.commit,
                                  j->kernel->variant, &remote->tree, &remote->store, &why);
    if (rc != KHUB_E_UNTRUSTED) return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
    khub__trust_add(j->kernel->trust, KHUB__ABOUT_LOCK, KHUB_TRUST_REFUSED, "%s", why.message);
    return j->way->verifies ? KHUB_OK : khub__trust_end(j->kernel->trust, err);
}

int khub__judge_metadata(khub__judging *j, khub_error *err)
{
    int rc = judge_hash(j, err);
    if (rc == KHUB_OK && !j->way->verifies)
        rc = khub__repository_bring_metadata(&j->place->repository, j->kernel->variant, 1, err);
    if (rc == KHUB_OK) rc = judge_publisher(j, err);
    if (rc != KHUB_OK) return rc;
    khub_error why = {0};
    rc = read_metadata(j, &why);
    if (rc == KHUB_E_UNTRUSTED && j->proof.damaged_count && !j->way->verifies) {
        rc = mend(j, err);
        khub_error_clear(&why);
        if (rc == KHUB_OK) rc = read_metadata(j, &why);
        if (rc == KHUB_E_UNTRUSTED && j->proof.damaged_count) rc = khub__proof_refuse_damage(&j->proof, err);
    }
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    judge_version(j);
    judge_foreign(j);
    judge_level(j);
    return khub__trust_end(j->kernel->trust, err);
}

/* ---- content ---- */

/* Not a directory of this machine that says nothing of itself, nor what came with khub (parse). */
static int is_to_be_proven(const khub__judging *j)
{
    return remote_of(j) || j->has_claim;
}

int khub__judge_bring(khub__judging *j, khub_error *err)
{
    return remote_of(j) ? khub__remote_bring(remote_of(j), &j->files, err) : KHUB_OK;
}

static int prove(khub__judging *j, int copy, khub_error *err)
{
    const khub__digest_claim *claim = j->has_claim ? &j->claim : NULL;
    int rc = khub__proof_content(&j->proven, &j->proof, claim, copy, err);
    int undecided = rc == KHUB_E_UNTRUSTED && !j->proof.damaged_count && khub_trust_holds(j->kernel->trust);
    if (copy || !undecided) return rc;
    khub_error_clear(err); /* somebody writes to a file */
    return khub__proof_content(&j->proven, &j->proof, claim, 1, err);
}

int khub__judge_content(khub__judging *j, int copy, khub_error *err)
{
    khub_error why = {0};
    if (!is_to_be_proven(j)) return KHUB_OK;
    khub__proven_drop(&j->proven);
    int rc = prove(j, copy, &why);
    if (rc == KHUB_E_UNTRUSTED && j->proof.damaged_count && !j->way->verifies) {
        rc = mend(j, err);
        khub_error_clear(&why);
        if (rc == KHUB_OK) rc = prove(j, copy, &why);
        if (rc == KHUB_E_UNTRUSTED && j->proof.damaged_count) rc = khub__proof_refuse_damage(&j->proof, err);
    }
    j->is_proven = rc == KHUB_OK;
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
}
