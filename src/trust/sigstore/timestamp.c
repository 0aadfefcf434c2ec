#include "trust/sigstore/timestamp.h"

#include <string.h>

#define OID(text)                                                                                            \
    {                                                                                                        \
        (const unsigned char *)(text), sizeof(text) - 1                                                      \
    }

static const khub__span signed_data = OID("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"),
                        timestamp_info = OID("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x04");

/* AlgorithmIdentifiers: hashes with and without NULL, and ECDSA or RSA with each. */
static const struct algorithm {
    khub__span oid;
    khub__digest_kind digest;
} hashes[] =
    {
        {OID("\x60\x86\x48\x01\x65\x03\x04\x02\x01"), KHUB__SHA256},
        {OID("\x60\x86\x48\x01\x65\x03\x04\x02\x02"), KHUB__SHA384},
        {OID("\x60\x86\x48\x01\x65\x03\x04\x02\x03"), KHUB__SHA512},
},
  signatures[] = {
      {OID("\x2a\x86\x48\xce\x3d\x04\x03\x02"), KHUB__SHA256},
      {OID("\x2a\x86\x48\xce\x3d\x04\x03\x03"), KHUB__SHA384},
      {OID("\x2a\x86\x48\xce\x3d\x04\x03\x04"), KHUB__SHA512},
      {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"), KHUB__SHA256},
      {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c"), KHUB__SHA384},
      {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d"), KHUB__SHA512},
};

static khub__digest_kind find(const struct algorithm *list, size_t count, khub__span oid)
{
    for (size_t i = 0; i < count; i++)
        if (khub__span_is(list[i].oid, oid)) return list[i].digest;
    return KHUB__NO_DIGEST;
}
#define FIND(list, oid) find(list, sizeof(list) / sizeof(*(list)), oid)

/* An AlgorithmIdentifier whose parameters are NULL or absent. 0 or -1. */
static int take_algorithm(khub__span *oid, khub__span *from)
{
    khub__span algorithm, none;
    return khub__der_take(from, KHUB__DER_SEQUENCE, &algorithm) ||
                   khub__der_take(&algorithm, KHUB__DER_OID, oid) ||
                   khub__der_take_optional(&algorithm, KHUB__DER_NULL, &none) || algorithm.length
               ? -1
               : 0;
}

static int take_oid(khub__span *from, khub__span expected)
{
    khub__span oid;
    return khub__der_take(from, KHUB__DER_OID, &oid) || !khub__span_is(oid, expected) ? -1 : 0;
}

/* A number that isn't negative, of any size. */
static int skip_number(khub__span *from)
{
    khub__span number;
    return khub__der_take(from, KHUB__DER_INTEGER, &number) || (number.data[0] & 0x80) ? -1 : 0;
}

/* A part of a second in a context tag: 1 to 999 in the format, one byte in what other verifiers take. */
static int skip_part(khub__span *from, int tag)
{
    khub__span part = {(const unsigned char *)"\x01", 1};
    return khub__der_take_optional(from, tag, &part) || part.length != 1 || part.data[0] == 0 ||
                   part.data[0] > 127
               ? -1
               : 0;
}

/* How exact the time is: seconds, milliseconds, microseconds, each may be absent. It says nothing that
 * matters here. */
static int skip_accuracy(khub__span *from)
{
    khub__span parts = {NULL, 0};
    if (khub__der_take_optional(from, KHUB__DER_SEQUENCE, &parts)) return -1;
    if (khub__der_next(&parts) == KHUB__DER_INTEGER && skip_number(&parts)) return -1;
    return skip_part(&parts, KHUB__DER_CONTEXT) || skip_part(&parts, KHUB__DER_CONTEXT + 1) || parts.length
               ? -1
               : 0;
}

/* The authority's name, as a directory has it. */
static int skip_authority(khub__span *from)
{
    khub__span general = {NULL, 0}, name;
    if (khub__der_take_optional(from, KHUB__DER_INNER, &general)) return -1;
    if (!general.data) return 0;
    return khub__der_take(&general, KHUB__DER_INNER + 4, &name) || general.length || !khub__der_is_name(name)
               ? -1
               : 0;
}

/* TSTInfo. An extension of it could change what it means, and no authority of sigstore writes one. */
static const char *read_info(khub__timestamp *out, khub__span from)
{
    khub__span info, oid, imprint, ignored;
    int version, ordered = 0;
    out->info = from;
    if (!khub__der_strict(from) || khub__der_take(&from, KHUB__DER_SEQUENCE, &info) ||
        khub__der_small(&version, &info) || version != 1 || khub__der_take(&info, KHUB__DER_OID, &ignored) ||
        khub__der_take(&info, KHUB__DER_SEQUENCE, &imprint) || take_algorithm(&oid, &imprint) ||
        khub__der_take(&imprint, KHUB__DER_OCTET_STRING, &out->imprint) || imprint.length ||
        skip_number(&info))
        return "what it attests can't be read";
    out->imprint_kind = FIND(hashes, oid);
    if (khub__der_next(&info) != KHUB__DER_TIME || khub__der_time(&out->time_us, &info, 1))
        return "its time isn't one";
    if (skip_accuracy(&info) ||
        (khub__der_next(&info) == KHUB__DER_BOOLEAN && (khub__der_boolean(&ordered, &info) || !ordered)) ||
        (khub__der_next(&info) == KHUB__DER_INTEGER && skip_number(&info)) || skip_authority(&info) ||
        info.length)
        return "what it attests can't be read";
    return NULL;
}

/* ESSCertIDv2 (RFC 5035) of the signer, which stands first: its hash is SHA-256 unless it says so. */
static int read_signer(khub__timestamp *out, khub__span value)
{
    khub__span list, certificates, one, oid = hashes[0].oid;
    if (khub__der_take(&value, KHUB__DER_SEQUENCE, &list) || value.length ||
        khub__der_take(&list, KHUB__DER_SEQUENCE, &certificates) ||
        khub__der_take(&certificates, KHUB__DER_SEQUENCE, &one))
        return -1;
    if (khub__der_next(&one) == KHUB__DER_SEQUENCE && take_algorithm(&oid, &one)) return -1;
    out->signer_digest = FIND(hashes, oid);
    return khub__der_take(&one, KHUB__DER_OCTET_STRING, &out->signer_attribute);
}

static int read_content_type(khub__timestamp *out, khub__span value)
{
    (void)out;
    return take_oid(&value, timestamp_info) || value.length ? -1 : 0;
}

static int read_message_digest(khub__timestamp *out, khub__span value)
{
    return khub__der_take(&value, KHUB__DER_OCTET_STRING, &out->digest_attribute) || value.length ? -1 : 0;
}

/* The signed attributes that must be there. */
static const struct attribute {
    khub__span oid;
    int (*read)(khub__timestamp *out, khub__span value);
} attributes[] = {
    {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03"), read_content_type},
    {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04"), read_message_digest},
    {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x02\x2f"), read_signer},
};
enum { ATTRIBUTES = sizeof(attributes) / sizeof(*attributes) };

/* One attribute with one value; `seen` counts those above. */
static int read_attribute(khub__timestamp *out, khub__span attribute, int seen[ATTRIBUTES])
{
    khub__span oid, value;
    if (khub__der_take(&attribute, KHUB__DER_OID, &oid) ||
        khub__der_take(&attribute, KHUB__DER_SET, &value) || attribute.length)
        return -1;
    for (size_t i = 0; i < ATTRIBUTES; i++)
        if (khub__span_is(oid, attributes[i].oid) && (seen[i]++ || attributes[i].read(out, value))) return -1;
    return 0;
}

/* `list`: the elements, in a set's order. */
static int read_attributes(khub__timestamp *out, khub__span list)
{
    khub__span attribute;
    int seen[ATTRIBUTES] = {0};
    if (!khub__der_ordered(list)) return -1;
    while (list.length)
        if (khub__der_take(&list, KHUB__DER_SEQUENCE, &attribute) || read_attribute(out, attribute, seen))
            return -1;
    for (size_t i = 0; i < ATTRIBUTES; i++)
        if (seen[i] != 1) return -1;
    return 0;
}

/* Attributes that nobody signed say nothing, but are some. */
static int skip_unsigned(khub__span *from)
{
    khub__span list = {NULL, 0}, attribute, ignored;
    if (khub__der_take_optional(from, KHUB__DER_INNER + 1, &list) || !khub__der_ordered(list)) return -1;
    while (list.length)
        if (khub__der_take(&list, KHUB__DER_SEQUENCE, &attribute) ||
            khub__der_take(&attribute, KHUB__DER_OID, &ignored) ||
            khub__der_take(&attribute, KHUB__DER_SET, &ignored) || attribute.length)
            return -1;
    return 0;
}

/* SignerInfo, whose signer is named by issuer and serial number. */
static const char *read_signer_info(khub__timestamp *out, khub__span set)
{
    khub__span info, who, digest, algorithm, list;
    int version;
    if (khub__der_take(&set, KHUB__DER_SEQUENCE, &info) || set.length) return "it hasn't exactly one signer";
    if (khub__der_small(&version, &info) || version != 1 || khub__der_take(&info, KHUB__DER_SEQUENCE, &who) ||
        khub__der_take_whole(&who, KHUB__DER_SEQUENCE, &out->issuer) || !khub__der_is_name(out->issuer) ||
        khub__der_take(&who, KHUB__DER_INTEGER, &out->serial) || who.length || take_algorithm(&digest, &info))
        return "its signer can't be read";
    out->attributes = info;
    if (khub__der_take(&info, KHUB__DER_INNER, &list)) return "it has no signed attributes";
    out->attributes.length -= info.length;
    if (read_attributes(out, list)) return "its signed attributes aren't those of a timestamp";
    if (take_algorithm(&algorithm, &info) || khub__der_take(&info, KHUB__DER_OCTET_STRING, &out->signature) ||
        skip_unsigned(&info) || info.length)
        return "its signature can't be read";
    out->digest = FIND(hashes, digest);
    if (FIND(signatures, algorithm) != out->digest) out->digest = KHUB__NO_DIGEST;
    return NULL;
}

static const char *read_embedded(khub__timestamp *out, khub__span *from)
{
    khub__certificate certificate;
    khub__span list, whole;
    if (khub__der_take_optional(from, KHUB__DER_INNER, &out->embedded) || !khub__der_ordered(out->embedded))
        return "its certificates can't be read";
    for (list = out->embedded; list.length;)
        if (khub__der_take_whole(&list, KHUB__DER_SEQUENCE, &whole) ||
            khub__certificate_read(&certificate, whole))
            return "a certificate in it can't be read";
    return NULL;
}

/* The digests that are listed, each an algorithm. */
static int read_digests(khub__timestamp *out, khub__span *from)
{
    khub__span list, oid;
    if (khub__der_take(from, KHUB__DER_SET, &out->digests)) return -1;
    for (list = out->digests; list.length;)
        if (take_algorithm(&oid, &list)) return -1;
    return 0;
}

static const char *read_signed_data(khub__timestamp *out, khub__span data)
{
    khub__span content, inner, info, signers;
    int version;
    if (khub__der_small(&version, &data) || version < 1 || version > 5 || read_digests(out, &data) ||
        khub__der_take(&data, KHUB__DER_SEQUENCE, &content) || take_oid(&content, timestamp_info) ||
        khub__der_take(&content, KHUB__DER_INNER, &inner) || content.length ||
        khub__der_take(&inner, KHUB__DER_OCTET_STRING, &info) || inner.length)
        return "it holds no timestamp";
    const char *wrong = read_info(out, info);
    if (!wrong) wrong = read_embedded(out, &data);
    if (wrong) return wrong;
    if (khub__der_take(&data, KHUB__DER_SET, &signers) || data.length) return "its signers can't be read";
    return read_signer_info(out, signers);
}

const char *khub__timestamp_read(khub__timestamp *out, khub__span der)
{
    khub__span response, status, token, wrapped, data;
    memset(out, 0, sizeof(*out));
    if (!khub__der_strict(der)) return "it isn't DER";
    if (khub__der_take(&der, KHUB__DER_SEQUENCE, &response) ||
        khub__der_take(&response, KHUB__DER_SEQUENCE, &status) || khub__der_small(&out->status, &status))
        return "it is no answer of a timestamp authority";
    if (khub__der_take(&response, KHUB__DER_SEQUENCE, &token) || response.length ||
        take_oid(&token, signed_data) || khub__der_take(&token, KHUB__DER_INNER, &wrapped) || token.length ||
        khub__der_take(&wrapped, KHUB__DER_SEQUENCE, &data) || wrapped.length)
        return "it holds no timestamp";
    return read_signed_data(out, data);
}

/* 1: the digest over the pieces is `expected`. */
static int is_digest(khub__digest_kind kind, const khub__span *pieces, size_t count, khub__span expected)
{
    unsigned char digest[KHUB__DIGEST_MAX];
    if (kind == KHUB__NO_DIGEST || khub__digest(digest, kind, pieces, count)) return 0;
    return khub__span_is((khub__span){digest, khub__digest_size(kind)}, expected);
}

/* The digest of the signature must be one of those that the answer lists before it. */
static int is_listed(const khub__timestamp *t)
{
    khub__span list = t->digests, oid;
    int found = 0;
    while (list.length && take_algorithm(&oid, &list) == 0)
        found |= FIND(hashes, oid) == t->digest;
    return found;
}

/* Certificates in the answer are of no use unless the authority's is among them, if there are any. */
static int agrees_with(const khub__timestamp *t, const khub__certificate *signer)
{
    khub__span list = t->embedded, whole;
    int found = !list.length;
    while (list.length && khub__der_take_whole(&list, KHUB__DER_SEQUENCE, &whole) == 0)
        found |= khub__span_is(whole, signer->whole);
    return found;
}

/* The signed attributes count as a set, whatever tag they stand in. */
static int is_signed(const khub__timestamp *t, const khub__authority *authority)
{
    unsigned char text[4096];
    if (t->attributes.length > sizeof(text)) return 0;
    memcpy(text, t->attributes.data, t->attributes.length);
    text[0] = KHUB__DER_SET;
    return khub__key_signed(&authority->key, t->digest, (khub__span){text, t->attributes.length},
                            t->signature);
}

static int is_of(const khub__timestamp *t, const khub__authority *authority)
{
    const khub__certificate *signer = &authority->certificates[0];
    if (authority->count < 2 || !khub__authority_valid(authority, t->time_us)) return 0;
    if (signer->is_ca || !signer->purpose_is_critical || !(signer->purpose & KHUB__PURPOSE_TIME)) return 0;
    if (!khub__span_is(t->issuer, signer->issuer) || !khub__span_is(t->serial, signer->serial)) return 0;
    return agrees_with(t, signer) && is_digest(t->signer_digest, &signer->whole, 1, t->signer_attribute) &&
           is_signed(t, authority);
}

int khub__timestamp_holds(const khub__timestamp *timestamp, const khub__authorities *authorities,
                          khub__span bytes)
{
    if (timestamp->status != 0 || timestamp->digest == KHUB__NO_DIGEST || !is_listed(timestamp)) return 0;
    if (!is_digest(timestamp->imprint_kind, &bytes, 1, timestamp->imprint) ||
        !is_digest(timestamp->digest, &timestamp->info, 1, timestamp->digest_attribute))
        return 0;
    for (size_t i = 0; i < authorities->count; i++)
        if (is_of(timestamp, &authorities->items[i])) return 1;
    return 0;
}
