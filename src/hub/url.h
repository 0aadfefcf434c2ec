/* Addresses, read strictly: what two readers could understand differently is refused. */
#ifndef HUB_URL_H
#define HUB_URL_H

#include "base/text.h"

#include <khub/error.h>

#include <stddef.h>

enum { KHUB__URL_MAX = 8000 };

/* The parts of an absolute http or https address; they point into it. */
typedef struct khub__url {
    int https;
    const char *host; /* with the brackets of an IPv6 address */
    size_t host_length;
    unsigned port;    /* that of the scheme when none is written */
    const char *path; /* from the "/" on, query included; "" when there is none */
} khub__url;

/* 0, or -1: it isn't one (another scheme, a user name in it, characters that don't belong there, too long).
 */
int khub__url_parse(khub__url *out, const char *text);

/* Writes the scheme in lower case. */
void khub__url_tidy(char *text);

/* 1: same scheme, host and port. */
int khub__url_same_origin(const khub__url *a, const khub__url *b);

/* Where a Location or a Link found at `base` leads: an address of its own, "//host/…", "/path", "path" or
 * "?query". Characters that an address can't hold are percent-encoded. *out is the caller's. KHUB_E_NETWORK:
 * a scheme other than http and https, or from https to http, or nothing that is an address; KHUB_E_NOMEM. */
int khub__url_resolve(char **out, const char *base, const char *location, khub_error *err);

/* The same, from https to http too: for an address of which only the path is used. */
int khub__url_resolve_any(char **out, const char *base, const char *location, khub_error *err);

/* Adds `part` percent-encoded, as one segment, or segment by segment ("/" stays). */
void khub__url_add_segment(khub__text *text, const char *part);
void khub__url_add_path(khub__text *text, const char *path);

/* The address without its query, for messages: at most 200 bytes of it. */
const char *khub__url_shown(char out[208], const char *url);

/* Takes the user and the password out of the address (a proxy's) that libcurl quotes in `words`. */
void khub__url_hide_user(char *words);

#endif
