/* The command line of khub-serve. */
#ifndef SERVE_OPTIONS_H
#define SERVE_OPTIONS_H

#include <stddef.h>

typedef struct serve_options {
    const char *dir;
    const char *host;       /* an address or a name of this machine */
    const char *port;       /* "0": any */
    const char *token;      /* NULL: everyone may read */
    const char *token_file; /* holds it instead */
    const char *cert, *key; /* files; both or none */
    const char *url;        /* how clients reach this server, when it isn't by what they write in Host */
    const char **trust;     /* the organizations that are called trusted; none named: all that DIR has */
    size_t trust_count;
    unsigned grace_s;     /* that downloads get to end when the server is told to stop */
    unsigned timeout_s;   /* of silence, after which a connection is closed */
    unsigned connections; /* at once */
    unsigned per_address; /* of them from one address; 0: any number */
    int quiet;            /* no access log */
} serve_options;

/* 0, or 2 when the command line is wrong, which is said then. *out borrows from argv; *out is freed with
 * serve_options_free in either case. */
int serve_options_read(serve_options *out, int argc, char **argv);
void serve_options_free(serve_options *options);

#endif
