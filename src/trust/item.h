/* One file of a build while the build is proven: it is opened, held while that matters, hashed once for all
 * that is said about it, and compared with its name. */
#ifndef TRUST_ITEM_H
#define TRUST_ITEM_H

#include "trust/proof.h"

/* A file that ought to be in the build. */
typedef struct khub__item {
    const char *path;                     /* inside the build */
    const khub__tree_file *listed;        /* NULL: of a directory of this machine */
    char name[KHUB__HASH_HEX_MAX + 1];    /* that its content should have; "": nothing says it */
    char content[KHUB__HASH_HEX_MAX + 1]; /* that it has */
    khub__hashed hashed;                  /* for the digest */
    khub__identity identity;
    khub__held held;
    int is_library, is_layers; /* both are held until they are handed over */
    int others, settled;
} khub__item;

/* What the files of one build have in common. */
typedef struct khub__proving {
    khub__proof *proof;
    const khub__digest_claim *claim; /* may be NULL */
    khub_error *err;
    int copy; /* 1: what is used later is copied into memory, whether it is leased or not */
} khub__proving;

/* Hashes it and compares: what is wrong is damage (khub__proof_damage). KHUB_E_IO, KHUB_E_NOMEM. */
int khub__item_prove(const khub__proving *with, khub__item *it);

/* Looks at it as it is now, without reading it; a library is held. *fit 0: it isn't believed.
 * `as_blob`: at the blob of its name, where a link in the build leads as long as the build's directories are
 * as they were: a shorter way. KHUB_E_NOMEM. */
int khub__item_look(const khub__proving *with, khub__item *it, int as_blob, int *fit);

#endif
