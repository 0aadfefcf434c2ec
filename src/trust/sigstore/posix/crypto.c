#include "trust/sigstore/crypto.h"

#include "base/crypto.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <string.h>

#define SIGNING_FUNCTIONS(X)                                                                                 \
    X(ERR_pop_to_mark)                                                                                       \
    X(ERR_set_mark)                                                                                          \
    X(EVP_DigestFinal_ex)                                                                                    \
    X(EVP_DigestInit_ex)                                                                                     \
    X(EVP_DigestUpdate)                                                                                      \
    X(EVP_DigestVerify)                                                                                      \
    X(EVP_DigestVerifyInit)                                                                                  \
    X(EVP_MD_CTX_free)                                                                                       \
    X(EVP_MD_CTX_new)                                                                                        \
    X(EVP_PKEY_copy_parameters)                                                                              \
    X(EVP_PKEY_free)                                                                                         \
    X(EVP_PKEY_new)                                                                                          \
    X(EVP_PKEY_set1_encoded_public_key)                                                                      \
    X(EVP_PKEY_up_ref)                                                                                       \
    X(EVP_sha256)                                                                                            \
    X(EVP_sha384)                                                                                            \
    X(EVP_sha512)                                                                                            \
    X(d2i_PUBKEY)

#define POINTER(name) __typeof__(&name) name##_;
#define SYMBOL(name)  {#name, offsetof(struct signing, name##_)},

struct signing {
    SIGNING_FUNCTIONS(POINTER)
};

static const khub__symbol symbols[] = {SIGNING_FUNCTIONS(SYMBOL){NULL, 0}};

static struct signing crypto;

int khub__signing_open(khub_error *err)
{
    static khub__crypto opened = {&crypto, symbols, "signatures can't be judged", 0};
    return khub__crypto_open(&opened, err);
}

static const EVP_MD *method(khub__digest_kind kind)
{
    switch (kind) {
    case KHUB__SHA256:
        return crypto.EVP_sha256_();
    case KHUB__SHA384:
        return crypto.EVP_sha384_();
    case KHUB__SHA512:
        return crypto.EVP_sha512_();
    default:
        return NULL;
    }
}

size_t khub__digest_size(khub__digest_kind kind)
{
    static const size_t size[] = {32, 48, 64, 0};
    return size[kind];
}

int khub__digest(unsigned char out[KHUB__DIGEST_MAX], khub__digest_kind kind, const khub__span *pieces,
                 size_t count)
{
    unsigned length = 0;
    crypto.ERR_set_mark_();
    EVP_MD_CTX *context = crypto.EVP_MD_CTX_new_();
    int ok = context && crypto.EVP_DigestInit_ex_(context, method(kind), NULL) == 1;
    for (size_t i = 0; ok && i < count; i++)
        ok = crypto.EVP_DigestUpdate_(context, pieces[i].data, pieces[i].length) == 1;
    ok = ok && crypto.EVP_DigestFinal_ex_(context, out, &length) == 1 && length == khub__digest_size(kind);
    crypto.EVP_MD_CTX_free_(context);
    crypto.ERR_pop_to_mark_();
    return ok ? 0 : -1;
}

/* AlgorithmIdentifier in DER, and the length of the key's bits in bytes (0: any). */
static const struct form {
    khub__key_kind kind;
    const char *algorithm;
    size_t length, bits;
} forms[] = {
    {KHUB__KEY_P256, "\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07", 19, 65},
    {KHUB__KEY_P384, "\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22", 16, 97},
    {KHUB__KEY_P521, "\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x23", 16, 133},
    {KHUB__KEY_ED25519, "\x06\x03\x2b\x65\x70", 5, 32},
    {KHUB__KEY_RSA, "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00", 13, 0},
};

/* A modulus of 2048 to 8192 bits and an exponent, DER. */
static int is_rsa(khub__span bits)
{
    khub__span pair, n, e;
    return khub__der_strict(bits) && !khub__der_take(&bits, KHUB__DER_SEQUENCE, &pair) &&
           !khub__der_take(&pair, KHUB__DER_INTEGER, &n) && !khub__der_take(&pair, KHUB__DER_INTEGER, &e) &&
           pair.length == 0 && n.length > 256 && n.length <= 1025 && e.length <= 8;
}

static int has_form(const struct form *form, khub__span algorithm, khub__span bits)
{
    khub__span expected = {(const unsigned char *)form->algorithm, form->length};
    if (!khub__span_is(algorithm, expected)) return 0;
    if (form->kind == KHUB__KEY_RSA) return is_rsa(bits);
    return bits.length == form->bits && (form->kind == KHUB__KEY_ED25519 || bits.data[0] == 4);
}

/* A key that was read before for each of the two curves of signers, kept for good: d2i_PUBKEY takes 0.16 ms
 * in OpenSSL 3.0, a point on a curve that is there already 0.01 ms. */
static EVP_PKEY *kept[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards it */

static EVP_PKEY *kept_key(khub__key_kind kind)
{
    pthread_mutex_lock(&lock);
    EVP_PKEY *key = kind <= KHUB__KEY_P384 ? kept[kind] : NULL;
    pthread_mutex_unlock(&lock);
    return key;
}

static void keep_key(khub__key_kind kind, EVP_PKEY *key)
{
    pthread_mutex_lock(&lock);
    if (kind <= KHUB__KEY_P384 && !kept[kind] && crypto.EVP_PKEY_up_ref_(key) == 1) kept[kind] = key;
    pthread_mutex_unlock(&lock);
}

/* Another point on the curve of a key; NULL: it isn't on it. */
static EVP_PKEY *read_point(const EVP_PKEY *like, khub__span point)
{
    EVP_PKEY *key = crypto.EVP_PKEY_new_();
    if (key && crypto.EVP_PKEY_copy_parameters_(key, like) == 1 &&
        crypto.EVP_PKEY_set1_encoded_public_key_(key, point.data, point.length) == 1)
        return key;
    crypto.EVP_PKEY_free_(key);
    return NULL;
}

static EVP_PKEY *read_key(khub__key_kind kind, khub__span info, khub__span bits)
{
    const unsigned char *p = info.data;
    EVP_PKEY *like = kept_key(kind);
    if (like) return read_point(like, bits);
    EVP_PKEY *key = crypto.d2i_PUBKEY_(NULL, &p, (long)info.length);
    if (key) keep_key(kind, key);
    return key;
}

int khub__key_read(khub__key *out, khub__span info)
{
    khub__span rest = info, content, algorithm, bits;
    out->handle = NULL;
    if (khub__der_take(&rest, KHUB__DER_SEQUENCE, &content) || rest.length ||
        khub__der_take(&content, KHUB__DER_SEQUENCE, &algorithm) || khub__der_bits(&bits, &content) ||
        content.length)
        return -1;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms) && !out->handle; i++) {
        if (!has_form(&forms[i], algorithm, bits)) continue;
        out->kind = forms[i].kind;
        crypto.ERR_set_mark_();
        out->handle = read_key(forms[i].kind, info, bits);
        crypto.ERR_pop_to_mark_();
    }
    return out->handle ? 0 : -1;
}

void khub__key_free(khub__key *key)
{
    if (key->handle) crypto.EVP_PKEY_free_(key->handle);
    key->handle = NULL;
}

khub__digest_kind khub__key_digest(const khub__key *key)
{
    static const khub__digest_kind kind[] = {KHUB__SHA256, KHUB__SHA384, KHUB__SHA512, KHUB__NO_DIGEST,
                                             KHUB__SHA256};
    return kind[key->kind];
}

int khub__key_signed(const khub__key *key, khub__digest_kind digest, khub__span data, khub__span signature)
{
    if ((digest == KHUB__NO_DIGEST) != (key->kind == KHUB__KEY_ED25519)) return 0;
    crypto.ERR_set_mark_();
    EVP_MD_CTX *context = crypto.EVP_MD_CTX_new_();
    int ok = context && crypto.EVP_DigestVerifyInit_(context, NULL, method(digest), NULL, key->handle) == 1 &&
             crypto.EVP_DigestVerify_(context, signature.data, signature.length, data.data, data.length) == 1;
    crypto.EVP_MD_CTX_free_(context);
    crypto.ERR_pop_to_mark_();
    return ok;
}
