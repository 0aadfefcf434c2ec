/* metadata.json's "digest": {"algorithm": "sha256" or "sha512", "files": {PATH: base64 of the hash}} over the
 * files of a build. */
#ifndef TRUST_DIGEST_H
#define TRUST_DIGEST_H

#include "base/hash.h"
#include "base/text.h"

#include <jansson.h>

/* A digest that was read. */
typedef struct khub__digest_claim {
    khub__hash_kind kind; /* KHUB__HASH_SHA256 or KHUB__HASH_SHA512 */
    const json_t *files;  /* borrowed; all values are strings */
} khub__digest_claim;

/* A file that was hashed, by the claim's kind. */
typedef struct khub__hashed {
    const char *path; /* from the build's directory, parts separated by "/" */
    unsigned char hash[KHUB__HASH_MAX];
} khub__hashed;

/* What a digest doesn't hold for. */
typedef enum khub__violation_kind {
    KHUB__VIOLATION_MISSING, /* the digest has the file, the build hasn't */
    KHUB__VIOLATION_CHANGED,
    KHUB__VIOLATION_UNKNOWN, /* the build has the file, the digest hasn't */
    KHUB__VIOLATION_FILE /* it can't be hashed, or is a link that leads elsewhere: `fault` says it, without
                            the path */
} khub__violation_kind;

typedef struct khub__violation {
    khub__violation_kind kind;
    char *path;
    char *expected, *got; /* of a changed file: base64, the first as the digest has it */
    char *fault;
} khub__violation;

typedef struct khub__violations {
    khub__violation *items; /* sorted by path */
    size_t count, capacity;
} khub__violations;

/* 1: a digest covers the file with this path (from the build's directory): all but the top-level
 * metadata.json and metadata.json.sigstore, what is in a __pycache__, and *.pyc. */
int khub__digest_covers(const char *path);

/* Makes one over the files in `build`. `also`: khub__files_find. The reference is the caller's. A file that
 * no digest can be trusted for (a link that leads out) is KHUB_E_FORMAT; KHUB_E_NOTFOUND, KHUB_E_IO,
 * KHUB_E_UNSUPPORTED (no libcrypto), KHUB_E_NOMEM. */
int khub__digest_make(json_t **out, khub__hash_kind kind, const char *build, const char *also,
                      khub_error *err);

/* Reads one; `file` stands for metadata.json in messages. KHUB_E_FORMAT: another algorithm, another form. */
int khub__digest_read(khub__digest_claim *out, const json_t *digest, const char *file, khub_error *err);

/* Hashes the files in `build` and compares. A file that can't be read is a violation and no failure. A
 * failure leaves *out zeroed: khub__digest_make's, but KHUB_E_FORMAT only for too many files. */
int khub__digest_check(khub__violations *out, const khub__digest_claim *claim, const char *build,
                       const char *also, khub_error *err);

/* The same for a caller who hashed the files himself, all of them and each once, in any order: those that a
 * digest doesn't cover are passed over. KHUB_E_NOMEM; then *out is zeroed. */
int khub__digest_compare(khub__violations *out, const khub__digest_claim *claim, const khub__hashed *files,
                         size_t count, khub_error *err);

/* Adds "PATH: what is wrong". */
void khub__violation_words(khub__text *to, const khub__violation *violation);

void khub__violations_free(khub__violations *violations); /* and zeroes it */

#endif
