/* Names of files that were hashed already, by who the files are. Any thread. */
#ifndef SERVE_KNOWN_H
#define SERVE_KNOWN_H

#include "serve/names.h"

/* 1 and *out when the names of that very file are known, as LFS or not. */
int serve_known_get(serve_names *out, const serve_identity *identity, int lfs);

/* Remembers them; when there is no memory, it doesn't. */
void serve_known_put(const serve_names *names, const serve_identity *identity);

void serve_known_free(void);

#endif
