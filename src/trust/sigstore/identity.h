/* Who signed, as a certificate of Fulcio says, and whether that is somebody who is accepted. */
#ifndef TRUST_SIGSTORE_IDENTITY_H
#define TRUST_SIGSTORE_IDENTITY_H

#include "trust/sigstore/certificate.h"
#include "trust/sigstore/verdict.h"

/* Texts of a certificate; length 0: not there. */
typedef struct khub__signer {
    khub__span subject;
    khub__span old_issuer, issuer; /* Fulcio writes both: bare, and in DER */
    khub__span workflow, repository, commit, ref, trigger, run;
} khub__signer;

/* 0, or -1 with the verdict. What was read before stays. */
int khub__signer_read(khub__signer *out, const khub__certificate *certificate, khub__verdict *verdict);

/* One of the identities is the signer's. 0, or -1 with the verdict. */
int khub__signer_accepted(const khub__signer *signer, const khub_identity *identities, size_t count,
                          khub__verdict *verdict);

#endif
