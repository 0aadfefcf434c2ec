/* Signatures of kernels: a sigstore bundle (metadata.json.sigstore) proves that the bytes of metadata.json
 * were signed by a workflow of an accepted repository. Everything is judged offline, against a trusted root
 * and never against this machine's clock. docs/trust.md says what is checked, in which order. */
#ifndef KHUB_SIGNATURE_H
#define KHUB_SIGNATURE_H

#include <khub/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a signature is refused; numbers and names are never reused. */
typedef enum khub_signature_reason {
    KHUB_SIGNATURE_HOLDS = 0,
    KHUB_SIGNATURE_MISSING,           /* there is no bundle */
    KHUB_SIGNATURE_TOO_LARGE,         /* a bundle of more than 1 MiB */
    KHUB_SIGNATURE_NOT_JSON,          /* no JSON object; keys twice, nested too deep, text after it */
    KHUB_SIGNATURE_MEDIA_TYPE,        /* no version of the format that is known */
    KHUB_SIGNATURE_BAD_FIELD,         /* a field is missing, unknown, of another type or out of range */
    KHUB_SIGNATURE_CONTENT,           /* well-formed, but no signature of given bytes with a certificate */
    KHUB_SIGNATURE_BAD_CERTIFICATE,   /* no X.509 certificate in DER, or with what such a one can't have */
    KHUB_SIGNATURE_BAD_KEY,           /* the signer's key: not P-256 or P-384, or not on the curve */
    KHUB_SIGNATURE_BAD_TIMESTAMP,     /* no RFC 3161 answer in DER, or one twice */
    KHUB_SIGNATURE_NO_TIME,           /* nothing proves when it was signed */
    KHUB_SIGNATURE_EXPIRED,           /* signed when the certificate or its authority wasn't valid */
    KHUB_SIGNATURE_UNKNOWN_AUTHORITY, /* none of the trusted root issued the certificate */
    KHUB_SIGNATURE_BAD_CHAIN,         /* the authority didn't sign the certificate that names it */
    KHUB_SIGNATURE_BAD_SCT,           /* the certificate isn't proven to be in a certificate log */
    KHUB_SIGNATURE_PROFILE,           /* no certificate for signing code */
    KHUB_SIGNATURE_IDENTITY,          /* signed by somebody who isn't accepted */
    KHUB_SIGNATURE_ENTRY_KIND,        /* an entry of the log that isn't one of signed bytes */
    KHUB_SIGNATURE_UNKNOWN_LOG,       /* a transparency log that the trusted root doesn't have, or not then */
    KHUB_SIGNATURE_BAD_PROOF,         /* the entry isn't proven to be in the log */
    KHUB_SIGNATURE_BAD_CHECKPOINT,    /* the log's checkpoint isn't one, or is of another tree */
    KHUB_SIGNATURE_FORGED_CHECKPOINT, /* the log didn't sign the checkpoint */
    KHUB_SIGNATURE_FORGED_PROMISE,    /* the log didn't sign the entry's time */
    KHUB_SIGNATURE_OTHER_BYTES,       /* made for other bytes, as the bundle says itself */
    KHUB_SIGNATURE_FORGED,            /* the certificate's key didn't sign these bytes */
    KHUB_SIGNATURE_OTHER_ENTRY        /* the log's entry is of something else */
} khub_signature_reason;

/* "holds", "too-large", "forged-checkpoint", …; "?" for a number that isn't in the list. Static. */
KHUB_API const char *khub_signature_reason_name(khub_signature_reason reason);

/* Whom to trust for what: certificate authorities, logs, timestamp authorities. Any threads at once. */
typedef struct khub_trusted_root khub_trusted_root;

/* Reads a trusted root (trusted_root.json of sigstore, at most 1 MiB); NULL: the one that is installed with
 * khub. *out is the caller's. KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_FORMAT (also chains that don't hold),
 * KHUB_E_UNSUPPORTED (no libcrypto), KHUB_E_NOMEM. */
KHUB_API int khub_trusted_root_open(khub_trusted_root **out, const char *path, khub_error *err);

KHUB_API void khub_trusted_root_free(khub_trusted_root *root); /* NULL is a no-op */

/* What to show of it. Borrowed from the root. */
typedef struct khub_trusted_root_info {
    const char *path;   /* where it was read */
    const char *sha256; /* of the file, 64 hex digits */
    int64_t newest_s; /* since 1970: when the newest authority or log of it began; it isn't older than that */
} khub_trusted_root_info;

KHUB_API khub_trusted_root_info khub_trusted_root_about(const khub_trusted_root *root);

/* Somebody whose signatures are accepted. Every field that isn't NULL must be the certificate's, byte for
 * byte; `issuer` and one of the others must be there. */
typedef struct khub_identity {
    const char *issuer;     /* who vouched for the signer: "https://token.actions.githubusercontent.com" */
    const char *repository; /* whose source was built: "https://github.com/ORG/NAME" */
    const char *workflow;   /* what built and signed: REPOSITORY/.github/workflows/FILE@REF */
    const char *subject;    /* the certificate's subject: a workflow or an e-mail address */
} khub_identity;

/* Those that are accepted where nothing else is said: the build workflows of kernels-community. Static. */
KHUB_API const khub_identity *khub_default_identities(size_t *count);

typedef struct khub_signature_options {
    size_t struct_size;              /* set by KHUB_INIT */
    const khub_trusted_root *root;   /* NULL: the installed one, read for this call */
    const khub_identity *identities; /* accepted if one fits; NULL: khub_default_identities */
    size_t identity_count;           /* of `identities`; 0 with a list accepts nobody */
} khub_signature_options;

/* A verdict. What was found is proven when reason is KHUB_SIGNATURE_HOLDS; else it is what the certificate
 * claims, for messages, as far as it was read. NULL or -1: not there. */
typedef struct khub_signature {
    khub_signature_reason reason;
    const char *words;      /* "bundle: …": the object and the fact; "" when it holds */
    const char *subject;    /* the certificate's: a workflow or an e-mail address */
    const char *issuer;     /* who vouched for it */
    const char *repository; /* the source's */
    const char *commit;     /* of the source, hex digits */
    const char *ref;        /* of the source: "refs/heads/main" */
    const char *workflow;   /* what built and signed */
    const char *trigger;    /* what started it: "push" */
    const char *run;        /* the address of the run */
    const char *log;        /* the address of the transparency log */
    int64_t log_index;      /* of the entry */
    int64_t integrated_s;   /* since 1970: when the log took the entry, as it signed */
    int64_t timestamp_s; /* since 1970: when a timestamp authority saw the signature, where that was needed:
                          * beside integrated_s only when the two could lead to different verdicts */
    int64_t not_before_s, not_after_s; /* since 1970: the certificate's */
    void *memory;                      /* of the texts; freed by khub_signature_free */
} khub_signature;

/* Judges whether `bundle` is an accepted identity's signature of exactly the bytes `data`. Nothing of `data`
 * is read but by a hash. Any thread. KHUB_OK: it is. KHUB_E_UNTRUSTED: it isn't; *out says why, and *err in
 * one sentence that names `name`
 * ("ORG/NAME: metadata.json"; NULL: "signature"). In both cases *out is to be given to khub_signature_free.
 * Else there is no verdict: KHUB_E_INVAL, KHUB_E_NOMEM, KHUB_E_UNSUPPORTED (no libcrypto), and what
 * khub_trusted_root_open returns. */
KHUB_API int khub_signature_verify(khub_signature *out, const void *data, size_t data_bytes,
                                   const char *bundle, size_t bundle_bytes,
                                   const khub_signature_options *options, const char *name, khub_error *err);

/* The same with the bundle in a file; none there is KHUB_SIGNATURE_MISSING, more than 1 MiB isn't read. */
KHUB_API int khub_signature_verify_file(khub_signature *out, const void *data, size_t data_bytes,
                                        const char *bundle_path, const khub_signature_options *options,
                                        const char *name, khub_error *err);

/* Frees the texts and zeroes it. NULL and zeroed are no-ops. */
KHUB_API void khub_signature_free(khub_signature *signature);

#ifdef __cplusplus
}
#endif

#endif
