/* Whose kernels may be loaded: those of publishers that the Hub calls trusted, and those that the caller
 * vouches for. */
#ifndef TRUST_PUBLISHER_H
#define TRUST_PUBLISHER_H

#include "cache/store.h"

/* Judges the owner of `repo`, where the Hub has it after renames, whose files are kept in `store`. `trust`
 * (may be NULL): what the caller vouches for, "ORG" or "ORG/NAME". The Hub is asked when the store has no
 * answer yet, or, with `again`, one of another day; its answer is kept in the store (publisher.json). Offline
 * and without an answer: a warning, as the files came from somewhere once. KHUB_E_UNTRUSTED: the Hub says no,
 * or couldn't be asked; KHUB_E_CANCELED, KHUB_E_NOMEM. */
int khub__publisher_check(const khub__store *store, const khub__repo *repo, khub__client *client,
                          const char *const *trust, int again, khub_error *err);

#endif
