/* Answers of this Hub as libmicrohttpd's responses. */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include <khub/error.h>

#include <jansson.h>
#include <microhttpd.h>

typedef struct serve_answer {
    unsigned status;
    struct MHD_Response *response; /* NULL: no memory */
    uint64_t bytes;                /* of its body */
    int shared;                    /* 1: the response is what was found's, and not destroyed */
} serve_answer;

/* Takes over `body`; NULL is no memory. With status 200 it has an ETag, which names its text. */
serve_answer serve_answer_json(unsigned status, json_t *body);

/* Makes "304 Not Modified" of an answer whose ETag the header If-None-Match (may be NULL) has. */
void serve_answer_unless(serve_answer *answer, const char *if_none_match);

/* An error as the Hub's clients read it: {"error": MESSAGE}, X-Error-Code (NULL: none) and X-Error-Message.
 */
serve_answer serve_answer_error(unsigned status, const char *code, const char *format, ...) KHUB_PRINTF(3, 4);

/* Plain text. */
serve_answer serve_answer_text(const char *type, const char *text);

void serve_answer_header(serve_answer *answer, const char *name, const char *value);

#endif
