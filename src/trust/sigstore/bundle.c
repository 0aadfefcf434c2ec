#include "trust/sigstore/bundle.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/memory.h"

enum { SHA256_BYTES = 32 };
#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */

/* Whether a field must be there. sigstore's writers put null for some that they leave out, for others they
 * don't. */
typedef enum presence { REQUIRED, OPTIONAL, ABSENT_OR_A_LIST } presence;

typedef struct reading {
    khub__bundle *out;
    unsigned char *room; /* where the next decoded bytes go: all of them together are fewer than the text's */
    khub__verdict *verdict;
} reading;

static int bad(const reading *r, const char *key, const char *fact)
{
    return khub__refuse(r->verdict, KHUB_SIGNATURE_BAD_FIELD, "bundle: \"%s\" %s", key, fact);
}

/* The value of a field, NULL where it may be absent and is. 0 or -1. */
static int get(json_t **out, const reading *r, const json_t *object, const char *key, json_type type,
               presence need)
{
    static const char *const expected[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string"};
    json_t *value = json_object_get(object, key);
    *out = NULL;
    if (!value || (need == OPTIONAL && json_is_null(value)))
        return need == REQUIRED ? bad(r, key, "is absent") : 0;
    if (json_typeof(value) != type)
        return khub__refuse(r->verdict, KHUB_SIGNATURE_BAD_FIELD, "bundle: \"%s\" is %s, %s is expected", key,
                            khub__json_type_name(value), expected[type]);
    *out = value;
    return 0;
}

static int get_object(json_t **out, const reading *r, const json_t *object, const char *key, presence need)
{
    return get(out, r, object, key, JSON_OBJECT, need);
}

static int get_text(const char **out, const reading *r, const json_t *object, const char *key, presence need)
{
    json_t *value;
    *out = NULL;
    if (get(&value, r, object, key, JSON_STRING, need)) return -1;
    if (value) *out = json_string_value(value);
    return 0;
}

/* Base64 of at least one byte, of exactly `size` bytes unless that is 0. */
static int decode(khub__span *out, reading *r, const json_t *text, const char *key, size_t size)
{
    if (!json_is_string(text)) return bad(r, key, "is no string of base64");
    if (khub__base64_read(out, &r->room, json_string_value(text), json_string_length(text)))
        return bad(r, key, "isn't base64");
    if (out->length == 0) return bad(r, key, "is empty");
    if (size && out->length != size)
        return khub__refuse(r->verdict, KHUB_SIGNATURE_BAD_FIELD,
                            "bundle: \"%s\" has %zu bytes, %zu are expected", key, out->length, size);
    return 0;
}

static int get_bytes(khub__span *out, reading *r, const json_t *object, const char *key, size_t size)
{
    json_t *value;
    return get(&value, r, object, key, JSON_STRING, REQUIRED) || decode(out, r, value, key, size);
}

/* A number of 64 bits is a string of digits in proto3's JSON. */
static int get_number(int64_t *out, const reading *r, const json_t *object, const char *key, presence need)
{
    const char *text;
    uint64_t value = 0;
    *out = 0;
    if (get_text(&text, r, object, key, need)) return -1;
    if (!text) return 0;
    size_t length = strspn(text, "0123456789");
    if (length == 0 || text[length] || length > 19 || (text[0] == '0' && length > 1))
        return bad(r, key, "isn't a number from 0 to 2^63-1");
    for (size_t i = 0; i < length; i++)
        value = value * 10 + (uint64_t)(text[i] - '0');
    if (value > INT64_MAX) return bad(r, key, "isn't a number from 0 to 2^63-1");
    *out = (int64_t)value;
    return 0;
}

/* Nothing but these: what isn't known could change what the rest means. */
static int only(const reading *r, json_t *object, const char *const *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value) {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        char shown[KHUB__SHOWN_MAX];
        if (!keys[i])
            return khub__refuse(r->verdict, KHUB_SIGNATURE_BAD_FIELD, "bundle: there is no field \"%s\"",
                                khub__shown(shown, key));
    }
    return 0;
}
#define ONLY(r, object, ...) only(r, object, (const char *const[]){__VA_ARGS__, NULL})

/* What the media types say. */
static const struct format {
    const char *media_type;
    int version;
} formats[] = {
    {"application/vnd.dev.sigstore.bundle+json;version=0.1", 1},
    {"application/vnd.dev.sigstore.bundle+json;version=0.2", 2},
    {"application/vnd.dev.sigstore.bundle+json;version=0.3", 3},
    {"application/vnd.dev.sigstore.bundle.v0.3+json", 3},
};

/* The version of the format, 1 to 3. */
static int read_media_type(int *version, const reading *r, const json_t *root)
{
    const char *type;
    if (get_text(&type, r, root, "mediaType", REQUIRED)) return -1;
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
        if (strcmp(type, formats[i].media_type) != 0) continue;
        *version = formats[i].version;
        return 0;
    }
    return khub__refuse(r->verdict, KHUB_SIGNATURE_MEDIA_TYPE,
                        "bundle: \"mediaType\" is no version of a sigstore bundle "
                        "from 0.1 to 0.3");
}

static int read_certificate(reading *r, json_t *certificate)
{
    khub__bundle *b = r->out;
    if (!json_is_object(certificate)) return bad(r, "certificates", "holds something else");
    return ONLY(r, certificate, "rawBytes") ||
           get_bytes(&b->certificates[b->certificate_count++], r, certificate, "rawBytes", 0);
}

/* Only the first counts: what the others would prove comes from the trusted root. */
static int read_chain(reading *r, json_t *chain)
{
    json_t *list;
    if (ONLY(r, chain, "certificates") || get(&list, r, chain, "certificates", JSON_ARRAY, REQUIRED))
        return -1;
    size_t count = json_array_size(list);
    if (count == 0 || count > KHUB__BUNDLE_CERTIFICATES_MAX)
        return bad(r, "certificates", "is empty or holds more than 8");
    for (size_t i = 0; i < count; i++)
        if (read_certificate(r, json_array_get(list, i))) return -1;
    return 0;
}

/* Version 0.3 has one certificate, those before it had a chain. */
static int read_signer(reading *r, const json_t *material, int version)
{
    json_t *key, *chain, *certificate;
    if (get_object(&key, r, material, "publicKey", OPTIONAL) ||
        get_object(&chain, r, material, "x509CertificateChain", OPTIONAL) ||
        get_object(&certificate, r, material, "certificate", OPTIONAL))
        return -1;
    if (key && !chain && !certificate)
        return khub__refuse(r->verdict, KHUB_SIGNATURE_CONTENT,
                            "bundle: it was signed with a key without a certificate; "
                            "who signed can't be known");
    if (key || !chain == !certificate)
        return bad(r, "verificationMaterial",
                   "doesn't hold exactly one of certificate and x509CertificateChain");
    if (!chain != (version == 3))
        return bad(r, "verificationMaterial", "holds the certificate as another version does");
    return chain ? read_chain(r, chain) : read_certificate(r, certificate);
}

static int read_timestamps(reading *r, const json_t *material)
{
    khub__bundle *b = r->out;
    json_t *data, *list;
    if (get_object(&data, r, material, "timestampVerificationData", OPTIONAL)) return -1;
    if (!data) return 0;
    if (ONLY(r, data, "rfc3161Timestamps") ||
        get(&list, r, data, "rfc3161Timestamps", JSON_ARRAY, ABSENT_OR_A_LIST))
        return -1;
    size_t count = json_array_size(list);
    if (count > KHUB__TIMESTAMPS_MAX)
        return khub__refuse(r->verdict, KHUB_SIGNATURE_BAD_TIMESTAMP,
                            "bundle: it has %zu timestamps, more than 32", count);
    for (; b->timestamp_count < count; b->timestamp_count++) {
        json_t *item = json_array_get(list, b->timestamp_count);
        if (!json_is_object(item)) return bad(r, "rfc3161Timestamps", "holds something else");
        if (ONLY(r, item, "signedTimestamp") ||
            get_bytes(&b->timestamps[b->timestamp_count], r, item, "signedTimestamp", 0))
            return -1;
    }
    return 0;
}

static int read_kind(reading *r, const json_t *entry)
{
    json_t *object;
    const char *kind, *version;
    if (get_object(&object, r, entry, "kindVersion", REQUIRED) || ONLY(r, object, "kind", "version") ||
        get_text(&kind, r, object, "kind", REQUIRED) || get_text(&version, r, object, "version", REQUIRED))
        return -1;
    r->out->entry.version = !strcmp(version, "0.0.1") ? 1 : !strcmp(version, "0.0.2") ? 2 : 0;
    if (!strcmp(kind, "hashedrekord") && r->out->entry.version) return 0;
    char shown[2][KHUB__SHOWN_MAX];
    return khub__refuse(r->verdict, KHUB_SIGNATURE_ENTRY_KIND,
                        "log entry: it is a %s %s, a hashedrekord 0.0.1 or 0.0.2 is expected",
                        khub__shown(shown[0], kind), khub__shown(shown[1], version));
}

static int read_promise(reading *r, const json_t *entry)
{
    json_t *object;
    if (get_number(&r->out->entry.integrated_s, r, entry, "integratedTime", OPTIONAL)) return -1;
    if (r->out->entry.integrated_s > LAST_SECOND) return bad(r, "integratedTime", "is after the year 9999");
    if (get_object(&object, r, entry, "inclusionPromise", OPTIONAL)) return -1;
    if (!object) return 0;
    return ONLY(r, object, "signedEntryTimestamp") ||
           get_bytes(&r->out->entry.promise, r, object, "signedEntryTimestamp", 0);
}

static int read_checkpoint(reading *r, const json_t *proof)
{
    json_t *object, *text;
    if (get_object(&object, r, proof, "checkpoint", REQUIRED) || ONLY(r, object, "envelope") ||
        get(&text, r, object, "envelope", JSON_STRING, REQUIRED))
        return -1;
    size_t length = json_string_length(text);
    memcpy(r->room, json_string_value(text), length);
    r->out->entry.checkpoint = (khub__span){r->room, length};
    r->room += length;
    return 0;
}

static int read_hashes(reading *r, const json_t *proof)
{
    khub__entry *e = &r->out->entry;
    json_t *list;
    if (get(&list, r, proof, "hashes", JSON_ARRAY, REQUIRED)) return -1;
    size_t count = json_array_size(list);
    if (count > KHUB__HASHES_MAX) return bad(r, "hashes", "are more than any tree needs");
    for (; e->hash_count < count; e->hash_count++)
        if (decode(&e->hashes[e->hash_count], r, json_array_get(list, e->hash_count), "hashes", SHA256_BYTES))
            return -1;
    return 0;
}

static int read_proof(reading *r, const json_t *entry)
{
    khub__entry *e = &r->out->entry;
    json_t *proof;
    if (get_object(&proof, r, entry, "inclusionProof", REQUIRED) ||
        ONLY(r, proof, "logIndex", "rootHash", "treeSize", "hashes", "checkpoint") ||
        get_number(&e->proof_index, r, proof, "logIndex", REQUIRED) ||
        get_bytes(&e->root_hash, r, proof, "rootHash", SHA256_BYTES) ||
        get_number(&e->tree_size, r, proof, "treeSize", REQUIRED) || read_hashes(r, proof) ||
        read_checkpoint(r, proof))
        return -1;
    return e->proof_index < e->tree_size ? 0 : bad(r, "logIndex", "isn't below \"treeSize\"");
}

static int read_entry(reading *r, json_t *entry)
{
    khub__entry *e = &r->out->entry;
    json_t *id;
    if (!json_is_object(entry)) return bad(r, "tlogEntries", "holds something else");
    return ONLY(r, entry, "logIndex", "logId", "kindVersion", "integratedTime", "inclusionPromise",
                "inclusionProof", "canonicalizedBody") ||
           get_number(&e->log_index, r, entry, "logIndex", REQUIRED) ||
           get_object(&id, r, entry, "logId", REQUIRED) || ONLY(r, id, "keyId") ||
           get_bytes(&e->log_id, r, id, "keyId", SHA256_BYTES) || read_kind(r, entry) ||
           read_promise(r, entry) || read_proof(r, entry) ||
           get_bytes(&e->body, r, entry, "canonicalizedBody", 0);
}

static int read_digest(reading *r, const json_t *message)
{
    json_t *object;
    const char *algorithm;
    if (get_object(&object, r, message, "messageDigest", OPTIONAL)) return -1;
    if (!object) return 0;
    if (ONLY(r, object, "algorithm", "digest") || get_text(&algorithm, r, object, "algorithm", REQUIRED))
        return -1;
    if (!algorithm || strcmp(algorithm, "SHA2_256") != 0) return bad(r, "algorithm", "isn't SHA2_256");
    return get_bytes(&r->out->digest, r, object, "digest", SHA256_BYTES);
}

static int read_content(reading *r, const json_t *root)
{
    json_t *message, *envelope;
    if (get_object(&message, r, root, "messageSignature", OPTIONAL) ||
        get_object(&envelope, r, root, "dsseEnvelope", OPTIONAL))
        return -1;
    if (envelope && !message)
        return khub__refuse(r->verdict, KHUB_SIGNATURE_CONTENT,
                            "bundle: it holds an envelope (DSSE) with content of its own, "
                            "a signature of given bytes is expected");
    if (!message || envelope) return bad(r, "messageSignature", "isn't there alone");
    return ONLY(r, message, "messageDigest", "signature") || read_digest(r, message) ||
           get_bytes(&r->out->signature, r, message, "signature", 0);
}

static int read_material(reading *r, const json_t *root, int version)
{
    json_t *material, *entries;
    if (get_object(&material, r, root, "verificationMaterial", REQUIRED) ||
        ONLY(r, material, "publicKey", "x509CertificateChain", "certificate", "tlogEntries",
             "timestampVerificationData") ||
        read_signer(r, material, version) || get(&entries, r, material, "tlogEntries", JSON_ARRAY, REQUIRED))
        return -1;
    if (json_array_size(entries) != 1) return bad(r, "tlogEntries", "doesn't hold exactly one entry");
    return read_entry(r, json_array_get(entries, 0)) || read_timestamps(r, material);
}

/* What must be there in each version so that a time can be proven. */
static int judge_times(const reading *r, int version)
{
    const khub__entry *e = &r->out->entry;
    if (version == 1 && !e->promise.length)
        return bad(r, "inclusionPromise", "is absent, version 0.1 needs it");
    if (e->promise.length && e->version == 2)
        return khub__refuse(r->verdict, KHUB_SIGNATURE_ENTRY_KIND,
                            "log entry: it is of the new log, which promises no time, and holds a promise");
    if (e->promise.length && !e->integrated_s)
        return bad(r, "integratedTime", "is absent beside \"inclusionPromise\"");
    if (!e->promise.length && !r->out->timestamp_count)
        return khub__refuse(r->verdict, KHUB_SIGNATURE_NO_TIME,
                            "bundle: neither a log nor a timestamp authority says when it was signed");
    return 0;
}

static int read_root(reading *r, json_t *root)
{
    int version = 0;
    return ONLY(r, root, "mediaType", "verificationMaterial", "messageSignature", "dsseEnvelope") ||
           read_media_type(&version, r, root) || read_content(r, root) || read_material(r, root, version) ||
           judge_times(r, version);
}

int khub__bundle_read(khub__bundle *out, const char *text, size_t length, khub__verdict *verdict)
{
    khub_error err = {0};
    json_t *root;
    memset(out, 0, sizeof(*out));
    if (length > KHUB__BUNDLE_MAX_BYTES)
        return khub__refuse(verdict, KHUB_SIGNATURE_TOO_LARGE, "bundle: it has %zu bytes, more than %d",
                            length, KHUB__BUNDLE_MAX_BYTES);
    out->memory = khub__malloc(length + 1);
    if (!out->memory) return khub__refuse_memory(verdict);
    int rc = khub__json_parse(&root, text, length, "bundle", &err);
    if (rc == KHUB_E_NOMEM) return khub__refuse_memory(verdict);
    if (rc != KHUB_OK) return khub__refuse(verdict, KHUB_SIGNATURE_NOT_JSON, "%s", err.message);
    reading r = {out, out->memory, verdict};
    rc = read_root(&r, root);
    json_decref(root);
    return rc ? -1 : 0;
}

void khub__bundle_free(khub__bundle *bundle)
{
    khub__free(bundle->memory);
    memset(bundle, 0, sizeof(*bundle));
}
