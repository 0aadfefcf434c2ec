/* What the head of an HTTP answer says, as far as the Hub's protocol uses it. */
#ifndef HUB_ANSWER_H
#define HUB_ANSWER_H

#include "hub/repo.h"

#include <stddef.h>

enum { KHUB__ETAG_MAX = 200, KHUB__HEADER_MAX = 8 << 10, KHUB__HEADERS_MAX = 100 << 10 };

typedef struct khub__answer {
    int status;                       /* 200; 0: no status line yet */
    uint64_t length;                  /* Content-Length; UINT64_MAX: not said */
    uint64_t linked_size;             /* X-Linked-Size; UINT64_MAX: not said */
    uint64_t range_from, range_total; /* of Content-Range; UINT64_MAX: not said */
    int64_t retry_after_s,
        ratelimit_s;               /* Retry-After, the t= of ratelimit when nothing remains; -1: not said */
    int encoded;                   /* a Content-Encoding other than identity */
    char etag[KHUB__ETAG_MAX + 1]; /* X-Linked-Etag, else ETag, without "W/" and quotes; "": none */
    int etag_is_linked;
    char commit[KHUB__COMMIT_MAX + 1];       /* X-Repo-Commit; "": none, or not a commit */
    char error_code[64], error_message[256]; /* X-Error-Code, X-Error-Message; can be shown */
    char *location, *next; /* Location; the address of Link's rel="next"; NULL: none. Owned */
    size_t bytes;          /* of all lines so far */
} khub__answer;

/* Starts an answer; frees what *answer (zeroed before its first use) held. */
void khub__answer_clear(khub__answer *answer);

/* Takes one line of the head, status line included, with or without its line end. A status line starts anew
 * (the lines of a 100 or of a proxy don't count). KHUB_E_FORMAT: a line or the whole too long; KHUB_E_NOMEM.
 */
int khub__answer_line(khub__answer *answer, const char *line, size_t length, khub_error *err);

/* The address of rel="next" in a Link header's value: where it starts, and its length; NULL: none. */
const char *khub__link_next(size_t *address_length, const char *value, size_t length);

#endif
