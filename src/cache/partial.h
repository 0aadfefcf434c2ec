/* A blob's file while it is brought. A small one has no name yet where the file system can do that, so that
 * nothing is ever left of it. Else it is blobs/ETAG.khub-RANDOM.incomplete: the name is new each time, so
 * that nobody else writes to the file even where locks don't work; the lock's file notes it, so that the next
 * holder finds what a killed process left. One source per operating system. */
#ifndef CACHE_PARTIAL_H
#define CACHE_PARTIAL_H

#include "cache/disk.h"
#include "cache/lock.h"

typedef struct khub__partial {
    khub__spot blobs;               /* the directory, and the blob's final name in there */
    int file;                       /* -1: none */
    char name[KHUB__TEMPORARY_MAX]; /* "": it has none */
} khub__partial;

/* 1: blobs/ETAG is there, a file inside the cache that can be read, with `size` bytes (UINT64_MAX: any);
 * *size becomes its own. */
int khub__partial_is_whole(const khub__partial *partial, const khub__store *store, uint64_t *size);

/* Free bytes for such as us where the blobs are; UINT64_MAX: unknown. */
uint64_t khub__partial_free_bytes(const khub__partial *partial);

/* 0: the file system there has room for no more files, whatever bytes are free. */
int khub__partial_takes_files(const khub__partial *partial);

/* Takes over what the last holder of the lock left, if it is gone. Its bytes; 0: nothing, and no file. At
 * most `size` of them, else it is thrown away. */
uint64_t khub__partial_adopt(khub__partial *partial, khub__lock *lock, uint64_t size);

/* A new file; `small`: what is left of it isn't worth anything. KHUB_OK, or -1 with errno. */
int khub__partial_create(khub__partial *partial, khub__lock *lock, int small);

/* Gives the file its final name. KHUB_OK, or -1 with errno. */
int khub__partial_commit(khub__partial *partial);

/* Closes the file; `keep`: leaves it for the next holder. */
void khub__partial_drop(khub__partial *partial, int keep);

/* The next bytes from `at` on of the file, at most `max`; -1 with errno. */
int64_t khub__partial_read(const khub__partial *partial, void *data, size_t max, uint64_t at);

#endif
