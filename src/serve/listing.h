/* What a repository holds at one commit. Made once, then only read; counted, so that many requests share it.
 */
#ifndef SERVE_LISTING_H
#define SERVE_LISTING_H

#include "serve/names.h"

typedef struct serve_entry {
    char *path;
    uint64_t size;
    serve_names names; /* of a directory: oid alone, of its part of the listing */
    int directory;
    serve_identity identity; /* of a file on disk */
    char *where;             /* that file, below DIR */
} serve_entry;

enum { SERVE_ENTRIES_MAX = 1000000 };

typedef struct serve_listing {
    serve_entry *entries; /* files and directories, by path in byte order */
    size_t count, capacity;
    size_t files;
    char commit[41];
    int users; /* serve_listing_share and _free */
} serve_listing;

/* Adds a file. `path` and `where` are copied. KHUB_E_NOMEM; KHUB_E_UNSUPPORTED: more than a million. */
int serve_listing_add(serve_listing *listing, const serve_entry *entry, khub_error *err);

/* Sorts, adds the directories, and gives it the name of its content as its commit unless it has one. */
int serve_listing_close(serve_listing *listing, khub_error *err);

/* The entry of a path; NULL: none. */
const serve_entry *serve_listing_find(const serve_listing *listing, const char *path);

/* The next entry from `*at` on that is below `directory` ("": all), at any depth or directly; NULL: no more.
 * *at becomes the index after it. Start with 0. */
const serve_entry *serve_listing_next(const serve_listing *listing, size_t *at, const char *directory,
                                      int recursive);

int serve_listing_new(serve_listing **out, khub_error *err);
serve_listing *serve_listing_share(serve_listing *listing);
void serve_listing_free(serve_listing *listing); /* the last user frees it; NULL is a no-op */

#endif
