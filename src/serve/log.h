/* The access log: one line a request, on stderr. */
#ifndef SERVE_LOG_H
#define SERVE_LOG_H

#include "serve/answer.h"

/* What a line tells. `path` and `agent` are a stranger's text; agent may be NULL. */
typedef struct serve_log_line {
    const struct sockaddr *client; /* NULL: unknown */
    const char *method, *path, *agent;
    unsigned status;
    uint64_t bytes;
    double ms;
    int whole; /* 0: the client went before the end */
} serve_log_line;

void serve_log(const serve_log_line *line);

#endif
