#include "trust/sigstore/verdict.h"

#include <stdarg.h>
#include <stdio.h>

/* What is quoted of a stranger's text must not steer a terminal, or end a line. */
static void make_harmless(char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)text[0], next = (unsigned char)text[1];
        if (c < ' ' || c == 0x7F) *text = '?';
        if (c == 0xC2 && next >= 0x80 && next < 0xA0) text[0] = text[1] = '?'; /* U+0080 to U+009F */
    }
}

int(khub__refuse)(khub__verdict *verdict, khub_signature_reason reason, const char *format, ...)
{
    va_list values;
    if (verdict->reason != KHUB_SIGNATURE_HOLDS || verdict->no_memory) return -1;
    verdict->reason = reason;
    va_start(values, format);
    vsnprintf(verdict->words, sizeof(verdict->words), format, values);
    va_end(values);
    make_harmless(verdict->words);
    return -1;
}

int(khub__refuse_memory)(khub__verdict *verdict)
{
    if (verdict->reason == KHUB_SIGNATURE_HOLDS) verdict->no_memory = 1;
    return -1;
}

const char *khub__shown(char out[KHUB__SHOWN_MAX], const char *text)
{
    size_t i = 0;
    for (; text[i] && i + 1 < KHUB__SHOWN_MAX; i++)
        out[i] = '?';
    out[i] = 0;
    while (i-- > 0)
        if (text[i] >= ' ' && text[i] <= '~') out[i] = text[i];
    return out;
}

const char *khub_signature_reason_name(khub_signature_reason reason)
{
    static const char *const names[] = {
        [KHUB_SIGNATURE_HOLDS] = "holds",
        [KHUB_SIGNATURE_MISSING] = "missing",
        [KHUB_SIGNATURE_TOO_LARGE] = "too-large",
        [KHUB_SIGNATURE_NOT_JSON] = "not-json",
        [KHUB_SIGNATURE_MEDIA_TYPE] = "media-type",
        [KHUB_SIGNATURE_BAD_FIELD] = "bad-field",
        [KHUB_SIGNATURE_CONTENT] = "content",
        [KHUB_SIGNATURE_BAD_CERTIFICATE] = "bad-certificate",
        [KHUB_SIGNATURE_BAD_KEY] = "bad-key",
        [KHUB_SIGNATURE_BAD_TIMESTAMP] = "bad-timestamp",
        [KHUB_SIGNATURE_NO_TIME] = "no-time",
        [KHUB_SIGNATURE_EXPIRED] = "expired",
        [KHUB_SIGNATURE_UNKNOWN_AUTHORITY] = "unknown-authority",
        [KHUB_SIGNATURE_BAD_CHAIN] = "bad-chain",
        [KHUB_SIGNATURE_BAD_SCT] = "bad-sct",
        [KHUB_SIGNATURE_PROFILE] = "profile",
        [KHUB_SIGNATURE_IDENTITY] = "identity",
        [KHUB_SIGNATURE_ENTRY_KIND] = "entry-kind",
        [KHUB_SIGNATURE_UNKNOWN_LOG] = "unknown-log",
        [KHUB_SIGNATURE_BAD_PROOF] = "bad-proof",
        [KHUB_SIGNATURE_BAD_CHECKPOINT] = "bad-checkpoint",
        [KHUB_SIGNATURE_FORGED_CHECKPOINT] = "forged-checkpoint",
        [KHUB_SIGNATURE_FORGED_PROMISE] = "forged-promise",
        [KHUB_SIGNATURE_OTHER_BYTES] = "other-bytes",
        [KHUB_SIGNATURE_FORGED] = "forged",
        [KHUB_SIGNATURE_OTHER_ENTRY] = "other-entry",
    };
    size_t i = (size_t)reason;
    return i < sizeof(names) / sizeof(*names) ? names[i] : "?";
}
