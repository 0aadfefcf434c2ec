/* RFC 3161 timestamps: that an authority saw some bytes at a time. */
#ifndef TRUST_SIGSTORE_TIMESTAMP_H
#define TRUST_SIGSTORE_TIMESTAMP_H

#include "trust/sigstore/root.h"

/* An authority's answer (TimeStampResp). Points into its DER. */
typedef struct khub__timestamp {
    int status; /* 0: granted */
    int64_t time_us;
    khub__digest_kind imprint_kind; /* of the bytes that it saw; KHUB__NO_DIGEST: one that isn't known */
    khub__span imprint;
    khub__span info;             /* what is attested, whole */
    khub__span digests;          /* algorithms, one after the other */
    khub__span embedded;         /* certificates, one after the other; they give no trust */
    khub__span issuer, serial;   /* of the signer's certificate, as the answer says */
    khub__digest_kind digest;    /* of the signature; KHUB__NO_DIGEST: one that isn't known */
    khub__span attributes;       /* what is signed, whole, in its context tag */
    khub__span digest_attribute, /* of `info` */
        signer_attribute;        /* the signer's certificate, by its hash */
    khub__digest_kind signer_digest;
    khub__span signature;
} khub__timestamp;

/* NULL, or what is wrong with it. */
const char *khub__timestamp_read(khub__timestamp *out, khub__span der);

/* 1: one of the authorities, valid at that time, signed it, and for these bytes. */
int khub__timestamp_holds(const khub__timestamp *timestamp, const khub__authorities *authorities,
                          khub__span bytes);

#endif
