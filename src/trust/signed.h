/* The signature of metadata.json while a build is judged. */
#ifndef TRUST_SIGNED_H
#define TRUST_SIGNED_H

#include "trust/policy.h"
#include "trust/proof.h"

enum { KHUB__SIGNATURE_MAX_BYTES = 1 << 20 }; /* a longer one isn't fetched, nor read */

/* Judges metadata.json.sigstore, if the build has one, over these bytes, before anything of them is read: by
 * the policy's identities and trusted root. One of somebody who isn't known counts as none, and none is
 * refused at level `signed` only; one that is broken, too long or no file is refused at each level.
 * KHUB_E_UNTRUSTED (with damaged_count: the file isn't the commit's); khub__policy_root's. */
int khub__proof_signature(khub__proof *proof, const khub__bytes *metadata, const khub_policy *policy,
                          khub_error *err);

#endif
