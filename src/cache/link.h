/* What khub__store_link does, with a say in what becomes of a copy. */
#ifndef CACHE_LINK_H
#define CACHE_LINK_H

#include "cache/store.h"

/* khub__store_link; `anew`: a copy that is there already is made again, though its size is right. */
int khub__link_put(const khub__store *store, const char *commit, const char *path, const char *etag, int anew,
                   khub_error *err);

#endif
