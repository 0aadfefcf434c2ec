/* The repositories of DIR: where one lies, what its refs are, and what it holds at a commit. */
#ifndef SERVE_REPOSITORY_H
#define SERVE_REPOSITORY_H

#include "serve/address.h"
#include "serve/listing.h"
#include "serve/refs.h"

/* What was found for an address. */
typedef struct serve_found {
    serve_refs *refs;
    serve_listing *listing; /* at the address's revision; NULL for SERVE_REFS */
} serve_found;

typedef enum serve_how {
    SERVE_FOUND,
    SERVE_LATER,         /* it takes reading from disk: the caller doesn't wait, or another thread does it */
    SERVE_NO_REPOSITORY, /* there is none of that name */
    SERVE_NO_REVISION,   /* it has no such branch, tag or commit (any more) */
    SERVE_BUSY,          /* it is being changed, or the server stops */
    SERVE_BROKEN         /* err says what */
} serve_how;

/* Finds what an address of a repository means. Any thread; waits for the disk only when `may_wait`. *out is
 * the caller's (serve_found_free), empty unless SERVE_FOUND. A change in DIR is seen after 100 ms, or for a
 * repository that takes long to look through after 20 times as long as that takes. */
serve_how serve_find(serve_found *out, const serve_address *address, int may_wait, khub_error *err);
void serve_found_free(serve_found *found);

void serve_repositories_free(void);

#endif
