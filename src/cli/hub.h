/* What the commands that reach the Hub share: its options, the progress bar, Ctrl-C. */
#ifndef CLI_HUB_H
#define CLI_HUB_H

#include "cli.h"

typedef struct cli_hub {
    khub_hub_options options;
    cli_list trust;
    const char *level, *trusted_root; /* --trust-level, --trusted-root; NULL: as the user's policy says */
} cli_hub;

/* Before the command line is read. */
void cli_hub_init(cli_hub *hub);

/* Rows for a command's table of options, and their lines for its help. */
#define CLI_HUB_OPTIONS(hub)                                                                                 \
    {"--cache-dir", CLI_TEXT, &(hub).options.cache_dir}, {"--offline", CLI_FLAG, &(hub).options.offline},    \
        {"--refresh", CLI_FLAG, &(hub).options.refresh}, {"--no-retry", CLI_FLAG, &(hub).options.no_retry},  \
        {"--trust-level", CLI_TEXT, &(hub).level}, {"--trusted-root", CLI_TEXT, &(hub).trusted_root},        \
    {                                                                                                        \
        "--trust", CLI_LIST, &(hub).trust                                                                    \
    }
#define CLI_HUB_HELP                                                                                         \
    "    --trust WHOM      loads kernels of ORG or ORG/NAME though the Hub doesn't call it trusted; again "  \
    "for more\n"                                                                                             \
    "    --trust-level L   what a kernel must have: publisher, verified (a digest or a lock), signed\n"      \
    "    --trusted-root F  whom signatures are judged by, a trusted_root.json of sigstore's\n"               \
    "    --refresh         asks the Hub where a version stands, however fresh the cache's word is\n"         \
    "    --no-retry        gives up at once when the Hub can't be reached (or KHUB_RETRIES=0)\n"             \
    "    --offline         no network: what the cache has (or HF_HUB_OFFLINE=1)\n"                           \
    "    --cache-dir DIR   instead of the cache that all Hugging Face tools share\n"

/* Around what may fetch and load: a bar on a terminal, Ctrl-C ends the fetch rather than the process, and
 * what kernels print goes to stderr (cli_kernels_begin). `end` takes the bar away; after a Ctrl-C it ends the
 * process as Ctrl-C does, now that the cache is in order. A begin that fails (--trust-level, the user's
 * policy) has no end. */
int cli_hub_begin(cli_hub *hub, khub_error *err);
void cli_hub_end(void);

/* khub_get, khub_download and khub_choose_in, between begin and end. `get`, `download`: .hub is set here. */
int cli_get(khub_kernel **out, const char *name, khub_get_options *get, cli_hub *hub, khub_error *err);
int cli_download(khub_snapshot **out, const char *name, khub_download_options *download, cli_hub *hub,
                 khub_error *err);
int cli_choose(khub_choice **out, const char *name, const khub_platform *platform, cli_hub *hub,
               khub_error *err);

#endif
