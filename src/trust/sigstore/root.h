/* A trusted root: whom sigstore's verifiers believe, from trusted_root.json. */
#ifndef TRUST_SIGSTORE_ROOT_H
#define TRUST_SIGSTORE_ROOT_H

#include "trust/sigstore/certificate.h"

#include <khub/signature.h>

enum {
    KHUB__CHAIN_MAX = 8,
    KHUB__ROOT_ENTRIES_MAX = 64, /* of each list; sigstore's have two */
    KHUB__ROOT_MAX_BYTES = 1 << 20
};

/* From when to when somebody is believed, both ends included. */
typedef struct khub__period {
    int64_t start_us, end_us; /* INT64_MAX: no end */
} khub__period;

/* A log: of entries (Rekor) or of certificates. */
typedef struct khub__log {
    khub__span id;
    const char *address;
    khub__span host; /* in `address` */
    khub__key key;   /* without a handle: of a kind that isn't known, which nothing can be signed with */
    khub__period period;
} khub__log;

/* An authority for certificates or for timestamps: its certificates, the one that signs first. */
typedef struct khub__authority {
    khub__certificate certificates[KHUB__CHAIN_MAX];
    size_t count;
    khub__key key; /* of the first */
    khub__period period;
} khub__authority;

typedef struct khub__logs {
    khub__log *items;
    size_t count;
} khub__logs;

typedef struct khub__authorities {
    khub__authority *items;
    size_t count;
} khub__authorities;

struct khub_trusted_root {
    char *path, *text; /* the texts of the JSON that are kept */
    char sha256[65];
    unsigned char *bytes; /* what base64 stood for */
    khub__logs logs, certificate_logs;
    khub__authorities authorities, timestamp_authorities;
    int64_t newest_us;
};

/* The same as khub_trusted_root_open from memory. */
int khub__root_read(khub_trusted_root **out, const char *text, size_t length, const char *path,
                    khub_error *err);

/* NULL: there is none with this name. */
const khub__log *khub__log_find(const khub__logs *logs, khub__span id);

int khub__period_has(const khub__period *period, int64_t time_us);

/* 1: so is every certificate of the authority, at that time. */
int khub__authority_valid(const khub__authority *authority, int64_t time_us);

/* "2025-06-12T12:02:20.5Z" as microseconds. 0 or -1. */
int khub__root_time(int64_t *out_us, const char *text);

#endif
