#include "base/hash.h"

#include "base/error.h"
#include "base/memory.h"

enum { PIECE = 1 << 16 }; /* stays in the processor's caches between the reading and the hashing */

int khub__hash_stream(khub__hash *const *hashes, size_t count, khub__stream *file, khub_error *err)
{
    size_t left = file->size;
    if (left == 0) return KHUB_OK;
    char *piece = khub__malloc(left < PIECE ? left : PIECE);
    if (!piece) return khub__fail_memory(err, "hashing a file");
    int rc = KHUB_OK;
    while (rc == KHUB_OK && left > 0) {
        size_t n = left < PIECE ? left : PIECE;
        rc = khub__stream_read(file, piece, n, err);
        for (size_t i = 0; rc == KHUB_OK && i < count; i++)
            khub__hash_add(hashes[i], piece, n);
        left -= n;
    }
    khub__free(piece);
    return rc;
}
