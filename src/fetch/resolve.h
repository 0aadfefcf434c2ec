/* From a version, branch or tag to the commit it stands at. */
#ifndef FETCH_RESOLVE_H
#define FETCH_RESOLVE_H

#include "cache/store.h"

/* Seconds for which the cache's word on a version or branch is taken without asking the Hub:
 * KHUB_REFRESH_SECONDS, or 0. */
int64_t khub__refresh_seconds(void);

/* What to do about something that isn't in the cache: the command that brings it into this one. Returns
 * `out`. */
enum { KHUB__ADVICE_MAX = 900 };
const char *khub__advise_download(char out[KHUB__ADVICE_MAX], const khub__store *store,
                                  const khub__wanted *wanted);

/* What a wanted revision came to. */
typedef struct khub__resolved {
    char commit[KHUB__COMMIT_MAX + 1];
    khub__repo repo; /* where the Hub has it now: another id after a rename */
    int asked;       /* 1: the Hub said so just now; 0: the cache did */
} khub__resolved;

/* A commit is itself. Otherwise: the cache's ref when it is fresh and `refresh` is 0; else the Hub's answer,
 * which is written to the cache; else, offline or when the Hub can't be reached, the cache's ref of any age,
 * with a notice in the second case. For a version without a ref, offline: the newest snapshot whose builds
 * say that version, with a notice. Errors: khub_download's; a version or revision that isn't there lists
 * those that are. */
int khub__resolve(khub__resolved *out, const khub__store *store, const khub__wanted *wanted,
                  khub__client *client, int refresh, khub_error *err);

#endif
