/* What a policy holds, and what follows from it for one request. */
#ifndef TRUST_POLICY_H
#define TRUST_POLICY_H

#include <khub/hub.h>
#include <khub/trust.h>

enum {
    KHUB__POLICY_MAX_BYTES = 1 << 20,
    KHUB__PUBLISHERS_MAX = 10000,
    KHUB__IDENTITIES_MAX = 1000,
    KHUB__IDENTITY_TEXT_MAX = 1000 /* bytes of one field */
};

struct khub_policy {
    khub_trust_level level; /* never DEFAULT */
    int offline_refuse;
    char *trusted_root; /* absolute when it was read from a file; NULL: the installed one */
    char *path;         /* NULL: not read from a file */
    char **publishers;  /* sorted by bytes */
    size_t publisher_count, publisher_capacity;
    int own_identities; /* 0: khub_default_identities, and the list is empty */
    khub_identity *identities;
    size_t identity_count, identity_capacity;
};

/* Reads one from memory. `file` stands in messages; a trusted root that is named by a relative path lies
 * beside it. KHUB_E_FORMAT, KHUB_E_NOMEM. */
int khub__policy_parse(khub_policy **out, const char *text, size_t length, const char *file, khub_error *err);

/* The one form that it is written in. The caller's (khub_free); NULL: no memory. */
char *khub__policy_text(const khub_policy *policy);

/* What one request goes by: the caller's policy or the user's file, which is read when it is first asked for,
 * and those whom the caller vouches for beside it. */
typedef struct khub__rules {
    const khub_policy *given; /* khub_hub_options.policy; may be NULL */
    const char *const *named; /* khub_hub_options.trust; may be NULL */
    khub_policy *own;         /* read from the file; NULL: not yet */
} khub__rules;

/* The policy, borrowed from the rules. khub_policy_read's errors. */
int khub__rules_policy(const khub_policy **out, khub__rules *rules, khub_error *err);
void khub__rules_close(khub__rules *rules); /* frees what it holds and zeroes it */

/* All accepted identities, borrowed: for khub_signature_options. */
const khub_identity *khub__policy_identities(size_t *count, const khub_policy *policy);

/* Opens the policy's trusted root; one that isn't the installed one must be a file that nobody else may write
 * to (KHUB_E_UNTRUSTED). Else khub_trusted_root_open's errors. */
int khub__policy_root(khub_trusted_root **out, const khub_policy *policy, khub_error *err);

/* 1: the policy has the repository "ORG/NAME" or its owner among its publishers. */
int khub__policy_vouches(const khub_policy *policy, const char *repository, const char *owner);

#endif
