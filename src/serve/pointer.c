#include "serve/pointer.h"

#include "serve/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int pointer_file(char text[200], const char *sha256, uint64_t size)
{
    return snprintf(text, 200, "version https://git-lfs.github.com/spec/v1\noid sha256:%.64s\nsize %llu\n",
                    sha256, (unsigned long long)size);
}

int serve_pointer_size(uint64_t size)
{
    char text[200];
    return pointer_file(text, "0000000000000000000000000000000000000000000000000000000000000000", size);
}

int serve_pointer_oid(char oid[41], const char *sha256, uint64_t size, khub_error *err)
{
    char text[200];
    int length = pointer_file(text, sha256, size);
    char hex[KHUB__HASH_HEX_MAX + 1];
    int rc = serve_digest(hex, KHUB__HASH_GIT_BLOB, text, (size_t)length, err);
    if (rc == KHUB_OK) memcpy(oid, hex, 41);
    return rc;
}

/* The rest of the line that starts with `key`; NULL: there is none. */
static const char *value_of(const char *text, const char *key)
{
    const char *at = text;
    while (at && strncmp(at, key, strlen(key)) != 0) {
        at = strchr(at, '\n');
        if (at) at++;
    }
    return at ? at + strlen(key) : NULL;
}

int serve_pointer_read(char sha256[65], uint64_t *size, const char *text, size_t length)
{
    static const char first[] = "version https://git-lfs.github.com/spec/v1\n";
    char copy[1025];
    char *end;
    if (length >= sizeof(copy) || length < sizeof(first) || memcmp(text, first, sizeof(first) - 1) != 0)
        return -1;
    memcpy(copy, text, length);
    copy[length] = 0;
    const char *oid = value_of(copy, "oid sha256:"), *count = value_of(copy, "size ");
    if (!oid || strspn(oid, "0123456789abcdef") != 64 || oid[64] != '\n') return -1;
    size_t digits = count ? strspn(count, "0123456789") : 0;
    if (!digits || digits > 18) return -1;
    *size = strtoull(count, &end, 10);
    if (*end != '\n') return -1;
    memcpy(sha256, oid, 64);
    sha256[64] = 0;
    return 0;
}
