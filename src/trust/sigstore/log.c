#include "trust/sigstore/log.h"

#include "base/base64.h"

enum { HASH_BYTES = 32, HINT_BYTES = 4, SIGNATURES_MAX = 64 };
#define DASH "\xe2\x80\x94 " /* U+2014 and a space: how a line with a signature begins */

static khub__span span_of(const khub__text *text)
{
    return (khub__span){(const unsigned char *)text->data, text->length};
}

/* The next line without its end. -1: there is none that ends. */
static int take_line(khub__span *from, khub__span *line)
{
    const unsigned char *end = from->length ? memchr(from->data, '\n', from->length) : NULL;
    if (!end) return -1;
    *line = (khub__span){from->data, (size_t)(end - from->data)};
    *from = (khub__span){end + 1, from->length - line->length - 1};
    return 0;
}

static int read_size(int64_t *out, khub__span line)
{
    uint64_t value = 0;
    if (line.length == 0 || line.length > 19 || (line.data[0] == '0' && line.length > 1)) return -1;
    for (size_t i = 0; i < line.length; i++) {
        if (line.data[i] < '0' || line.data[i] > '9') return -1;
        value = value * 10 + (uint64_t)(line.data[i] - '0');
    }
    if (value > INT64_MAX) return -1;
    *out = (int64_t)value;
    return 0;
}

/* 32 bytes are 44 characters, of which one is padding. */
static int read_hash(unsigned char out[HASH_BYTES], khub__span line)
{
    unsigned char bytes[HASH_BYTES + 1], *room = bytes;
    khub__span hash;
    if (line.length != 44 || khub__base64_read(&hash, &room, (const char *)line.data, line.length) ||
        hash.length != HASH_BYTES)
        return -1;
    memcpy(out, bytes, HASH_BYTES);
    return 0;
}

/* A line of the note, which a blank one ends. */
static int take_note_line(khub__span *from, khub__span *line)
{
    return take_line(from, line) || line->length == 0 ? -1 : 0;
}

const char *khub__checkpoint_read(khub__checkpoint *out, khub__span text)
{
    khub__span rest = text, line;
    if (!text.length || memchr(text.data, '\r', text.length)) return "it isn't a signed note";
    if (take_note_line(&rest, &line)) return "it has no origin";
    if (take_note_line(&rest, &line) || read_size(&out->tree_size, line)) return "it has no size of a tree";
    if (take_note_line(&rest, &line) || read_hash(out->root_hash, line)) return "it has no root hash";
    do {
        out->note = (khub__span){text.data, text.length - rest.length};
        if (take_line(&rest, &line)) return "it has no signatures";
    } while (line.length);
    out->signatures = rest;
    if (!rest.length || rest.data[rest.length - 1] != '\n') return "it has no signatures";
    while (rest.length)
        if (take_line(&rest, &line) || line.length == 0) return "it has a blank line too many";
    return NULL;
}

/* "— NAME BASE64" with a hint of four bytes and a signature: -1 when it isn't that. `bytes` has room for it.
 */
static int read_signature(khub__span *name, khub__span *signature, unsigned char *bytes, size_t room,
                          khub__span line)
{
    static const size_t dash = sizeof(DASH) - 1;
    if (line.length <= dash || memcmp(line.data, DASH, dash) != 0) return -1;
    *name = (khub__span){line.data + dash, line.length - dash};
    const unsigned char *space = memchr(name->data, ' ', name->length);
    if (!space || space == name->data) return -1;
    size_t length = name->length - (size_t)(space + 1 - name->data);
    name->length = (size_t)(space - name->data);
    if (length > room || khub__base64_read(signature, &bytes, (const char *)space + 1, length)) return -1;
    return signature->length > HINT_BYTES && khub__der_is_text(*name) ? 0 : -1;
}

/* Every signature with the log's hint must be the log's, and one of them in its name. Those of others
 * (witnesses) say nothing here. */
static int judge_signatures(const khub__log *log, const khub__checkpoint *checkpoint, khub__verdict *verdict)
{
    khub__span rest = checkpoint->signatures, line, name, signature;
    unsigned char bytes[1024];
    int found = 0;
    for (int count = 0; take_line(&rest, &line) == 0; count++) {
        if (count == SIGNATURES_MAX)
            return khub__refuse(verdict, KHUB_SIGNATURE_BAD_CHECKPOINT,
                                "checkpoint: it has more than %d signatures", SIGNATURES_MAX);
        if (read_signature(&name, &signature, bytes, sizeof(bytes), line))
            return khub__refuse(verdict, KHUB_SIGNATURE_BAD_CHECKPOINT,
                                "checkpoint: a line of its signatures isn't one");
        if (memcmp(signature.data, log->id.data, HINT_BYTES) != 0) continue;
        signature = (khub__span){signature.data + HINT_BYTES, signature.length - HINT_BYTES};
        if (!khub__key_signed(&log->key, khub__key_digest(&log->key), checkpoint->note, signature))
            return khub__refuse(verdict, KHUB_SIGNATURE_FORGED_CHECKPOINT,
                                "checkpoint: the signature isn't that of %s", log->address);
        found |= khub__span_is(name, log->host);
    }
    return found ? 0
                 : khub__refuse(verdict, KHUB_SIGNATURE_FORGED_CHECKPOINT,
                                "checkpoint: it has no signature of %s", log->address);
}

static int hash(unsigned char out[HASH_BYTES], unsigned char first, khub__span left, khub__span right)
{
    khub__span pieces[] = {{&first, 1}, left, right};
    unsigned char digest[KHUB__DIGEST_MAX];
    if (khub__digest(digest, KHUB__SHA256, pieces, 3)) return -1;
    memcpy(out, digest, HASH_BYTES);
    return 0;
}

static int bits_of(uint64_t value)
{
    int n = 0;
    for (; value; value >>= 1)
        n++;
    return n;
}

static int ones_of(uint64_t value)
{
    int n = 0;
    for (; value; value &= value - 1)
        n++;
    return n;
}

/* The tree's root from the leaf up (RFC 9162, 2.1.3.2): up to where the paths of the leaf and of the last
 * leaf meet, the index says on which side the other half is; above, it is always the left one. */
static int climb(unsigned char top[HASH_BYTES], const khub__entry *e, khub__verdict *verdict)
{
    uint64_t index = (uint64_t)e->proof_index, last = (uint64_t)e->tree_size - 1;
    size_t inner = (size_t)bits_of(index ^ last);
    size_t border = (size_t)ones_of(inner < 64 ? index >> inner : 0);
    if (e->hash_count != inner + border)
        return khub__refuse(verdict, KHUB_SIGNATURE_BAD_PROOF,
                            "inclusion proof: it has %zu hashes, %zu are expected", e->hash_count,
                            inner + border);
    khub__span all = {top, HASH_BYTES}, none = {NULL, 0};
    int failed = hash(top, 0, e->body, none);
    for (size_t i = 0; i < e->hash_count && !failed; i++) {
        int is_left = i < inner && !(index >> i & 1);
        failed = is_left ? hash(top, 1, all, e->hashes[i]) : hash(top, 1, e->hashes[i], all);
    }
    return failed
               ? khub__refuse(verdict, KHUB_SIGNATURE_BAD_PROOF, "inclusion proof: libcrypto refuses to hash")
               : 0;
}

int khub__log_proves(const khub__log *log, const khub__entry *entry, khub__verdict *verdict)
{
    unsigned char top[HASH_BYTES];
    khub__checkpoint checkpoint;
    if (climb(top, entry, verdict)) return -1;
    if (memcmp(top, entry->root_hash.data, HASH_BYTES) != 0)
        return khub__refuse(verdict, KHUB_SIGNATURE_BAD_PROOF,
                            "inclusion proof: it doesn't lead to its root hash");
    const char *wrong = khub__checkpoint_read(&checkpoint, entry->checkpoint);
    if (wrong) return khub__refuse(verdict, KHUB_SIGNATURE_BAD_CHECKPOINT, "checkpoint: %s", wrong);
    if (judge_signatures(log, &checkpoint, verdict)) return -1;
    if (memcmp(top, checkpoint.root_hash, HASH_BYTES) != 0)
        return khub__refuse(verdict, KHUB_SIGNATURE_BAD_CHECKPOINT,
                            "checkpoint: its root hash isn't the proof's");
    if (checkpoint.tree_size != entry->tree_size)
        return khub__refuse(verdict, KHUB_SIGNATURE_BAD_CHECKPOINT,
                            "checkpoint: its tree has %lld entries, the proof's %lld",
                            (long long)checkpoint.tree_size, (long long)entry->tree_size);
    return 0;
}

int khub__log_promised(const khub__log *log, const khub__entry *entry, khub__verdict *verdict)
{
    khub__text text = {0};
    if (!entry->promise.length) return 0;
    khub__text_add(&text, "{\"body\":\"");
    khub__base64_add(&text, entry->body, 0);
    khub__text_addf(&text, "\",\"integratedTime\":%lld,\"logID\":\"", (long long)entry->integrated_s);
    khub__text_add_hex(&text, entry->log_id.data, entry->log_id.length);
    khub__text_addf(&text, "\",\"logIndex\":%lld}", (long long)entry->log_index);
    int failed = text.failed, holds = 0;
    if (!failed)
        holds = khub__key_signed(&log->key, khub__key_digest(&log->key), span_of(&text), entry->promise);
    khub__text_free(&text);
    if (failed) return khub__refuse_memory(verdict);
    return holds ? 0
                 : khub__refuse(verdict, KHUB_SIGNATURE_FORGED_PROMISE,
                                "signed entry timestamp: it isn't %s's for this entry, time and index",
                                log->address);
}

/* The old log's entry: the certificate is base64 of PEM, which is base64 in lines of 64. 0 or -1: no memory.
 */
static int add_pem(khub__text *to, khub__span certificate)
{
    khub__text pem = {0};
    khub__text_add(&pem, "-----BEGIN CERTIFICATE-----\n");
    khub__base64_add(&pem, certificate, 64);
    khub__text_add(&pem, "-----END CERTIFICATE-----\n");
    int failed = pem.failed;
    if (!failed) khub__base64_add(to, span_of(&pem), 0);
    khub__text_free(&pem);
    return failed ? -1 : 0;
}

static int add_old(khub__text *to, const khub__bundle *bundle, khub__span certificate,
                   const unsigned char digest[32])
{
    khub__text_add(
        to, "{\"apiVersion\":\"0.0.1\",\"kind\":\"hashedrekord\",\"spec\":{\"data\":{\"hash\":{\"algorithm\":"
            "\"sha256\",\"value\":\"");
    khub__text_add_hex(to, digest, HASH_BYTES);
    khub__text_add(to, "\"}},\"signature\":{\"content\":\"");
    khub__base64_add(to, bundle->signature, 0);
    khub__text_add(to, "\",\"publicKey\":{\"content\":\"");
    int failed = add_pem(to, certificate);
    khub__text_add(to, "\"}}}}");
    return failed;
}

static int add_new(khub__text *to, const khub__bundle *bundle, khub__span certificate, const khub__key *key,
                   const unsigned char digest[32])
{
    khub__text_add(
        to, "{\"apiVersion\":\"0.0.2\",\"kind\":\"hashedrekord\",\"spec\":{\"hashedRekordV002\":{\"data\":{"
            "\"algorithm\":\"SHA2_256\",\"digest\":\"");
    khub__base64_add(to, (khub__span){digest, HASH_BYTES}, 0);
    khub__text_add(to, "\"},\"signature\":{\"content\":\"");
    khub__base64_add(to, bundle->signature, 0);
    khub__text_addf(to, "\",\"verifier\":{\"keyDetails\":\"%s\",\"x509Certificate\":{\"rawBytes\":\"",
                    key->kind == KHUB__KEY_P256 ? "PKIX_ECDSA_P256_SHA_256" : "PKIX_ECDSA_P384_SHA_384");
    khub__base64_add(to, certificate, 0);
    khub__text_add(to, "\"}}}}}}");
    return 0;
}

/* Both logs store canonical JSON (RFC 8785), so the entry of this signature has one form, which is made here:
 * what the log stored needn't be parsed, only compared. */
int khub__log_entry_is(const khub__bundle *bundle, const khub__certificate *certificate, const khub__key *key,
                       const unsigned char digest[32], khub__verdict *verdict)
{
    khub__text text = {0};
    int failed = bundle->entry.version == 1 ? add_old(&text, bundle, certificate->whole, digest)
                                            : add_new(&text, bundle, certificate->whole, key, digest);
    failed = failed || text.failed;
    int same = !failed && khub__span_is(span_of(&text), bundle->entry.body);
    khub__text_free(&text);
    if (failed) return khub__refuse_memory(verdict);
    return same ? 0
                : khub__refuse(verdict, KHUB_SIGNATURE_OTHER_ENTRY,
                               "log entry: it isn't the one of this digest, signature and certificate");
}
