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
    serve_identity identity; /* of a file on disk; inode 0: any file of that size, named by its content */
    char *where;             /* that file, below DIR; NULL: it comes from the source */
    void *_Atomic answer;    /* serve/file.c's, ready to be sent; NULL: none yet */
} serve_entry;

/* Where files come from that aren't files on disk. */
typedef struct serve_source serve_source;
struct serve_source {
    /* The content of that oid; *data is the caller's (free). KHUB_E_NOTFOUND, KHUB_E_NOMEM. Any thread. */
    int (*read)(char **data, size_t *bytes, serve_source *source, const char *oid, khub_error *err);
    void (*close)(serve_source *source);
};

enum { SERVE_ENTRIES_MAX = 1000000 };

typedef struct serve_listing {
    serve_entry *entries; /* files and directories, by path in byte order */
    size_t count, capacity;
    size_t files;
    char commit[41];
    serve_source *source;                     /* NULL: none; closed with the listing */
    void (*forget)(const serve_entry *entry); /* frees what an entry keeps; NULL: nothing */
    int users;                                /* serve_listing_share and _free */
} serve_listing;

/* Adds a file. `path` and `where` are copied. KHUB_E_NOMEM; KHUB_E_UNSUPPORTED: more than a million. */
int serve_listing_add(serve_listing *listing, const serve_entry *entry, khub_error *err);

/* Sorts, adds the directories, and gives it the name of its content as its commit unless it has one. */
int serve_listing_close(serve_listing *listing, khub_error *err);

/* The entry of a path; NULL: none. */
serve_entry *serve_listing_find(const serve_listing *listing, const char *path);

/* The next entry from `*at` on that is below `directory` ("": all), at any depth or directly; NULL: no more.
 * *at becomes the index after it. Start with 0. */
const serve_entry *serve_listing_next(const serve_listing *listing, size_t *at, const char *directory,
                                      int recursive);

/* 1 when both list the same files, which are still the same on disk. */
int serve_listing_same(const serve_listing *a, const serve_listing *b);

int serve_listing_new(serve_listing **out, khub_error *err);
serve_listing *serve_listing_share(serve_listing *listing);
void serve_listing_free(serve_listing *listing); /* the last user frees it; NULL is a no-op */

#endif
