/* The names that content gives itself: git's blob SHA-1, and for an LFS file the SHA-256. */
#ifndef SERVE_NAMES_H
#define SERVE_NAMES_H

#include "serve/root.h"

typedef struct serve_names {
    char oid[41];    /* of the file, or of its LFS pointer */
    char sha256[65]; /* of an LFS file's content; "": it isn't one */
} serve_names;

/* 1 for a file of a folder that this Hub gives out as LFS: at least 10 MB, or a name that the Hub's own
 * .gitattributes sends there. */
int serve_is_lfs(const char *path, uint64_t size);

/* Names of a regular file of DIR that was found to be `identity`. They are kept, so that no file is read
 * twice while it is the same. Any thread. KHUB_E_NOTFOUND: it isn't that file any more (look again);
 * KHUB_E_DENIED: it may
 * not be read; KHUB_E_IO; KHUB_E_CANCELED; KHUB_E_NOMEM. */
int serve_names_of(serve_names *out, const char *path, const serve_identity *identity, int lfs,
                   khub_error *err);

/* Makes every serve_names_of end soon, with KHUB_E_CANCELED. */
void serve_names_cancel(void);

/* Bytes hashed so far. */
uint64_t serve_names_hashed(void);

#endif
