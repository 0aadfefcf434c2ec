/* Why a signature is refused, while it is found out. */
#ifndef TRUST_SIGSTORE_VERDICT_H
#define TRUST_SIGSTORE_VERDICT_H

#include <khub/signature.h>

typedef struct khub__verdict {
    khub_signature_reason reason;
    int no_memory;
    char words[600];
} khub__verdict;

/* -1, with the reason and its words; the first one wins. */
int khub__refuse(khub__verdict *verdict, khub_signature_reason reason, const char *format, ...)
    KHUB_PRINTF(3, 4);

/* -1: there is no verdict, for lack of memory. */
int khub__refuse_memory(khub__verdict *verdict);

/* A stranger's text for a message: cut, and "?" for what isn't printable ASCII. */
enum { KHUB__SHOWN_MAX = 41 };
const char *khub__shown(char out[KHUB__SHOWN_MAX], const char *text);

#endif
