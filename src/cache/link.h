/* The links in snapshots/. */
#ifndef CACHE_LINK_H
#define CACHE_LINK_H

#include "cache/store.h"

/* khub__store_link. `fresh`: the blob was brought just now, so that whatever stands there instead of a link
 * to it is replaced; and where links are refused the blob itself moves there, as the peer does it. */
int khub__link_put(const khub__store *store, const char *commit, const char *path, const char *etag,
                   int fresh, khub_error *err);

/* 1: snapshots/COMMIT/PATH is the file itself, with `size` bytes (UINT64_MAX: any). */
int khub__link_is_copy(const khub__store *store, const char *commit, const char *path, uint64_t size);

/* The name of the blob that a link in REPO/snapshots/… shows, a part of `target`; NULL: none of that
 * repository. `from` is the link's own path. */
const char *khub__link_blob(const char *repo_path, const char *from, const char *target);

#endif
