#include "trust/signed.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"

#include <stdio.h>

#define BUNDLE "metadata.json.sigstore"

/* By whom a signature is judged, as text: while it is the same a receipt counts. The root's file is told by
 * its identity, so that it isn't read for that. The caller's; NULL: no memory. */
static char *name_judge(const khub_policy *policy)
{
    khub__text text = {0};
    khub__identity root = {0};
    const char *prefix = khub__install_prefix(), *path = policy->trusted_root;
    char *own = path || !prefix ? NULL : khub__path_join(prefix, "share/khub/trusted_root.json");
    if (path || own) khub__identify(&root, NULL, path ? path : own, 0);
    khub__free(own);
    char *rules = khub__policy_text(policy);
    if (!rules) return NULL;
    khub__text_addf(&text, "%llu %llu %llu %lld %s", (unsigned long long)root.device,
                    (unsigned long long)root.inode, (unsigned long long)root.size, (long long)root.changed_ns,
                    rules);
    khub__free(rules);
    return khub__text_take(&text);
}

/* Of nobody that is known: it says nothing, for or against. */
static int is_strangers(khub_signature_reason reason)
{
    return reason == KHUB_SIGNATURE_IDENTITY || reason == KHUB_SIGNATURE_UNKNOWN_AUTHORITY ||
           reason == KHUB_SIGNATURE_UNKNOWN_LOG;
}

static void accept(khub__proof *proof, khub_signature *signature)
{
    khub__trust_add(proof->trust, KHUB__ABOUT_SIGNATURE, KHUB_TRUST_ACCEPTED,
                    "%s: metadata.json is signed by %.300s, of commit %.64s", proof->about,
                    signature->workflow ? signature->workflow : signature->subject,
                    signature->commit ? signature->commit : "unknown");
    proof->is_signed = 1;
    khub__trust_take_signature(proof->trust, signature);
}

static int decide(khub__proof *proof, khub_signature *signature, khub_error *err)
{
    int stranger = is_strangers(signature->reason);
    int must = khub_trust_level_of(proof->trust) == KHUB_TRUST_SIGNED;
    khub__trust_add(proof->trust, KHUB__ABOUT_SIGNATURE,
                    stranger && !must ? KHUB_TRUST_NOTED : KHUB_TRUST_REFUSED,
                    "%s: the signature of metadata.json doesn't count (%s): %.400s", proof->about,
                    khub_signature_reason_name(signature->reason), signature->words);
    khub__trust_take_signature(proof->trust, signature);
    return khub__trust_end(proof->trust, err);
}

static int verify(khub__proof *proof, const khub__bytes *metadata, const khub__bytes *bundle,
                  const khub_policy *policy, khub_error *err)
{
    khub_signature signature;
    khub_signature_options options;
    khub_trusted_root *root;
    KHUB_INIT(&options);
    int rc = khub__policy_root(&root, policy, err);
    if (rc != KHUB_OK) return rc;
    options.root = root;
    options.identities = khub__policy_identities(&options.identity_count, policy);
    khub_error why = {0};
    rc = khub_signature_verify(&signature, metadata->data, metadata->length, bundle->data, bundle->length,
                               &options, NULL, &why);
    khub_trusted_root_free(root);
    if (rc == KHUB_OK) accept(proof, &signature);
    if (rc == KHUB_E_UNTRUSTED) return decide(proof, &signature, err);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s", why.message);
}

/* 1, 0, or KHUB_E_NOMEM. */
static int is_there(const khub__proof *proof, khub_error *err)
{
    if (proof->store) return khub__proof_listed(proof, BUNDLE) != NULL;
    char *path = khub__path_join(proof->build, BUNDLE);
    int there =
        path ? khub__file_kind(path) != KHUB__FILE_NONE : khub__fail_memory(err, "judging a signature");
    khub__free(path);
    return there;
}

static int judge_missing(const khub__proof *proof, khub_error *err)
{
    int must = khub_trust_level_of(proof->trust) == KHUB_TRUST_SIGNED;
    khub__trust_add(proof->trust, KHUB__ABOUT_SIGNATURE, must ? KHUB_TRUST_REFUSED : KHUB_TRUST_NOTED,
                    "%s: metadata.json has no signature%s", proof->about,
                    must ? ", which the level \"signed\" asks for" : "");
    return khub__trust_end(proof->trust, err);
}

/* A receipt counts for the very bytes that it was written for: of both files. */
static int from_receipt(khub__proof *proof, khub_error *err)
{
    khub_signature signature;
    if (proof->read_believed < 2) return 0;
    int rc = khub__receipt_signature(&signature, &proof->receipt, proof->judged_by, err);
    if (rc == 1) accept(proof, &signature);
    return rc;
}

/* What can't be read as one is no signature of anybody. */
static int refuse_file(khub__proof *proof, const khub_error *why, khub_error *err)
{
    khub__trust_add(proof->trust, KHUB__ABOUT_SIGNATURE, KHUB_TRUST_REFUSED,
                    "%s: the signature of metadata.json can't be one: %.600s", proof->about, why->message);
    return khub__trust_end(proof->trust, err);
}

/* KHUB_E_FORMAT: it is too long, which the list of files says before it is fetched, or no file. */
static int read_bundle(khub__bytes *out, khub__proof *proof, khub_error *err)
{
    const khub__tree_file *listed = khub__proof_listed(proof, BUNDLE);
    memset(out, 0, sizeof(*out));
    if (listed && listed->size != UINT64_MAX && listed->size > KHUB__SIGNATURE_MAX_BYTES)
        return khub__fail(err, KHUB_E_FORMAT, BUNDLE " is %llu bytes long, at most %d are read",
                          (unsigned long long)listed->size, KHUB__SIGNATURE_MAX_BYTES);
    return khub__proof_read(out, proof, BUNDLE, KHUB__SIGNATURE_MAX_BYTES, err);
}

int khub__proof_signature(khub__proof *proof, const khub__bytes *metadata, const khub_policy *policy,
                          khub_error *err)
{
    khub__bytes bundle;
    khub__free(proof->judged_by);
    proof->judged_by = NULL;
    proof->is_signed = 0;
    int rc = is_there(proof, err);
    if (rc <= 0) return rc == 0 ? judge_missing(proof, err) : rc;
    proof->judged_by = name_judge(policy);
    if (!proof->judged_by) return khub__fail_memory(err, "judging a signature");
    khub_error why = {0};
    rc = read_bundle(&bundle, proof, &why);
    if (rc == KHUB_E_FORMAT) return refuse_file(proof, &why, err);
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    rc = from_receipt(proof, err);
    if (rc == 0) rc = verify(proof, metadata, &bundle, policy, err);
    khub__bytes_free(&bundle);
    return rc > 0 ? KHUB_OK : rc;
}
