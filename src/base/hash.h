/* Hashes of content: git's blob SHA-1 and SHA-256, which name it, and SHA-512. libcrypto does the work; it is
 * opened when the first hash is asked for, so that a start that needs none doesn't pay for it. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/file.h"

enum { KHUB__HASH_MAX = 64, KHUB__HASH_HEX_MAX = 128 }; /* bytes and digits of the longest */

typedef enum khub__hash_kind {
    KHUB__HASH_GIT_BLOB, /* SHA-1 over "blob SIZE\0" and the content: 40 hex digits */
    KHUB__HASH_SHA256,   /* 64 hex digits */
    KHUB__HASH_SHA512    /* 128; the name of nothing */
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
/* The same as bytes; returns how many: 0 where khub__hash_end says "" (libcrypto refused). */
size_t khub__hash_end_bytes(khub__hash *hash, unsigned char out[KHUB__HASH_MAX]);
void khub__hash_free(khub__hash *hash); /* NULL is a no-op */

/* Adds a file of which nothing was read yet to each of `count` hashes; it is read once. Failures as
 * khub__stream_read's, and KHUB_E_NOMEM. */
int khub__hash_stream(khub__hash *const *hashes, size_t count, khub__stream *file, khub_error *err);

#endif
