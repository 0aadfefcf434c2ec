#include "base/hash.h"

#include "base/crypto.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <openssl/evp.h>
#include <stdio.h>

#define CRYPTO_FUNCTIONS(X)                                                                                  \
    X(EVP_MD_CTX_new)                                                                                        \
    X(EVP_MD_CTX_free)                                                                                       \
    X(EVP_DigestInit_ex)                                                                                     \
    X(EVP_DigestUpdate)                                                                                      \
    X(EVP_DigestFinal_ex)                                                                                    \
    X(EVP_sha1)                                                                                              \
    X(EVP_sha256)                                                                                            \
    X(EVP_sha512)

#define POINTER(name) __typeof__(&name) name##_;
#define SYMBOL(name)  {#name, offsetof(struct crypto, name##_)},

struct crypto {
    CRYPTO_FUNCTIONS(POINTER)
};

static const khub__symbol symbols[] = {CRYPTO_FUNCTIONS(SYMBOL){NULL, 0}};

static struct crypto crypto;
static khub__crypto opened = {&crypto, symbols, "content can't be hashed", 0};

struct khub__hash {
    EVP_MD_CTX *context;
    int failed; /* libcrypto refused in the middle: the hash ends as "", which is nobody's name */
};

int khub__hash_kind_of(khub__hash_kind *kind, const char *hex)
{
    size_t length = strspn(hex, "0123456789abcdef");
    if (hex[length] || (length != 40 && length != 64)) return -1;
    *kind = length == 40 ? KHUB__HASH_GIT_BLOB : KHUB__HASH_SHA256;
    return 0;
}

static const EVP_MD *method_of(khub__hash_kind kind)
{
    return kind == KHUB__HASH_GIT_BLOB ? crypto.EVP_sha1_()
           : kind == KHUB__HASH_SHA256 ? crypto.EVP_sha256_()
                                       : crypto.EVP_sha512_();
}

static int start(khub__hash *hash, khub__hash_kind kind, uint64_t size, khub_error *err)
{
    static const char *const names[] = {"SHA-1, which names git's files", "SHA-256", "SHA-512"};
    hash->context = crypto.EVP_MD_CTX_new_();
    if (!hash->context) return khub__fail_memory(err, "starting a hash");
    if (!crypto.EVP_DigestInit_ex_(hash->context, method_of(kind), NULL))
        return khub__fail(err, KHUB_E_UNSUPPORTED, "libcrypto refuses to compute %s", names[kind]);
    char head[32];
    if (kind == KHUB__HASH_GIT_BLOB) {
        snprintf(head, sizeof(head), "blob %llu", (unsigned long long)size);
        khub__hash_add(hash, head, strlen(head) + 1);
    }
    return KHUB_OK;
}

int khub__hash_new(khub__hash **out, khub__hash_kind kind, uint64_t size, khub_error *err)
{
    *out = NULL;
    int rc = khub__crypto_open(&opened, err);
    if (rc != KHUB_OK) return rc;
    khub__hash *hash = khub__calloc(1, sizeof(*hash));
    if (!hash) return khub__fail_memory(err, "starting a hash");
    rc = start(hash, kind, size, err);
    if (rc == KHUB_OK)
        *out = hash;
    else
        khub__hash_free(hash);
    return rc;
}

void khub__hash_add(khub__hash *hash, const void *data, size_t bytes)
{
    if (!crypto.EVP_DigestUpdate_(hash->context, data, bytes)) hash->failed = 1;
}

size_t khub__hash_end_bytes(khub__hash *hash, unsigned char out[KHUB__HASH_MAX])
{
    unsigned length = 0;
    if (!crypto.EVP_DigestFinal_ex_(hash->context, out, &length) || hash->failed) return 0;
    return length;
}

void khub__hash_end(khub__hash *hash, char hex[KHUB__HASH_HEX_MAX + 1])
{
    unsigned char digest[KHUB__HASH_MAX];
    size_t length = khub__hash_end_bytes(hash, digest);
    khub__hex(hex, digest, length);
}

void khub__hash_free(khub__hash *hash)
{
    if (!hash) return;
    crypto.EVP_MD_CTX_free_(hash->context);
    khub__free(hash);
}
