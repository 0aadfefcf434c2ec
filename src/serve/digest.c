#include "serve/digest.h"

int serve_digest(char hex[KHUB__HASH_HEX_MAX + 1], khub__hash_kind kind, const void *data, size_t bytes,
                 khub_error *err)
{
    khub__hash *hash;
    int rc = khub__hash_new(&hash, kind, bytes, err);
    if (rc != KHUB_OK) return rc;
    khub__hash_add(hash, data, bytes);
    khub__hash_end(hash, hex);
    khub__hash_free(hash);
    return KHUB_OK;
}
