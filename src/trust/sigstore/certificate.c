#include "trust/sigstore/certificate.h"

#include <string.h>

#define OID(text)                                                                                            \
    {                                                                                                        \
        (const unsigned char *)(text), sizeof(text) - 1                                                      \
    }
#define ID_CE  "\x55\x1d"                             /* 2.5.29 */
#define ID_PE  "\x2b\x06\x01\x05\x05\x07\x01"         /* 1.3.6.1.5.5.7.1 */
#define FULCIO "\x2b\x06\x01\x04\x01\x83\xbf\x30\x01" /* 1.3.6.1.4.1.57264.1 */

enum { MAX_EXTENSIONS = 64 }; /* each is compared with the others; Fulcio writes 25 */

/* The whole AlgorithmIdentifier's content: with NULL for RSA, without parameters for ECDSA (RFC 5758). */
static const struct algorithm {
    khub__span content;
    khub__digest_kind digest;
    int is_rsa;
} algorithms[] = {
    {OID("\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02"), KHUB__SHA256, 0},
    {OID("\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x03"), KHUB__SHA384, 0},
    {OID("\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x04"), KHUB__SHA512, 0},
    {OID("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\x00"), KHUB__SHA256, 1},
    {OID("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c\x05\x00"), KHUB__SHA384, 1},
    {OID("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d\x05\x00"), KHUB__SHA512, 1},
};

static int read_algorithm(khub__certificate *c, khub__span content)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
        if (!khub__span_is(content, algorithms[i].content)) continue;
        c->digest = algorithms[i].digest;
        c->is_rsa = algorithms[i].is_rsa;
        return 0;
    }
    return -1;
}

/* An extension's value, critical or not. 0 or -1. */
typedef int read_fn(khub__certificate *c, khub__span value, int critical);

static int read_usage(khub__certificate *c, khub__span value, int critical)
{
    khub__span bits;
    (void)critical;
    if (khub__der_take(&value, KHUB__DER_BIT_STRING, &bits) || value.length || bits.length < 2) return -1;
    c->has_usage = 1;
    if (bits.data[1] & 0x80) c->usage |= KHUB__USAGE_SIGNATURE;
    if (bits.data[1] & 0x04) c->usage |= KHUB__USAGE_SIGN_CERTIFICATES;
    return 0;
}

static int read_purpose(khub__certificate *c, khub__span value, int critical)
{
    static const khub__span code = OID("\x2b\x06\x01\x05\x05\x07\x03\x03"),
                            stamps = OID("\x2b\x06\x01\x05\x05\x07\x03\x08");
    khub__span list, oid;
    if (khub__der_take(&value, KHUB__DER_SEQUENCE, &list) || value.length || !list.length) return -1;
    c->has_purpose = 1;
    c->purpose_is_critical = critical;
    while (list.length) {
        if (khub__der_take(&list, KHUB__DER_OID, &oid)) return -1;
        c->purpose |= khub__span_is(oid, code)     ? KHUB__PURPOSE_CODE
                      : khub__span_is(oid, stamps) ? KHUB__PURPOSE_TIME
                                                   : KHUB__PURPOSE_OTHER;
    }
    return 0;
}

static int read_constraints(khub__certificate *c, khub__span value, int critical)
{
    khub__span list;
    if (khub__der_take(&value, KHUB__DER_SEQUENCE, &list) || value.length) return -1;
    if (khub__der_next(&list) == KHUB__DER_BOOLEAN && (khub__der_boolean(&c->is_ca, &list) || !c->is_ca))
        return -1; /* false is the default, which DER leaves out */
    if (list.length && (!c->is_ca || khub__der_small(&c->path_length, &list))) return -1;
    return list.length || (c->is_ca && !critical) ? -1 : 0;
}

static int read_subject_key(khub__certificate *c, khub__span value, int critical)
{
    return critical || khub__der_take(&value, KHUB__DER_OCTET_STRING, &c->subject_key) || value.length ||
                   !c->subject_key.length
               ? -1
               : 0;
}

/* The key's name alone: the issuer's name and serial number beside it have no use here, and no certificate of
 * sigstore's has them. */
static int read_authority_key(khub__certificate *c, khub__span value, int critical)
{
    khub__span list;
    return critical || khub__der_take(&value, KHUB__DER_SEQUENCE, &list) || value.length ||
                   khub__der_take(&list, KHUB__DER_CONTEXT, &c->authority_key) || list.length ||
                   !c->authority_key.length
               ? -1
               : 0;
}

static int read_names(khub__certificate *c, khub__span value, int critical)
{
    c->names_are_critical = critical;
    return khub__der_take(&value, KHUB__DER_SEQUENCE, &c->names) || value.length || !c->names.length ? -1 : 0;
}

static const struct known {
    khub__span oid;
    read_fn *read;
    const char *wrong;
} known[] = {
    {OID(ID_CE "\x0f"), read_usage, "its key usage can't be read"},
    {OID(ID_CE "\x25"), read_purpose, "its extended key usage can't be read"},
    {OID(ID_CE "\x13"), read_constraints, "its basic constraints can't be read"},
    {OID(ID_CE "\x0e"), read_subject_key, "its subject key identifier can't be read"},
    {OID(ID_CE "\x23"), read_authority_key, "its authority key identifier can't be read"},
    {OID(ID_CE "\x11"), read_names, "its alternative names can't be read"},
};

static int starts_with(khub__span oid, khub__span arc)
{
    return oid.length > arc.length && !memcmp(oid.data, arc.data, arc.length);
}

/* An extension that isn't read here may say anything when it isn't critical, unless it is one of X.509's own:
 * what those say would have to be right. */
static const char *judge_unknown(khub__span oid, int critical)
{
    static const khub__span ce = OID(ID_CE), pe = OID(ID_PE);
    if (critical) return "it has a critical extension that isn't known";
    if (starts_with(oid, ce) || starts_with(oid, pe))
        return "it has an extension that no such certificate has";
    return NULL;
}

static const char *read_extension(khub__certificate *c, khub__span oid, int critical, khub__span value)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (!khub__span_is(oid, known[i].oid)) continue;
        return khub__der_strict(value) && known[i].read(c, value, critical) == 0 ? NULL : known[i].wrong;
    }
    return judge_unknown(oid, critical);
}

/* Takes the next extension of the list. 0 or -1. */
static int take_extension(khub__span *list, khub__span *oid, int *critical, khub__span *value)
{
    khub__span one;
    *critical = 0;
    if (khub__der_take(list, KHUB__DER_SEQUENCE, &one) || khub__der_take(&one, KHUB__DER_OID, oid)) return -1;
    if (khub__der_next(&one) == KHUB__DER_BOOLEAN && (khub__der_boolean(critical, &one) || !*critical))
        return -1;
    return khub__der_take(&one, KHUB__DER_OCTET_STRING, value) || one.length ? -1 : 0;
}

static int is_in(khub__span list, khub__span oid)
{
    khub__span other, value;
    int critical;
    while (list.length && take_extension(&list, &other, &critical, &value) == 0)
        if (khub__span_is(other, oid)) return 1;
    return 0;
}

static const char *read_extensions(khub__certificate *c)
{
    khub__span list = c->extensions, oid, value;
    int critical;
    for (int count = 0; list.length; count++) {
        if (count == MAX_EXTENSIONS) return "it has more extensions than any such certificate";
        if (take_extension(&list, &oid, &critical, &value)) return "its extensions can't be read";
        if (is_in(list, oid)) return "it has an extension twice";
        const char *wrong = read_extension(c, oid, critical, value);
        if (wrong) return wrong;
    }
    return NULL;
}

/* A positive number of at most 20 bytes (RFC 5280). */
static int is_serial(khub__span v)
{
    return v.length && v.length <= 21 && !(v.data[0] & 0x80) && (v.length <= 20 || v.data[0] == 0) &&
           !(v.length == 1 && v.data[0] == 0);
}

/* UTCTime up to 2049, GeneralizedTime after it. */
static int read_date(int64_t *out_us, khub__span *from)
{
    const int64_t year_2050 = INT64_C(2524608000) * 1000000;
    int utc = khub__der_next(from) == KHUB__DER_UTC_TIME;
    return khub__der_time(out_us, from, 0) || utc != (*out_us < year_2050) ? -1 : 0;
}

static const char *read_body(khub__certificate *c, khub__span algorithm)
{
    khub__span body, version, inner, dates, extensions, rest = c->tbs;
    int number;
    if (khub__der_take(&rest, KHUB__DER_SEQUENCE, &body)) return "it isn't a certificate";
    if (khub__der_take(&body, KHUB__DER_INNER, &version) || khub__der_small(&number, &version) ||
        number != 2 || version.length)
        return "it isn't of version 3";
    if (khub__der_take(&body, KHUB__DER_INTEGER, &c->serial) || !is_serial(c->serial))
        return "its serial number isn't one";
    if (khub__der_take(&body, KHUB__DER_SEQUENCE, &inner) || !khub__span_is(inner, algorithm))
        return "it names two algorithms for its signature";
    if (khub__der_take_whole(&body, KHUB__DER_SEQUENCE, &c->issuer) || !khub__der_is_name(c->issuer))
        return "its issuer isn't a name";
    if (khub__der_take(&body, KHUB__DER_SEQUENCE, &dates) || read_date(&c->not_before_us, &dates) ||
        read_date(&c->not_after_us, &dates) || dates.length)
        return "its dates can't be read";
    if (khub__der_take_whole(&body, KHUB__DER_SEQUENCE, &c->subject) || !khub__der_is_name(c->subject))
        return "its subject isn't a name";
    if (khub__der_take_whole(&body, KHUB__DER_SEQUENCE, &c->key)) return "it has no key";
    if (khub__der_take(&body, KHUB__DER_INNER + 3, &extensions) || body.length ||
        khub__der_take(&extensions, KHUB__DER_SEQUENCE, &c->extensions) || extensions.length)
        return "its extensions can't be read";
    return read_extensions(c);
}

const char *khub__certificate_read(khub__certificate *out, khub__span der)
{
    khub__span rest = der, content, algorithm;
    memset(out, 0, sizeof(*out));
    out->whole = der;
    out->path_length = -1;
    if (!khub__der_strict(der)) return "it isn't DER";
    if (khub__der_take(&rest, KHUB__DER_SEQUENCE, &content) ||
        khub__der_take_whole(&content, KHUB__DER_SEQUENCE, &out->tbs) ||
        khub__der_take(&content, KHUB__DER_SEQUENCE, &algorithm) ||
        khub__der_bits(&out->signature, &content) || content.length)
        return "it isn't a certificate";
    if (read_algorithm(out, algorithm)) return "it is signed in a way that isn't known";
    return read_body(out, algorithm);
}

int khub__certificate_extension(khub__span *value, const khub__certificate *certificate, khub__span oid)
{
    khub__span list = certificate->extensions, other;
    int critical;
    while (list.length && take_extension(&list, &other, &critical, value) == 0)
        if (khub__span_is(other, oid)) return 0;
    return -1;
}

int khub__certificate_text(khub__span *out, const khub__certificate *certificate, int number)
{
    unsigned char oid[] = FULCIO "\x00";
    khub__span value;
    oid[sizeof(oid) - 2] = (unsigned char)number;
    *out = (khub__span){NULL, 0};
    if (khub__certificate_extension(&value, certificate, (khub__span){oid, sizeof(oid) - 1})) return 0;
    if (number >= 8) {
        khub__span text;
        if (khub__der_take(&value, KHUB__DER_UTF8, &text) || value.length) return -1;
        value = text;
    }
    if (!khub__der_is_text(value)) return -1;
    *out = value;
    return 0;
}

/* OtherName: Fulcio's object identifier, and a UTF8String in a context tag. */
static int read_other_name(khub__span *out, khub__span name)
{
    static const khub__span fulcio_name = OID(FULCIO "\x07");
    khub__span oid, value;
    return khub__der_take(&name, KHUB__DER_OID, &oid) || !khub__span_is(oid, fulcio_name) ||
                   khub__der_take(&name, KHUB__DER_INNER, &value) || name.length ||
                   khub__der_take(&value, KHUB__DER_UTF8, out) || value.length
               ? -1
               : 0;
}

static int is_ascii(khub__span v)
{
    for (size_t i = 0; i < v.length; i++)
        if (v.data[i] >= 0x80) return 0;
    return 1;
}

int khub__certificate_subject(khub__span *out, const khub__certificate *certificate)
{
    enum { OTHER_NAME = KHUB__DER_INNER, EMAIL = KHUB__DER_CONTEXT + 1, ADDRESS = KHUB__DER_CONTEXT + 6 };
    khub__span names = certificate->names, name;
    int tag = khub__der_next(&names);
    if (tag != OTHER_NAME && tag != EMAIL && tag != ADDRESS) return -1;
    if (khub__der_take(&names, tag, &name) || names.length) return -1;
    if (tag == OTHER_NAME ? read_other_name(&name, name) : !is_ascii(name)) return -1;
    if (!name.length || !khub__der_is_text(name)) return -1;
    *out = name;
    return 0;
}

int khub__certificate_names(const khub__certificate *certificate, const khub__certificate *issuer)
{
    return khub__span_is(certificate->issuer, issuer->subject);
}

int khub__certificate_is_signed(const khub__certificate *certificate, const khub__key *key)
{
    if (certificate->is_rsa != (key->kind == KHUB__KEY_RSA) || key->kind == KHUB__KEY_ED25519) return 0;
    return khub__key_signed(key, certificate->digest, certificate->tbs, certificate->signature);
}
