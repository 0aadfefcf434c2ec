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

#ifdef __clang_analyzer__ /* it reads one source at a time, and must know what these return */
#define khub__refuse(verdict, reason, ...) ((khub__refuse)(verdict, reason, __VA_ARGS__), -1)
#define khub__refuse_memory(verdict)       ((khub__refuse_memory)(verdict), -1)
#endif

/* A stranger's text for a message: cut, and "?" for what isn't printable ASCII. */
enum { KHUB__SHOWN_MAX = 41 };
const char *khub__shown(char out[KHUB__SHOWN_MAX], const char *text);

#endif
