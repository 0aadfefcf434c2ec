/* The server: its socket, its threads, and how it ends. */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "serve/options.h"

#include <khub/error.h>

/* Serves until SIGINT or SIGTERM. The first line on stdout is the address: "http://127.0.0.1:8080". */
int serve_run(serve_options *options, khub_error *err);

#endif
