/* What a library tells the loader: read from its file, which stays a file and is not loaded. */
#ifndef PLATFORM_DYNAMIC_H
#define PLATFORM_DYNAMIC_H

#include "platform/pool.h"

/* Strings are the pool's. */
typedef struct khub__dynamic {
    const char **needed; /* "libc10.so", in its order */
    size_t needed_count;
    const char *rpath, *runpath;    /* as they stand in it, "$ORIGIN/../lib:/opt/lib"; NULL: none */
    uint64_t bytes;                 /* of the file */
    uint64_t names_at, names_bytes; /* the part of the file that has the names of its symbols */
} khub__dynamic;

/* NULL, or what is wrong with the file ("is empty", "is cut off: …"). Any bytes may be in it. */
const char *khub__dynamic_read(khub__dynamic *out, const char *path, khub__pool *pool);

/* 1 when `piece` (at most 63 bytes) stands in the names of its symbols; 0: it doesn't, or they can't be read.
 */
int khub__dynamic_has(const khub__dynamic *dynamic, const char *path, const char *piece);

#endif
