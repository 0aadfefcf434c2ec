/* Whether a build may be loaded: from the chosen one to files of which each is proven. */
#ifndef KERNEL_JUDGE_H
#define KERNEL_JUDGE_H

#include "kernel/kernel.h"
#include "kernel/metadata.h"
#include "kernel/place.h"
#include "trust/proof.h"

typedef struct khub__judging {
    khub_kernel *kernel; /* borrowed; its trust takes the decisions */
    const khub__place *place;
    const khub__way *way;
    const khub_policy *policy; /* NULL: of a built-in kernel */
    int built_in;              /* it came with khub: loaded as it is */
    khub__picked files;        /* of a build of the Hub */
    khub__proof proof;
    khub__metadata metadata;
    khub__digest_claim claim;
    int has_claim;
    khub__proven proven; /* the libraries, with is_proven */
    int is_proven;       /* 0: the build is loaded as it is */
} khub__judging;

/* For the build that the kernel names. Nothing of it is read. In any case to be closed. */
int khub__judge_open(khub__judging *out, khub_kernel *kernel, khub__place *place, khub__way *way,
                     khub_error *err);
void khub__judge_close(khub__judging *judging);

/* Its publisher, then metadata.json and its signature, which are brought; only then the former is parsed.
 * KHUB_E_UNTRUSTED; errors of khub_download and khub__metadata_parse. */
int khub__judge_metadata(khub__judging *judging, khub_error *err);

/* Brings the other files. khub_download's errors. */
int khub__judge_bring(khub__judging *judging, khub_error *err);

/* Proves all of them. What is damaged in the cache is fetched again, once, where
 * the network is there. `copy`: libraries are loaded from memory. KHUB_E_UNTRUSTED; khub_download's. */
int khub__judge_content(khub__judging *judging, int copy, khub_error *err);

#endif
