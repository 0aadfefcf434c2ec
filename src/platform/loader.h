/* Where the system's loader would find a library, without opening any. */
#ifndef PLATFORM_LOADER_H
#define PLATFORM_LOADER_H

#include "base/file.h"
#include "platform/pool.h"

enum { KHUB__LOADER_DIRS = 8 };

/* The places it looks at. */
typedef struct khub__loader {
    const char *root;                    /* stands before every path; "" but in tests */
    const char *library_path;            /* LD_LIBRARY_PATH; NULL: not set */
    khub__bytes cache;                   /* /etc/ld.so.cache; empty: there is none */
    const char *dirs[KHUB__LOADER_DIRS]; /* the default directories that exist, each once */
    size_t dir_count;
} khub__loader;

/* Borrows `root` and `library_path`. Can't fail: what isn't there is not looked at. */
void khub__loader_open(khub__loader *loader, const char *root, const char *library_path);
void khub__loader_close(khub__loader *loader);

/* Puts the files called `name` ("libcuda.so.1") that the loader would come upon into `paths`, in its order,
 * each file once, at most `max`; they are the pool's. Returns how many. */
size_t khub__loader_find(const char **paths, size_t max, const khub__loader *loader, const char *name,
                         khub__pool *pool);

/* "LD_LIBRARY_PATH, /etc/ld.so.cache, /lib, /usr/lib": where khub__loader_find looks. */
const char *khub__loader_places(const khub__loader *loader, khub__pool *pool);

/* The path of `name` in the text of an ld.so.cache, the first entry for this kind of machine; NULL: none.
 * Any bytes may be given. */
const char *khub__loader_cache_find(const char *cache, size_t length, const char *name);

/* The path of a library that is in this process already, by the name of its file up to a version
 * ("libtvm_ffi.so" matches "libtvm_ffi.so.0.1.16"); NULL: none, or no memory (then the pool has failed). */
const char *khub__loaded_path(const char *name, khub__pool *pool);

/* The symbol `name` of the library at `path` when that is in this process already; NULL: it isn't, or has no
 * such symbol. Opens nothing. */
void *khub__loaded_symbol(const char *path, const char *name);

/* NULL when the file is a library that this process could open, else what it is instead; static. */
const char *khub__not_a_library(const char *path);

/* The same by the first bytes of a file: 64, or all that it has. */
const char *khub__library_judge(const unsigned char *head, long length);

#endif
