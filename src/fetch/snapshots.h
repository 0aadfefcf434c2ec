/* What the snapshots in the cache say about themselves, for commits of which nothing else is known: those
 * that another tool fetched. */
#ifndef FETCH_SNAPSHOTS_H
#define FETCH_SNAPSHOTS_H

#include "cache/store.h"

/* The newest snapshot with a build whose metadata.json says the highest version in the range that any does.
 * KHUB_E_NOTFOUND: none is in it. */
int khub__snapshot_in_range(char commit[KHUB__COMMIT_MAX + 1], int64_t *version, const khub__store *store,
                            const khub__range *range, khub_error *err);

/* The files of a snapshot, of unknown size and name. KHUB_E_NOTFOUND: there is no such snapshot. */
int khub__snapshot_tree(khub__tree *out, const khub__store *store, const char *commit, khub_error *err);

/* Reads a file of a snapshot, of at most `most` bytes, and holds it against its name in the list of files
 * (`listed` NULL: there is none). KHUB_E_UNTRUSTED, with both hashes; khub__file_read's. */
int khub__snapshot_read(khub__bytes *out, const char *path, const khub__tree_file *listed, size_t most,
                        khub_error *err);

#endif
