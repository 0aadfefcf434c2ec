/* What the snapshots in the cache say about themselves, for commits of which nothing else is known: those
 * that another tool fetched. */
#ifndef FETCH_SNAPSHOTS_H
#define FETCH_SNAPSHOTS_H

#include "cache/store.h"

/* The newest snapshot with a build whose metadata.json says `version`. KHUB_E_NOTFOUND: none
 * does. */
int khub__snapshot_of_version(char commit[KHUB__COMMIT_MAX + 1], const khub__store *store, int64_t version,
                              khub_error *err);

/* The files of a snapshot, of unknown size and name. KHUB_E_NOTFOUND: there is no such snapshot. */
int khub__snapshot_tree(khub__tree *out, const khub__store *store, const char *commit, khub_error *err);

#endif
