/* What an address of the Hub's API asks for: a pure function of its text, so that a fuzzer can have it. */
#ifndef SERVE_ADDRESS_H
#define SERVE_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

enum { SERVE_ID_MAX = 193, SERVE_NAME_MAX = 96, SERVE_REVISION_MAX = 250, SERVE_PATH_MAX = 1000 };

typedef enum serve_kind { SERVE_KERNEL, SERVE_MODEL } serve_kind;

typedef enum serve_what {
    SERVE_HOME,     /* / */
    SERVE_METRICS,  /* /metrics */
    SERVE_WHOAMI,   /* /api/whoami-v2 */
    SERVE_OVERVIEW, /* /api/organizations/ORG/overview */
    SERVE_INFO,     /* /api/KINDS/ID, and /api/KINDS/ID/revision/REV */
    SERVE_REFS,     /* /api/KINDS/ID/refs */
    SERVE_TREE,     /* /api/KINDS/ID/tree/REV[/PATH] */
    SERVE_PATHS,    /* /api/KINDS/ID/paths-info/REV */
    SERVE_RESOLVE   /* [/kernels]/ID/resolve/REV/PATH */
} serve_what;

typedef struct serve_address {
    serve_what what;
    serve_kind kind;
    char id[SERVE_ID_MAX + 1];             /* "ORG/NAME"; a model's may be "NAME"; of SERVE_OVERVIEW: "ORG" */
    char revision[SERVE_REVISION_MAX + 1]; /* "": none was given */
    char path[SERVE_PATH_MAX + 1];         /* "": the whole */
    int recursive;
    int pull_requests; /* include_prs */
    uint64_t cursor;   /* of a later page; 0: the first */
} serve_address;

/* Reads the path of an address and its query (without "?"; may be NULL), both as they were sent. NULL, or why
 * it is none; *status is then 400 (it can't be any address) or 404 (none that this Hub has). */
const char *serve_address_parse(serve_address *out, unsigned *status, const char *path, const char *query);

/* 1 for a path that may be inside a repository, at most SERVE_PATH_MAX bytes (khub__is_repo_path). */
int serve_is_path(const char *text);

/* 1 for a part of a repository's name: letters, digits, ".", "_", "-", neither "--" nor "..", not "." first.
 */
int serve_is_name(const char *text);

/* Undoes percent-encoding in place. -1: a "%" that isn't followed by two hex digits, or a NUL. */
int serve_decode(char *text);

/* Adds `text` percent-encoded as one segment of an address ("/" becomes "%2F" unless `slashes`). At most
 * 3 * strlen + 1 bytes. */
void serve_encode(char *out, const char *text, int slashes);

#endif
