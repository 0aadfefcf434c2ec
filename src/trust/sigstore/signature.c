#include "trust/sigstore/identity.h"
#include "trust/sigstore/log.h"
#include "trust/sigstore/sct.h"
#include "trust/sigstore/timestamp.h"

#include "base/both.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "platform/threads.h"

enum { TIMES_MAX = KHUB__TIMESTAMPS_MAX + 1 };

/* Whether somebody signed something: asked at most once, since that takes 1 ms for a key on P-384. */
typedef enum answer { NOT_ASKED, SIGNED, NOT_SIGNED } answer;

/* One signature on its way. */
typedef struct judging {
    khub__span data;
    const khub_trusted_root *root;
    const khub_identity *identities;
    size_t identity_count;
    khub__verdict verdict;
    khub__bundle bundle;
    khub__certificate certificate; /* the signer's */
    khub__key key;                 /* its */
    khub__timestamp timestamps[KHUB__TIMESTAMPS_MAX];
    /* when it was signed, as proven; the log's is proven later, by its promise */
    int64_t times_us[TIMES_MAX];
    size_t time_count;
    int64_t timestamp_us; /* the first of the times that a timestamp authority proved; -1: none */
    answer signed_by[KHUB__ROOT_ENTRIES_MAX]; /* the certificate, by the index of root->authorities */
    answer timestamp_signed[KHUB__TIMESTAMPS_MAX], data_signed;
    const khub__certificate *issuer;
    const khub__log *log;
    khub__signer signer;
    int holds; /* nothing but this lets a signature pass */
} judging;

static int read_certificates(judging *j)
{
    khub__certificate other;
    for (size_t i = j->bundle.certificate_count; i-- > 0;) {
        const char *wrong = khub__certificate_read(i ? &other : &j->certificate, j->bundle.certificates[i]);
        if (wrong) return khub__refuse(&j->verdict, KHUB_SIGNATURE_BAD_CERTIFICATE, "certificate: %s", wrong);
    }
    if (khub__key_read(&j->key, j->certificate.key) ||
        (j->key.kind != KHUB__KEY_P256 && j->key.kind != KHUB__KEY_P384))
        return khub__refuse(&j->verdict, KHUB_SIGNATURE_BAD_KEY,
                            "certificate: its key isn't a point on the curve P-256 or P-384");
    return khub__signer_read(&j->signer, &j->certificate, &j->verdict);
}

static int read_timestamps(judging *j)
{
    const khub__bundle *b = &j->bundle;
    for (size_t i = 0; i < b->timestamp_count; i++) {
        const char *wrong = khub__timestamp_read(&j->timestamps[i], b->timestamps[i]);
        for (size_t k = 0; k < i && !wrong; k++)
            if (khub__span_is(b->timestamps[i], b->timestamps[k])) wrong = "it is there twice";
        if (wrong) return khub__refuse(&j->verdict, KHUB_SIGNATURE_BAD_TIMESTAMP, "timestamp: %s", wrong);
    }
    if (b->timestamp_count && !j->root->timestamp_authorities.count)
        return khub__refuse(&j->verdict, KHUB_SIGNATURE_BAD_TIMESTAMP,
                            "timestamp: the trusted root has no timestamp authorities");
    return 0;
}

/* 1: the authority signed the certificate. */
static int is_issuer(judging *j, size_t i)
{
    const khub__authority *a = &j->root->authorities.items[i];
    if (j->signed_by[i] == NOT_ASKED)
        j->signed_by[i] = khub__certificate_names(&j->certificate, &a->certificates[0]) &&
                                  khub__certificate_is_signed(&j->certificate, &a->key)
                              ? SIGNED
                              : NOT_SIGNED;
    return j->signed_by[i] == SIGNED;
}

/* The authority that the certificate had at this time; NULL: it wasn't valid then. */
static const khub__authority *authority_at(judging *j, int64_t time_us)
{
    if (time_us < j->certificate.not_before_us || time_us > j->certificate.not_after_us) return NULL;
    for (size_t i = 0; i < j->root->authorities.count; i++)
        if (khub__authority_valid(&j->root->authorities.items[i], time_us) && is_issuer(j, i))
            return &j->root->authorities.items[i];
    return NULL;
}

/* Somebody of the trusted root issued the certificate, whenever that was. */
static int judge_issuer(judging *j)
{
    int named = 0;
    for (size_t i = 0; i < j->root->authorities.count; i++) {
        if (is_issuer(j, i)) return 0;
        named |= khub__certificate_names(&j->certificate, &j->root->authorities.items[i].certificates[0]);
    }
    if (named)
        return khub__refuse(&j->verdict, KHUB_SIGNATURE_BAD_CHAIN,
                            "certificate: the authority that it names didn't sign it");
    return khub__refuse(
        &j->verdict, KHUB_SIGNATURE_UNKNOWN_AUTHORITY,
        "certificate: no authority of the trusted root issued it; the root may be out of date");
}

static int is_timestamp_signed(judging *j, size_t i)
{
    if (j->timestamp_signed[i] == NOT_ASKED)
        j->timestamp_signed[i] =
            khub__timestamp_holds(&j->timestamps[i], &j->root->timestamp_authorities, j->bundle.signature)
                ? SIGNED
                : NOT_SIGNED;
    return j->timestamp_signed[i] == SIGNED;
}

/* By SHA-256 whatever the curve is: so do all that sign with sigstore. */
static int is_data_signed(judging *j)
{
    if (j->data_signed == NOT_ASKED)
        j->data_signed =
            khub__key_signed(&j->key, KHUB__SHA256, j->data, j->bundle.signature) ? SIGNED : NOT_SIGNED;
    return j->data_signed == SIGNED;
}

static void ask_issuers(void *user)
{
    judging *j = user;
    for (size_t i = 0; i < j->root->authorities.count && !is_issuer(j, i);)
        i++;
}

static void ask_others(void *user)
{
    judging *j = user;
    is_data_signed(j);
    for (size_t i = 0; !j->bundle.entry.promise.length && i < j->bundle.timestamp_count; i++)
        is_timestamp_signed(j, i);
}

/* What takes long is asked at once where there are two processors; what the answers mean is judged in order
 * after that. */
static void ask_ahead(judging *j)
{
    int takes_long = j->key.kind == KHUB__KEY_P384 || !j->bundle.entry.promise.length;
    if (takes_long && khub__affinity_count() > 1) khub__both(ask_issuers, j, ask_others, j);
}

/* The times that count: the log's, which its promise proves later on, and those of timestamps that hold. A
 * timestamp that doesn't hold counts for nothing; so beside the log's time one needn't be proven whose time
 * wouldn't change the verdict: the certificate was valid then, and no other time is missing. */
static void find_times(judging *j)
{
    const khub__entry *e = &j->bundle.entry;
    j->timestamp_us = -1;
    if (e->promise.length) j->times_us[j->time_count++] = e->integrated_s * 1000000;
    for (size_t i = 0; i < j->bundle.timestamp_count; i++) {
        const khub__timestamp *t = &j->timestamps[i];
        int matters = !e->promise.length || !authority_at(j, t->time_us) ||
                      (j->log && !khub__period_has(&j->log->period, t->time_us));
        if (!matters || !is_timestamp_signed(j, i)) continue;
        if (j->timestamp_us < 0) j->timestamp_us = t->time_us;
        j->times_us[j->time_count++] = t->time_us;
    }
}

static int judge_times(judging *j)
{
    const khub__certificate *c = &j->certificate;
    if (j->time_count == 0)
        return khub__refuse(&j->verdict, KHUB_SIGNATURE_NO_TIME,
                            "timestamp: no authority of the trusted root made it for this signature");
    for (size_t i = 0; i < j->time_count; i++) {
        const khub__authority *a = authority_at(j, j->times_us[i]);
        if (!a)
            return khub__refuse(
                &j->verdict, KHUB_SIGNATURE_EXPIRED,
                "certificate: it, or its authority, wasn't valid when it was used: used at %lld, valid from "
                "%lld to %lld (seconds since 1970)",
                (long long)(j->times_us[i] / 1000000), (long long)(c->not_before_us / 1000000),
                (long long)(c->not_after_us / 1000000));
        j->issuer = &a->certificates[0];
    }
    return 0;
}

/* Fulcio names its key in what it issues. */
static int judge_authority_key(judging *j)
{
    const khub__span *mine = &j->certificate.authority_key, *its = &j->issuer->subject_key;
    if (mine->length && (!its->length || khub__span_is(*mine, *its))) return 0;
    return khub__refuse(&j->verdict, KHUB_SIGNATURE_BAD_CHAIN,
                        "certificate: it doesn't name its authority's key");
}

/* What Fulcio issues: RFC 5280 lets a subject be critical only where it stands alone. */
static int judge_profile(judging *j)
{
    static const khub__span nobody = {(const unsigned char *)"\x30\x00", 2};
    const khub__certificate *c = &j->certificate, *a = j->issuer;
    const char *wrong =
        c->is_ca || (c->usage & KHUB__USAGE_SIGN_CERTIFICATES) ? "it is an authority's"
        : !(c->usage & KHUB__USAGE_SIGNATURE)                  ? "its key may not sign"
        : !(c->purpose & KHUB__PURPOSE_CODE)                   ? "it isn't one for signing code"
        : a->has_purpose && !(a->purpose & KHUB__PURPOSE_CODE) ? "its authority isn't one for signing code"
        : c->purpose_is_critical || a->purpose_is_critical     ? "what it is for is marked critical"
        : !c->names_are_critical                               ? "its subject isn't critical"
        : !khub__span_is(c->subject, nobody)                   ? "it names its subject in two places"
                                                               : NULL;
    return wrong ? khub__refuse(&j->verdict, KHUB_SIGNATURE_PROFILE, "certificate: %s", wrong) : 0;
}

/* The log must be believed at all the times: as long as it is, its checkpoints and promises are. */
static int judge_log(judging *j)
{
    if (!j->log || !j->log->key.handle)
        return khub__refuse(
            &j->verdict, KHUB_SIGNATURE_UNKNOWN_LOG,
            "log entry: it is of a log that the trusted root doesn't have; the root may be out of date");
    for (size_t i = 0; i < j->time_count; i++)
        if (!khub__period_has(&j->log->period, j->times_us[i]))
            return khub__refuse(&j->verdict, KHUB_SIGNATURE_UNKNOWN_LOG,
                                "log entry: it is of a time when the trusted root doesn't believe %s",
                                j->log->address);
    return khub__log_proves(j->log, &j->bundle.entry, &j->verdict) ||
           khub__log_promised(j->log, &j->bundle.entry, &j->verdict);
}

static int judge_bytes(judging *j)
{
    unsigned char digest[KHUB__DIGEST_MAX];
    const khub__bundle *b = &j->bundle;
    if (khub__digest(digest, KHUB__SHA256, &j->data, 1))
        return khub__refuse(&j->verdict, KHUB_SIGNATURE_FORGED, "signature: libcrypto refuses to hash");
    if (b->digest.length && !khub__span_is(b->digest, (khub__span){digest, 32}))
        return khub__refuse(&j->verdict, KHUB_SIGNATURE_OTHER_BYTES,
                            "signature: it was made for other bytes");
    if (!is_data_signed(j))
        return khub__refuse(&j->verdict, KHUB_SIGNATURE_FORGED,
                            "signature: the certificate's key didn't sign these bytes");
    return khub__log_entry_is(b, &j->certificate, &j->key, digest, &j->verdict);
}

/* Everything must hold; the order decides only which reason is given. */
static int judge(judging *j, const char *bundle, size_t bytes)
{
    if (khub__bundle_read(&j->bundle, bundle, bytes, &j->verdict)) return -1;
    j->log = khub__log_find(&j->root->logs, j->bundle.entry.log_id);
    if (read_certificates(j) || read_timestamps(j)) return -1;
    ask_ahead(j);
    if (judge_issuer(j)) return -1;
    find_times(j);
    return judge_times(j) || judge_authority_key(j) ||
           khub__sct_judge(&j->certificate, j->issuer, &j->root->certificate_logs, &j->verdict) ||
           judge_profile(j) ||
           khub__signer_accepted(&j->signer, j->identities, j->identity_count, &j->verdict) ||
           judge_bytes(j) || judge_log(j);
}

/* Copies the texts of the verdict into one block. KHUB_E_NOMEM or 0. */
static int keep_texts(khub_signature *out, const judging *j)
{
    const khub__signer *s = &j->signer;
    const char *log = j->log ? j->log->address : "";
    const struct {
        const char **to;
        khub__span text;
    } texts[] = {{&out->words, {(const unsigned char *)j->verdict.words, strlen(j->verdict.words)}},
                 {&out->log, {(const unsigned char *)log, strlen(log)}},
                 {&out->subject, s->subject},
                 {&out->issuer, s->issuer.length ? s->issuer : s->old_issuer},
                 {&out->repository, s->repository},
                 {&out->commit, s->commit},
                 {&out->ref, s->ref},
                 {&out->workflow, s->workflow},
                 {&out->trigger, s->trigger},
                 {&out->run, s->run}};
    enum { COUNT = sizeof(texts) / sizeof(*texts) };
    size_t bytes = 0;
    for (size_t i = 0; i < COUNT; i++)
        bytes += texts[i].text.length + 1;
    char *p = out->memory = khub__malloc(bytes);
    if (!p) return KHUB_E_NOMEM;
    for (size_t i = 0; i < COUNT; i++) {
        if (i && !texts[i].text.length) continue; /* the words are never NULL */
        if (texts[i].text.length) memcpy(p, texts[i].text.data, texts[i].text.length);
        p[texts[i].text.length] = 0;
        *texts[i].to = p;
        p += texts[i].text.length + 1;
    }
    return 0;
}

static void keep_facts(khub_signature *out, const judging *j)
{
    const khub__entry *e = &j->bundle.entry;
    int has_entry = e->log_id.length != 0, has_certificate = j->certificate.whole.length != 0;
    out->reason = j->verdict.reason;
    out->log_index = has_entry ? e->log_index : -1;
    out->integrated_s = e->promise.length ? e->integrated_s : -1;
    out->timestamp_s = j->time_count && j->timestamp_us >= 0 ? j->timestamp_us / 1000000 : -1;
    out->not_before_s = has_certificate ? j->certificate.not_before_us / 1000000 : -1;
    out->not_after_s = has_certificate ? j->certificate.not_after_us / 1000000 : -1;
}

/* The verdict as a value and as a status. */
static int conclude(khub_signature *out, const judging *j, const char *name, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    if (j->verdict.no_memory || keep_texts(out, j)) return khub__fail_memory(err, "judging a signature");
    keep_facts(out, j);
    if (j->holds) return KHUB_OK;
    return khub__fail(err, KHUB_E_UNTRUSTED, "%s: the signature doesn't count (%s): %s",
                      name ? name : "signature", khub_signature_reason_name(out->reason), out->words);
}

static int is_identity(const khub_identity *identity)
{
    return identity->issuer && (identity->repository || identity->workflow || identity->subject);
}

static int read_options(judging *j, khub_trusted_root **opened, const khub_signature_options *given,
                        khub_error *err)
{
    khub_signature_options options = {0};
    if (given)
        memcpy(&options, given, given->struct_size < sizeof(options) ? given->struct_size : sizeof(options));
    for (size_t i = sizeof(options); given && i < given->struct_size; i++)
        if (((const unsigned char *)given)[i])
            return khub__fail(err, KHUB_E_INVAL,
                              "khub_signature_options: an option that this version doesn't know");
    j->identities = options.identities;
    j->identity_count = options.identity_count;
    if (!j->identities) j->identities = khub_default_identities(&j->identity_count);
    for (size_t i = 0; i < j->identity_count; i++)
        if (!is_identity(&j->identities[i]))
            return khub__fail(err, KHUB_E_INVAL,
                              "khub_identity: an issuer, and a repository, workflow or subject are needed");
    j->root = options.root;
    if (j->root) return KHUB_OK;
    int rc = khub_trusted_root_open(opened, NULL, err);
    j->root = *opened;
    return rc;
}

/* Judges, unless there is a verdict already. (Each refusal comes with its reason; a mistake here that left
 * one out would still refuse.) */
static int verify(khub_signature *out, judging *j, const char *bundle, size_t bytes,
                  const khub_signature_options *options, const char *name, khub_error *err)
{
    khub_trusted_root *opened = NULL;
    int rc = read_options(j, &opened, options, err);
    if (rc == KHUB_OK && j->verdict.reason == KHUB_SIGNATURE_HOLDS) j->holds = judge(j, bundle, bytes) == 0;
    if (!j->holds)
        khub__refuse(&j->verdict, KHUB_SIGNATURE_FORGED, "signature: it was refused without a reason");
    if (rc == KHUB_OK) rc = conclude(out, j, name, err);
    khub__key_free(&j->key);
    khub__bundle_free(&j->bundle);
    khub_trusted_root_free(opened);
    return rc;
}

int khub_signature_verify(khub_signature *out, const void *data, size_t data_bytes, const char *bundle,
                          size_t bundle_bytes, const khub_signature_options *options, const char *name,
                          khub_error *err)
{
    int rc =
        khub__given("khub_signature_verify", out && (data || !data_bytes) && (bundle || !bundle_bytes), err);
    if (rc != KHUB_OK) return rc;
    memset(out, 0, sizeof(*out));
    judging *j = khub__calloc(1, sizeof(*j));
    if (!j) return khub__fail_memory(err, "judging a signature");
    j->data = (khub__span){data, data_bytes};
    rc = verify(out, j, bundle ? bundle : "", bundle_bytes, options, name, err);
    khub__free(j);
    return rc;
}

/* A bundle that isn't there, or is too large to be one, is a verdict and no failure. */
static int read_bundle(khub__bytes *out, const char *path, khub__verdict *verdict, khub_error *err)
{
    khub__stream stream;
    khub_error why = {0};
    int rc = khub__stream_open(&stream, path, &why);
    if (rc == KHUB_E_NOTFOUND) {
        khub__refuse(verdict, KHUB_SIGNATURE_MISSING, "bundle: there is none");
        return KHUB_OK;
    }
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    size_t size = stream.size;
    khub__stream_close(&stream);
    if (size <= KHUB__BUNDLE_MAX_BYTES) return khub__file_read(out, path, KHUB__BUNDLE_MAX_BYTES, err);
    khub__refuse(verdict, KHUB_SIGNATURE_TOO_LARGE, "bundle: it has %zu bytes, more than %d", size,
                 KHUB__BUNDLE_MAX_BYTES);
    return KHUB_OK;
}

int khub_signature_verify_file(khub_signature *out, const void *data, size_t data_bytes,
                               const char *bundle_path, const khub_signature_options *options,
                               const char *name, khub_error *err)
{
    khub__bytes bytes = {0};
    int rc = khub__given("khub_signature_verify_file", out && bundle_path && (data || !data_bytes), err);
    if (rc != KHUB_OK) return rc;
    memset(out, 0, sizeof(*out));
    judging *j = khub__calloc(1, sizeof(*j));
    if (!j) return khub__fail_memory(err, "judging a signature");
    j->data = (khub__span){data, data_bytes};
    rc = read_bundle(&bytes, bundle_path, &j->verdict, err);
    if (rc == KHUB_OK) rc = verify(out, j, bytes.data, bytes.length, options, name, err);
    khub__bytes_free(&bytes);
    khub__free(j);
    return rc;
}

void khub_signature_free(khub_signature *signature)
{
    if (!signature) return;
    khub__free(signature->memory);
    memset(signature, 0, sizeof(*signature));
}
