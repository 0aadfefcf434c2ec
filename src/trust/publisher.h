/* Whose kernels may be loaded: those of publishers that the Hub calls trusted, and those that the caller
 * vouches for. */
#ifndef TRUST_PUBLISHER_H
#define TRUST_PUBLISHER_H

#include "cache/store.h"
#include "trust/policy.h"

/* Judges the owner of `repo`, where the Hub has it after renames and redirects, whose files are kept in
 * `store`; the decision goes into `trust` (may be NULL). Who is named by the rules is asked about nowhere.
 * The Hub is asked when the store has no answer yet, or one that others may have written, or, with `again`,
 * one of another day; its answer is kept in the store (publisher.json). Offline and without an answer the
 * policy says: a warning, as the files came from somewhere once, or a refusal. KHUB_E_UNTRUSTED: the Hub says
 * no, or couldn't be asked; KHUB_E_CANCELED, KHUB_E_NOMEM; khub_policy_read's errors. */
int khub__publisher_check(khub_trust *trust, const khub__store *store, const khub__repo *repo,
                          khub__client *client, khub__rules *rules, int again, khub_error *err);

#endif
