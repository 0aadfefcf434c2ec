/* The version that the builds in a folder say they are of. */
#ifndef SERVE_VERSION_H
#define SERVE_VERSION_H

#include "serve/listing.h"

/* `version` of the metadata.json of the first build that has one. -1: none says it. KHUB_E_NOMEM. */
int serve_version_of(int64_t *version, const serve_listing *listing, khub_error *err);

#endif
