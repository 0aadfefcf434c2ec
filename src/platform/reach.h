/* What opening a library would open besides, found as the loader finds it and without opening anything. */
#ifndef PLATFORM_REACH_H
#define PLATFORM_REACH_H

#include "platform/dynamic.h"
#include "platform/loader.h"

enum { KHUB__REACH_FILES = 64 };

/* One library. Strings are the pool's, or those of what it is needed by. */
typedef struct khub__reached {
    const char *name;      /* as it is needed: "libc10.so" */
    const char *path;      /* NULL: it is nowhere, or in this process already */
    const char *wrong;     /* NULL: nothing */
    const char *needed_by; /* the name of the first one that needs it; NULL of the one asked for */
    int own;   /* 1: beside the library or where it says, so that what it needs was looked for too;
                  0: the system's, which is taken for whole */
    size_t by; /* index of what needs it */
    khub__dynamic dynamic; /* if own */
} khub__reached;

/* All that a library needs, itself first, each once. */
typedef struct khub__reach {
    khub__reached *files; /* the pool's */
    size_t count;
    size_t lacking;     /* how many are nowhere, or wrong */
    uint64_t own_bytes; /* size of its own files */
    size_t own_count;
} khub__reach;

/* Follows what the library at `path` (absolute) needs. More than KHUB__REACH_FILES: the rest isn't looked at.
 */
void khub__reach_of(khub__reach *out, const char *path, const khub__loader *loader, khub__pool *pool);

#endif
