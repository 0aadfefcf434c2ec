/* khub-serve: what `khub serve` runs. */
#include "serve/server.h"

#include <signal.h>
#include <stdio.h>

/* The exit status as the command documents it. */
static int status_of(int code)
{
    return code == KHUB_OK ? 0 : code == KHUB_E_INVAL ? 2 : 1;
}

int main(int argc, char **argv)
{
    serve_options options;
    khub_error err = {0};
    signal(SIGPIPE, SIG_IGN);
    int status = serve_options_read(&options, argc, argv);
    if (status == 0) {
        status = status_of(serve_run(&options, &err));
        if (status) fprintf(stderr, "khub: serve: %s\n", err.message);
    }
    serve_options_free(&options);
    return status;
}
