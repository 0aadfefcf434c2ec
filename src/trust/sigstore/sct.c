#include "trust/sigstore/sct.h"

#include "base/text.h"

enum { ID_BYTES = 32, VERSION_1 = 0, SHA_256 = 4, RSA = 1, ECDSA = 3 };

#define LIST_OID "\x2b\x06\x01\x04\x01\xd6\x79\x02\x04\x02" /* 1.3.6.1.4.1.11129.2.4.2 */

typedef struct sct {
    khub__span id, extensions, signature;
    uint64_t time_ms;
    int is_rsa;
} sct;

/* The next `bytes` as a number. -1: fewer are left. */
static int take_number(uint64_t *out, khub__span *from, size_t bytes)
{
    if (from->length < bytes) return -1;
    *out = 0;
    for (size_t i = 0; i < bytes; i++)
        *out = *out << 8 | from->data[i];
    *from = (khub__span){from->data + bytes, from->length - bytes};
    return 0;
}

static int take_bytes(khub__span *out, khub__span *from, size_t bytes)
{
    if (from->length < bytes) return -1;
    *out = (khub__span){from->data, bytes};
    *from = (khub__span){from->data + bytes, from->length - bytes};
    return 0;
}

/* Bytes after their count, which has two. */
static int take_counted(khub__span *out, khub__span *from)
{
    uint64_t count;
    return take_number(&count, from, 2) || take_bytes(out, from, (size_t)count);
}

/* The extension's value: an OCTET STRING around a list with one. NULL, or what is wrong. */
static const char *read_sct(sct *out, khub__span value)
{
    khub__span list, inner, one;
    uint64_t version, digest, algorithm;
    if (khub__der_take(&value, KHUB__DER_OCTET_STRING, &list) || value.length ||
        take_counted(&inner, &list) || list.length || take_counted(&one, &inner))
        return "its list of log timestamps can't be read";
    if (inner.length) return "it has more than one log timestamp";
    if (take_number(&version, &one, 1) || version != VERSION_1 || take_bytes(&out->id, &one, ID_BYTES) ||
        take_number(&out->time_ms, &one, 8) || take_counted(&out->extensions, &one) ||
        take_number(&digest, &one, 1) || take_number(&algorithm, &one, 1) ||
        take_counted(&out->signature, &one) || one.length)
        return "its log timestamp can't be read";
    if (digest != SHA_256 || (algorithm != RSA && algorithm != ECDSA))
        return "its log timestamp is signed in another way";
    out->is_rsa = algorithm == RSA;
    return out->time_ms > (uint64_t)INT64_MAX / 1000 ? "its log timestamp is out of range" : NULL;
}

static void add_span(khub__text *to, khub__span bytes)
{
    if (bytes.length) khub__text_add_bytes(to, (const char *)bytes.data, bytes.length);
}

static void add_number(khub__text *to, uint64_t value, size_t bytes)
{
    while (bytes-- > 0)
        khub__text_add_bytes(to, (const char[]){(char)(value >> 8 * bytes)}, 1);
}

/* A DER element around `content`. */
static void add_element(khub__text *to, int tag, khub__span content)
{
    size_t bytes = 1;
    while (bytes < 4 && content.length >> 8 * bytes)
        bytes++;
    add_number(to, (uint64_t)tag, 1);
    if (content.length >= 0x80) add_number(to, 0x80 + bytes, 1);
    add_number(to, content.length, bytes);
    add_span(to, content);
}

static khub__span span_of(const khub__text *text)
{
    return (khub__span){(const unsigned char *)text->data, text->length};
}

/* What the log saw: the certificate's body without the list of log timestamps, with its lengths made new. */
static void add_body(khub__text *to, const khub__certificate *c, khub__span list_oid)
{
    khub__text extensions = {0}, wrapped = {0}, body = {0};
    khub__span list = c->extensions, whole, content, oid;
    while (list.length && khub__der_take_whole(&list, KHUB__DER_SEQUENCE, &whole) == 0) {
        khub__span rest = whole;
        int is_list = !khub__der_take(&rest, KHUB__DER_SEQUENCE, &content) &&
                      !khub__der_take(&content, KHUB__DER_OID, &oid) && khub__span_is(oid, list_oid);
        if (!is_list) add_span(&extensions, whole);
    }
    add_element(&wrapped, KHUB__DER_SEQUENCE, span_of(&extensions));
    /* the certificate's key stands right before its extensions, which end the body */
    khub__span tbs = c->tbs, before;
    khub__der_take(&tbs, KHUB__DER_SEQUENCE, &before);
    before.length = (size_t)(c->key.data + c->key.length - before.data);
    add_span(&body, before);
    add_element(&body, KHUB__DER_INNER + 3, span_of(&wrapped));
    add_element(to, KHUB__DER_SEQUENCE, span_of(&body));
    to->failed |= extensions.failed | wrapped.failed | body.failed;
    khub__text_free(&extensions);
    khub__text_free(&wrapped);
    khub__text_free(&body);
}

/* RFC 6962, 3.2: an entry of a certificate before it had the timestamp. */
static void add_signed(khub__text *to, const sct *s, const khub__certificate *c,
                       const unsigned char issuer_hash[32], khub__span list_oid)
{
    khub__text body = {0};
    add_body(&body, c, list_oid);
    add_number(to, VERSION_1, 1);
    add_number(to, 0, 1); /* a certificate's timestamp */
    add_number(to, s->time_ms, 8);
    add_number(to, 1, 2); /* an entry before the certificate */
    khub__text_add_bytes(to, (const char *)issuer_hash, 32);
    add_number(to, body.length, 3);
    add_span(to, span_of(&body));
    add_number(to, s->extensions.length, 2);
    add_span(to, s->extensions);
    to->failed |= body.failed;
    khub__text_free(&body);
}

static int bad(khub__verdict *verdict, const char *fact)
{
    return khub__refuse(verdict, KHUB_SIGNATURE_BAD_SCT, "certificate: %s", fact);
}

int khub__sct_judge(const khub__certificate *certificate, const khub__certificate *issuer,
                    const khub__logs *logs, khub__verdict *verdict)
{
    static const khub__span list_oid = {(const unsigned char *)LIST_OID, sizeof(LIST_OID) - 1};
    unsigned char issuer_hash[KHUB__DIGEST_MAX];
    khub__span value;
    sct s;
    if (khub__certificate_extension(&value, certificate, list_oid))
        return bad(verdict, "no certificate log's timestamp is in it");
    const char *wrong = read_sct(&s, value);
    if (wrong) return bad(verdict, wrong);
    const khub__log *log = khub__log_find(logs, s.id);
    if (!log || !log->key.handle)
        return bad(
            verdict,
            "its log timestamp is of a log that the trusted root doesn't have; the root may be out of date");
    if (!khub__period_has(&log->period, (int64_t)s.time_ms * 1000))
        return bad(verdict, "its log timestamp is of a time when the trusted root doesn't believe that log");
    if (s.is_rsa != (log->key.kind == KHUB__KEY_RSA) ||
        khub__digest(issuer_hash, KHUB__SHA256, &issuer->key, 1))
        return bad(verdict, "its log timestamp is signed in another way than its log signs");
    khub__text text = {0};
    add_signed(&text, &s, certificate, issuer_hash, list_oid);
    int failed = text.failed,
        holds = !failed && khub__key_signed(&log->key, KHUB__SHA256, span_of(&text), s.signature);
    khub__text_free(&text);
    if (failed) return khub__refuse_memory(verdict);
    return holds ? 0 : bad(verdict, "its log timestamp isn't signed by its log");
}
