/* Names of content that is in memory. */
#ifndef SERVE_DIGEST_H
#define SERVE_DIGEST_H

#include "base/hash.h"

/* The hash of bytes, by base/hash.h. */
int serve_digest(char hex[KHUB__HASH_HEX_MAX + 1], khub__hash_kind kind, const void *data, size_t bytes,
                 khub_error *err);

#endif
