/* khub serve: a Hub for one room. It is a program of its own, so that no other command pays for its
 * libraries.
 */
#include "cli.h"

static int run(int argc, char **argv)
{
    (void)argc;
    return cli_become("khub-serve", argv);
}

const cli_command cli_serve = {
    .name = "serve",
    .summary = "a Hub for one room: serves a folder of repositories",
    .help = "khub serve DIR: a Hub for one room: serves a folder of repositories over the Hub's own API\n\n"
            "    khub serve /srv/hub --host 0.0.0.0 --port 8080\n"
            "    HF_ENDPOINT=http://room:8080 python -c 'import kernels; kernels.get_kernel(\"org/x\", "
            "version=1, backend=\"cpu\")'\n\n"
            "DIR/ORG/NAME is a kernel repository, DIR/models/ORG/NAME a model repository. In it, each folder "
            "is a branch "
            "(main, v1, …);\n"
            "docs/serve.md has the other forms. The first line on stdout is the address. Nothing is ever "
            "written.\n\n"
            "    --host NAME         what to listen on (127.0.0.1)\n"
            "    --port N            0 takes a free one (8080)\n"
            "    --token-file FILE   only who sends the token in FILE may read; --token TEXT is seen by who "
            "lists processes\n"
            "    --cert FILE --key FILE    TLS with this certificate and key (PEM)\n"
            "    --trust ORG         only these organizations are called trusted publishers; without it, all "
            "in DIR are\n"
            "    --url URL           how clients reach this server, where that isn't what they ask for (a "
            "proxy)\n"
            "    --connections N     at once (4096); --per-address N of them from one address (any number)\n"
            "    --timeout SECONDS   a silent connection is closed (60)\n"
            "    --grace SECONDS     that downloads get to end after SIGTERM or Ctrl-C (30); a second signal "
            "ends them\n"
            "    -q                  no access log on stderr\n\n"
            "exit status: 0 stopped by a signal; 1 failed; 2 wrong usage\n",
    .run = run,
};
