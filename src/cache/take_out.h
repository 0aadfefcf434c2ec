/* How something leaves a repository's folder. One source per operating system. */
#ifndef CACHE_TAKE_OUT_H
#define CACHE_TAKE_OUT_H

#include "cache/scan.h"

/* Each: KHUB_OK also when it isn't there; KHUB_E_IO with the path. `path` is beneath the folder. */

/* refs/REV, unless it names another commit by now. Folders in REV that are empty then go too. */
int khub__take_out_ref(const khub__store *store, const char *revision, const char *commit, khub_error *err);

/* A directory and all in it, no link followed: it gets another name first, so that nobody sees a part of it.
 */
int khub__take_out_tree(const khub__store *store, const char *path, khub_error *err);

/* A file. */
int khub__take_out_file(const khub__store *store, const char *path, khub_error *err);

/* The folder of a repository without snapshots, with all in it but blobs that are there, or what came
 * meanwhile. 1: it is gone, 0: it had to stay. */
int khub__take_out_folder(const khub__store *store, khub_error *err);

/* What killed processes left in the folder itself: .khub-RANDOM.tmp, if it is older than an hour. */
int khub__take_out_drafts(const khub__store *store, khub_error *err);

#endif
