/* The files of a repository at one commit, as the Hub lists them and as the cache keeps the list. */
#ifndef HUB_TREE_H
#define HUB_TREE_H

#include "base/hash.h"

typedef struct khub__tree_file {
    const char *path; /* inside the repository, checked (khub__is_repo_path) */
    uint64_t size;
    char blob_id[41];     /* git's, of the file or of its LFS pointer; "": unknown */
    char sha256[65];      /* of an LFS file's content; "": it isn't one */
    const char *xet_hash; /* kept for the other tools; NULL: none */
} khub__tree_file;

typedef struct khub__tree {
    khub__tree_file *files; /* by path in byte order, no path twice */
    size_t count, capacity;
} khub__tree;

/* The name of the blob that holds a file: its sha256, else its blob_id; NULL: unknown. */
const char *khub__tree_etag(const khub__tree_file *file);

/* Whether this is the content that the file's name says. KHUB_E_UNTRUSTED, with both hashes: it isn't. A name
 * that is unknown says nothing. KHUB_E_UNSUPPORTED (no libcrypto), KHUB_E_NOMEM. */
int khub__tree_check(const khub__tree_file *file, const void *data, size_t bytes, khub_error *err);

/* Adds a file; the texts are copied. KHUB_E_FORMAT (not a path to make on disk, more than a million files),
 * KHUB_E_NOMEM. */
int khub__tree_add(khub__tree *tree, const khub__tree_file *file, khub_error *err);

/* Sorts by path. KHUB_E_FORMAT: a path twice, or one that is a file and a folder. Ends the adding. */
int khub__tree_close(khub__tree *tree, khub_error *err);

const khub__tree_file *khub__tree_find(const khub__tree *tree, const char *path);

void khub__tree_free(khub__tree *tree); /* frees what it holds and zeroes it */

#endif
