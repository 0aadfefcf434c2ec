#include "serve/digest.h"

#include "base/error.h"
#include "base/memory.h"

#include <openssl/evp.h>
#include <stdio.h>

struct serve_digest {
    EVP_MD_CTX *context;
};

int serve_digest_new(serve_digest **out, int sha256, khub_error *err)
{
    serve_digest *digest = khub__calloc(1, sizeof(*digest));
    if (digest) digest->context = EVP_MD_CTX_new();
    if (!digest || !digest->context ||
        EVP_DigestInit_ex(digest->context, sha256 ? EVP_sha256() : EVP_sha1(), NULL) != 1) {
        serve_digest_free(digest);
        *out = NULL;
        return khub__fail_memory(err, "hashing");
    }
    *out = digest;
    return KHUB_OK;
}

void serve_digest_add(serve_digest *digest, const void *data, size_t bytes)
{
    EVP_DigestUpdate(digest->context, data, bytes);
}

void serve_digest_end(serve_digest *digest, char *hex)
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    EVP_DigestFinal_ex(digest->context, raw, &length);
    for (unsigned int i = 0; i < length; i++)
        snprintf(hex + 2 * i, 3, "%02x", raw[i]);
    serve_digest_free(digest);
}

void serve_digest_free(serve_digest *digest)
{
    if (digest) EVP_MD_CTX_free(digest->context);
    khub__free(digest);
}

int serve_blob_oid(char oid[41], const void *data, size_t bytes, khub_error *err)
{
    char header[32];
    int length = snprintf(header, sizeof(header), "blob %zu", bytes);
    serve_digest *digest;
    int rc = serve_digest_new(&digest, 0, err);
    if (rc != KHUB_OK) return rc;
    serve_digest_add(digest, header, (size_t)length + 1);
    serve_digest_add(digest, data, bytes);
    serve_digest_end(digest, oid);
    return KHUB_OK;
}
