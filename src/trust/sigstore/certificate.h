/* X.509 certificates, as far as sigstore uses them, read from strict DER where they lie. */
#ifndef TRUST_SIGSTORE_CERTIFICATE_H
#define TRUST_SIGSTORE_CERTIFICATE_H

#include "trust/sigstore/crypto.h"

/* Key usages, as bits. */
enum { KHUB__USAGE_SIGNATURE = 1, KHUB__USAGE_SIGN_CERTIFICATES = 2 };
/* Extended key usages, as bits. */
enum { KHUB__PURPOSE_CODE = 1, KHUB__PURPOSE_TIME = 2, KHUB__PURPOSE_OTHER = 4 };

/* Everything points into `whole`. A span of length 0: not there. */
typedef struct khub__certificate {
    khub__span whole, tbs, serial, issuer, subject, key, signature;
    khub__digest_kind digest; /* of the signature */
    int is_rsa;               /* so is the signature; else ECDSA */
    int64_t not_before_us, not_after_us;
    khub__span extensions;  /* the elements, one after the other */
    int is_ca, path_length; /* -1: any */
    int has_usage, usage, has_purpose, purpose, purpose_is_critical;
    khub__span subject_key, authority_key;
    khub__span names; /* the content of the alternative names */
    int names_are_critical;
} khub__certificate;

/* NULL, or what is wrong with it: "it has an extension twice". */
const char *khub__certificate_read(khub__certificate *out, khub__span der);

/* The value (what is in the OCTET STRING) of the extension with this object identifier (its content). 0, or
 * -1: it has none. */
int khub__certificate_extension(khub__span *value, const khub__certificate *certificate, khub__span oid);

/* The text in Fulcio's extension 1.3.6.1.4.1.57264.1.NUMBER: bare up to 6, in a UTF8String from 8 on. *out
 * gets length 0 where there is none. 0, or -1: it isn't a text of that form. */
int khub__certificate_text(khub__span *out, const khub__certificate *certificate, int number);

/* The one alternative name: an address, an e-mail address or Fulcio's other name. 0, or -1: there isn't
 * exactly one of these. */
int khub__certificate_subject(khub__span *out, const khub__certificate *certificate);

/* 1: `issuer`, whose key is `key`, signed it and says so. */
int khub__certificate_names(const khub__certificate *certificate, const khub__certificate *issuer);
int khub__certificate_is_signed(const khub__certificate *certificate, const khub__key *key);

#endif
