/* A sigstore bundle, read from its JSON: what it must hold is there, in range, and decoded; nothing is proven
 * yet. */
#ifndef TRUST_SIGSTORE_BUNDLE_H
#define TRUST_SIGSTORE_BUNDLE_H

#include "trust/sigstore/der.h"
#include "trust/sigstore/verdict.h"

enum {
    KHUB__BUNDLE_MAX_BYTES = 1 << 20,
    KHUB__BUNDLE_CERTIFICATES_MAX = 8,
    KHUB__HASHES_MAX = 64, /* a tree of 2^63 entries has no more */
    KHUB__TIMESTAMPS_MAX = 32
};

/* What the log says of the signature. */
typedef struct khub__entry {
    int version;       /* 1: an entry of the old Rekor, 2: of the new one */
    int64_t log_index; /* in all of the log; proof_index: in the tree of the proof */
    int64_t proof_index, tree_size;
    int64_t integrated_s; /* 0: absent */
    khub__span log_id, body, root_hash;
    khub__span promise; /* the signed entry timestamp; length 0: absent */
    khub__span hashes[KHUB__HASHES_MAX];
    size_t hash_count;
    khub__span checkpoint; /* text */
} khub__entry;

typedef struct khub__bundle {
    unsigned char *memory;                                  /* where all of it is */
    khub__span certificates[KHUB__BUNDLE_CERTIFICATES_MAX]; /* the first is the signer's */
    size_t certificate_count;
    khub__span signature;
    khub__span digest; /* of the signed bytes, as the bundle says; length 0: it doesn't say */
    khub__span timestamps[KHUB__TIMESTAMPS_MAX];
    size_t timestamp_count;
    khub__entry entry;
} khub__bundle;

/* 0, or -1 with the verdict. In both cases to be freed. */
int khub__bundle_read(khub__bundle *out, const char *text, size_t length, khub__verdict *verdict);
void khub__bundle_free(khub__bundle *bundle);

#endif
