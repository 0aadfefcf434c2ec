/* Trust: which kernels may be loaded, and why one may or mayn't. A policy is what is asked for; a verdict
 * (khub_trust) is what was found, decision by decision. docs/trust.md tells the rules. */
#ifndef KHUB_TRUST_H
#define KHUB_TRUST_H

#include <khub/signature.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a build must have before it is loaded. At each level its publisher is trusted, by the Hub or by the
 * caller, every file is what the commit says, a digest in metadata.json holds when there is one, and so does
 * a signature of somebody who is known. */
typedef enum khub_trust_level {
    KHUB_TRUST_DEFAULT = 0,   /* PUBLISHER */
    KHUB_TRUST_PUBLISHER = 1, /* that */
    KHUB_TRUST_VERIFIED = 2,  /* and metadata.json has a digest, or a lock names the commit */
    KHUB_TRUST_SIGNED = 3     /* and metadata.json has a digest and an accepted identity's signature */
} khub_trust_level;

/* "publisher", "verified", "signed"; DEFAULT is "publisher"; "?" for a number that isn't in the list. Static.
 */
KHUB_API const char *khub_trust_level_name(khub_trust_level level);
/* KHUB_E_INVAL lists the levels. */
KHUB_API int khub_trust_level_parse(khub_trust_level *out, const char *name, khub_error *err);

/* Whom to trust, and how far: a value. Once made, any thread may read it while none changes it. */
typedef struct khub_policy khub_policy;

/* The default one: level publisher, nobody vouched for, identities and trusted root that khub comes with.
 * *out is the caller's (khub_policy_free), here and below; NULL after a failure. KHUB_E_NOMEM. */
KHUB_API int khub_policy_new(khub_policy **out, khub_error *err);

/* Reads one from a file (docs/trust.md) of at most 1 MiB. `path` NULL: the user's, as khub_policy_path says,
 * which needn't be there: that is the default policy, unless KHUB_TRUST_FILE names it. KHUB_E_UNTRUSTED:
 * others may write to the file or to a directory that leads to it; KHUB_E_FORMAT: also for what isn't known;
 * KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_NOMEM. */
KHUB_API int khub_policy_read(khub_policy **out, const char *path, khub_error *err);

/* Writes it whole, in one form for equal policies; directories that are missing are made. NULL: the user's
 * file. KHUB_E_UNTRUSTED: it would be refused there, by khub_policy_read; nothing is written. KHUB_E_NOSPACE,
 * KHUB_E_IO, KHUB_E_NOTFOUND (there is no home directory), KHUB_E_NOMEM. */
KHUB_API int khub_policy_write(const khub_policy *policy, const char *path, khub_error *err);

/* The user's file: KHUB_TRUST_FILE, else $XDG_CONFIG_HOME/khub/trust.json, else ~/.config/khub/trust.json.
 * The caller's (khub_free). KHUB_E_NOTFOUND (there is no home directory), KHUB_E_NOMEM. */
KHUB_API int khub_policy_path(char **out, khub_error *err);

KHUB_API void khub_policy_free(khub_policy *policy); /* NULL is a no-op */

/* What to show of it. Strings are the policy's, until it is changed or freed. */
typedef struct khub_policy_info {
    khub_trust_level level;   /* never DEFAULT */
    int offline_refuse;       /* 1: offline, a publisher of whom nothing is known is refused; 0: a warning */
    const char *trusted_root; /* file; NULL: the one that is installed with khub */
    int own_identities;       /* 0: those that khub comes with are accepted (khub_default_identities) */
    const char *path;         /* the file that it was read from; NULL: none */
} khub_policy_info;

KHUB_API khub_policy_info khub_policy_about(const khub_policy *policy);

/* The i-th publisher that is vouched for, "ORG" or "ORG/NAME", by name in byte order; the i-th identity whose
 * signatures are accepted, also where khub brings them. NULL past the last. The policy's, until it is changed
 * or freed. */
KHUB_API const char *khub_policy_publisher(const khub_policy *policy, size_t i);
KHUB_API const khub_identity *khub_policy_identity(const khub_policy *policy, size_t i);

/* Each change copies what it is given; after a failure the policy is as before. KHUB_E_INVAL: it can't be
 * one; KHUB_E_NOMEM. What is there already is added once. KHUB_E_NOTFOUND: what is to be removed isn't there.
 */
KHUB_API int khub_policy_set_level(khub_policy *policy, khub_trust_level level, khub_error *err);
KHUB_API int khub_policy_set_offline(khub_policy *policy, int refuse, khub_error *err);
/* NULL: the installed one. */
KHUB_API int khub_policy_set_trusted_root(khub_policy *policy, const char *path, khub_error *err);
KHUB_API int khub_policy_add_publisher(khub_policy *policy, const char *publisher, khub_error *err);
KHUB_API int khub_policy_remove_publisher(khub_policy *policy, const char *publisher, khub_error *err);
/* Beside those that are accepted already. When the last one is removed nobody is accepted. */
KHUB_API int khub_policy_add_identity(khub_policy *policy, const khub_identity *identity, khub_error *err);
KHUB_API int khub_policy_remove_identity(khub_policy *policy, const khub_identity *identity, khub_error *err);
/* Those that khub comes with again, and no others. */
KHUB_API void khub_policy_reset_identities(khub_policy *policy);

typedef enum khub_trust_decision {
    KHUB_TRUST_ACCEPTED,
    KHUB_TRUST_NOTED,  /* worth knowing; the level that is asked for allows it */
    KHUB_TRUST_REFUSED /* one such, and the build isn't loaded */
} khub_trust_decision;

/* "accepted", "noted", "refused"; "?" for a number that isn't in the list. Static. */
KHUB_API const char *khub_trust_decision_name(khub_trust_decision decision);

/* One decision on a build. */
typedef struct khub_trust_reason {
    const char *about; /* "publisher", "content", "digest", "signature", "version", "cache", "lock" */
    khub_trust_decision decision;
    const char *words; /* "REPOSITORY: fact" */
} khub_trust_reason;

/* The verdict on one build: all decisions, in the order in which they fell. Nothing after a refusal needs to
 * have been looked at. Any thread may read it. */
typedef struct khub_trust khub_trust;

/* The i-th; NULL past the last. The verdict's, until it is freed. */
KHUB_API const khub_trust_reason *khub_trust_at(const khub_trust *trust, size_t i);
KHUB_API khub_trust_level khub_trust_level_of(const khub_trust *trust); /* that was asked for */
KHUB_API int khub_trust_holds(const khub_trust *trust);                 /* 1: nothing is refused */

/* What was found about the signature of metadata.json: proven when its reason is KHUB_SIGNATURE_HOLDS, else
 * what the certificate claims. The verdict's. NULL: there is none, or it wasn't looked at. */
KHUB_API const khub_signature *khub_trust_signature(const khub_trust *trust);

KHUB_API void khub_trust_free(khub_trust *trust); /* NULL is a no-op */

#ifdef __cplusplus
}
#endif

#endif
