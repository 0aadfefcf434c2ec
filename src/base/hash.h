/* Hashes that name content: git's blob SHA-1, and SHA-256. libcrypto does the work; it is opened when the
 * first hash is asked for, so that a start that needs none doesn't pay for it. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <khub/error.h>

enum { KHUB__HASH_HEX_MAX = 64 }; /* digits of the longest */

typedef enum khub__hash_kind {
    KHUB__HASH_GIT_BLOB, /* SHA-1 over "blob SIZE\0" and the content: 40 hex digits */
    KHUB__HASH_SHA256    /* 64 hex digits */
} khub__hash_kind;

typedef struct khub__hash khub__hash;

/* The kind that a name of hex digits (lower case) is of. 0, or -1: it is none. */
int khub__hash_kind_of(khub__hash_kind *kind, const char *hex);

/* Starts a hash of a content of `size` bytes (counts for git blobs only). KHUB_E_UNSUPPORTED (no libcrypto),
 * KHUB_E_NOMEM. */
int khub__hash_new(khub__hash **out, khub__hash_kind kind, uint64_t size, khub_error *err);
void khub__hash_add(khub__hash *hash, const void *data, size_t bytes);
/* Ends it: hex digits and a NUL. Only khub__hash_free may follow. */
void khub__hash_end(khub__hash *hash, char hex[KHUB__HASH_HEX_MAX + 1]);
void khub__hash_free(khub__hash *hash); /* NULL is a no-op */

#endif
