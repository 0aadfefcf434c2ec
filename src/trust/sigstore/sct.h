/* Signed certificate timestamps (RFC 6962): that a certificate was put into a public log before it was used.
 */
#ifndef TRUST_SIGSTORE_SCT_H
#define TRUST_SIGSTORE_SCT_H

#include "trust/sigstore/root.h"
#include "trust/sigstore/verdict.h"

/* The certificate has exactly one, of a log of the root. `issuer` signed the certificate. 0, or -1 with the
 * verdict. */
int khub__sct_judge(const khub__certificate *certificate, const khub__certificate *issuer,
                    const khub__logs *logs, khub__verdict *verdict);

#endif
