/* The verdict on one build while it is found. */
#ifndef TRUST_TRUST_H
#define TRUST_TRUST_H

#include <khub/trust.h>

/* What the words of decisions are about. */
#define KHUB__ABOUT_PUBLISHER "publisher"
#define KHUB__ABOUT_CONTENT   "content"
#define KHUB__ABOUT_DIGEST    "digest"
#define KHUB__ABOUT_SIGNATURE "signature"
#define KHUB__ABOUT_VERSION   "version"
#define KHUB__ABOUT_CACHE     "cache"
#define KHUB__ABOUT_LOCK      "lock"

/* An empty one, for a build that is asked for at `level` (DEFAULT: publisher). The caller's
 * (khub_trust_free). KHUB_E_NOMEM. */
int khub__trust_new(khub_trust **out, khub_trust_level level, khub_error *err);

/* Adds a decision. `about` is one of the above, static. What finds no memory counts all the same: a refusal
 * refuses, and khub__trust_end says that there was no memory. NULL for `trust` is a no-op: the caller doesn't
 * keep decisions. */
void khub__trust_add(khub_trust *trust, const char *about, khub_trust_decision decision, const char *format,
                     ...) KHUB_PRINTF(4, 5);

/* The same without a format: the words are those of `parts`, up to a NULL, one behind the other. For what is
 * said of each kernel that is loaded: printf would take longer than a look at a file. */
void khub__trust_add_parts(khub_trust *trust, const char *about, khub_trust_decision decision,
                           const char *const *parts);

/* Takes over what the signature's verdict holds, and zeroes `signature`. */
void khub__trust_take_signature(khub_trust *trust, khub_signature *signature);

/* KHUB_OK when nothing is refused (or `trust` is NULL). KHUB_E_UNTRUSTED with the words of the first refusal;
 * KHUB_E_NOMEM. */
int khub__trust_end(const khub_trust *trust, khub_error *err);

/* The same verdict once more, for another owner (khub_trust_free): nothing may be added from now on. NULL for
 * NULL. */
khub_trust *khub__trust_share(const khub_trust *trust);

#endif
