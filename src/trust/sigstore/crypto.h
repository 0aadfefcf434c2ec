/* What sigstore's signatures need of libcrypto: hashes, public keys, and whether a key signed some bytes. One
 * source per operating system. */
#ifndef TRUST_SIGSTORE_CRYPTO_H
#define TRUST_SIGSTORE_CRYPTO_H

#include "trust/sigstore/der.h"

#include <khub/error.h>

typedef enum khub__digest_kind {
    KHUB__SHA256,
    KHUB__SHA384,
    KHUB__SHA512,
    KHUB__NO_DIGEST /* Ed25519 takes the bytes themselves */
} khub__digest_kind;

enum { KHUB__DIGEST_MAX = 64 };

typedef enum khub__key_kind {
    KHUB__KEY_P256,
    KHUB__KEY_P384,
    KHUB__KEY_P521,
    KHUB__KEY_ED25519,
    KHUB__KEY_RSA
} khub__key_kind;

typedef struct khub__key {
    void *handle; /* libcrypto's; NULL: none */
    khub__key_kind kind;
} khub__key;

/* Must have been KHUB_OK before any of the others is called. KHUB_E_UNSUPPORTED: there is no libcrypto. */
int khub__signing_open(khub_error *err);

/* Bytes of a digest: 32, 48, 64. */
size_t khub__digest_size(khub__digest_kind kind);

/* The digest over the pieces one after the other. 0, or -1: libcrypto refuses. */
int khub__digest(unsigned char out[KHUB__DIGEST_MAX], khub__digest_kind kind, const khub__span *pieces,
                 size_t count);

/* A SubjectPublicKeyInfo of one of the kinds, in the one form that its DER has; a point is uncompressed and
 * on its curve. 0 (to be freed), or -1: it isn't. */
int khub__key_read(khub__key *out, khub__span info);
void khub__key_free(khub__key *key); /* one without a handle is a no-op */

/* The hash that goes with the key in a log's signatures: by the curve, SHA-256 for RSA, none for Ed25519. */
khub__digest_kind khub__key_digest(const khub__key *key);

/* 1: the key signed `data` (ECDSA, RSA PKCS#1 v1.5 or Ed25519 by its kind). Several threads may ask of one
 * key. */
int khub__key_signed(const khub__key *key, khub__digest_kind digest, khub__span data, khub__span signature);

#endif
