/* The refs of a repository at one moment. Made once, then only read; counted, so that many requests share
 * them. */
#ifndef SERVE_REFS_H
#define SERVE_REFS_H

#include "serve/address.h"

#include <khub/error.h>

typedef enum serve_ref_kind { SERVE_BRANCH, SERVE_TAG, SERVE_OTHER_REF } serve_ref_kind;

typedef struct serve_ref {
    char name[SERVE_REVISION_MAX + 1]; /* of SERVE_OTHER_REF the whole: "refs/pr/4" */
    char commit[41];
    serve_ref_kind kind;
} serve_ref;

typedef struct serve_refs {
    serve_ref *refs; /* by name */
    size_t count, capacity;
    int users;
} serve_refs;

int serve_refs_new(serve_refs **out, khub_error *err);
int serve_refs_add(serve_refs *refs, const char *name, const char *commit, serve_ref_kind kind,
                   khub_error *err);
/* NULL: there is none of that kind and name. */
const serve_ref *serve_refs_find(const serve_refs *refs, serve_ref_kind kind, const char *name);
void serve_refs_sort(serve_refs *refs); /* ends the adding */
serve_refs *serve_refs_share(serve_refs *refs);
void serve_refs_free(serve_refs *refs); /* the last user frees it; NULL is a no-op */

/* The commit that a revision means ("": main, or where there is none the highest version): a branch or tag,
 * "refs/heads/…", "refs/tags/…", or a commit, which may be one that nobody has. NULL: none. Lives as long as
 * `refs` and `revision`. */
const char *serve_refs_commit(const serve_refs *refs, const char *revision);

#endif
