/* Hashes, by libcrypto. */
#ifndef SERVE_DIGEST_H
#define SERVE_DIGEST_H

#include <khub/error.h>

typedef struct serve_digest serve_digest;

int serve_digest_new(serve_digest **out, int sha256, khub_error *err); /* else SHA-1 */
void serve_digest_add(serve_digest *digest, const void *data, size_t bytes);
/* Hex digits of the result (64 or 40) and a NUL; frees it. */
void serve_digest_end(serve_digest *digest, char *hex);
void serve_digest_free(serve_digest *digest); /* NULL is a no-op */

/* SHA-1 of git's "blob SIZE\0" and the content. */
int serve_blob_oid(char oid[41], const void *data, size_t bytes, khub_error *err);

#endif
