/* A transparency log: that an entry is in it, when it got there, and what it says. */
#ifndef TRUST_SIGSTORE_LOG_H
#define TRUST_SIGSTORE_LOG_H

#include "trust/sigstore/bundle.h"
#include "trust/sigstore/root.h"

/* What a checkpoint says. Points into its text. */
typedef struct khub__checkpoint {
    khub__span note; /* what is signed */
    int64_t tree_size;
    unsigned char root_hash[32];
    khub__span signatures; /* the lines below */
} khub__checkpoint;

/* NULL, or what is wrong with it. */
const char *khub__checkpoint_read(khub__checkpoint *out, khub__span text);

/* The entry's place in the tree, the tree in the checkpoint, the checkpoint signed by the log. 0, or -1 with
 * the verdict. */
int khub__log_proves(const khub__log *log, const khub__entry *entry, khub__verdict *verdict);

/* The log's promise of the entry's time, where there is one. 0, or -1 with the verdict. */
int khub__log_promised(const khub__log *log, const khub__entry *entry, khub__verdict *verdict);

/* The entry is of this digest, signature and certificate, and of nothing else. 0, or -1 with the verdict. */
int khub__log_entry_is(const khub__bundle *bundle, const khub__certificate *certificate, const khub__key *key,
                       const unsigned char digest[32], khub__verdict *verdict);

#endif
