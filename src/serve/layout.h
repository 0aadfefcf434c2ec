/* The ways in which a repository lies in DIR. */
#ifndef SERVE_LAYOUT_H
#define SERVE_LAYOUT_H

#include "serve/listing.h"
#include "serve/refs.h"

/* What a look at a repository gathers. */
typedef struct serve_look {
    serve_refs *refs;
    const serve_refs *before; /* what the last look found; NULL: nothing */
    /* Takes over a listing that the look made, also when it fails. */
    int (*keep)(void *self, serve_listing *listing, khub_error *err);
    void *self;
} serve_look;

typedef struct serve_layout {
    /* 1 when the repository lies so at `where`. */
    int (*is)(const char *where);
    /* Adds its refs. KHUB_E_NOTFOUND: it went, or keeps changing. */
    int (*look)(serve_look *look, const char *where, serve_kind kind, khub_error *err);
    /* Lists a commit that no look has kept. KHUB_E_NOTFOUND: it has none of that name. NULL: looks keep all.
     */
    int (*list)(serve_listing **out, const char *where, const char *commit, khub_error *err);
    int grows; /* 1: a commit may get more files, so that its listing is only as good as the last look */
} serve_layout;

extern const serve_layout serve_layout_folders; /* each folder is a branch */
extern const serve_layout serve_layout_git;     /* a bare git repository */
extern const serve_layout serve_layout_cache;   /* a repository in a Hugging Face cache */

#endif
