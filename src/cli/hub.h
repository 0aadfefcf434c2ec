/* What the commands that reach the Hub share: its options, the progress bar, Ctrl-C. */
#ifndef CLI_HUB_H
#define CLI_HUB_H

#include "cli.h"

typedef struct cli_hub {
    khub_hub_options options;
    cli_list trust;
} cli_hub;

/* Before the command line is read. */
void cli_hub_init(cli_hub *hub);

/* Rows for a command's table of options, and their lines for its help. */
#define CLI_HUB_OPTIONS(hub)                                                                                 \
    {"--cache-dir", CLI_TEXT, &(hub).options.cache_dir}, {"--offline", CLI_FLAG, &(hub).options.offline},    \
        {"--refresh", CLI_FLAG, &(hub).options.refresh}, {"--no-retry", CLI_FLAG, &(hub).options.no_retry},  \
    {                                                                                                        \
        "--trust", CLI_LIST, &(hub).trust                                                                    \
    }
#define CLI_HUB_HELP                                                                                         \
    "    --trust WHOM      loads kernels of ORG or ORG/NAME though the Hub doesn't call it trusted; again "  \
    "for more\n"                                                                                             \
    "    --refresh         asks the Hub where a version stands, however fresh the cache's word is\n"         \
    "    --no-retry        gives up at once when the Hub can't be reached (or KHUB_RETRIES=0)\n"             \
    "    --offline         no network: what the cache has (or HF_HUB_OFFLINE=1)\n"                           \
    "    --cache-dir DIR   instead of the cache that all Hugging Face tools share\n"

/* Around what may fetch: a bar on a terminal, and Ctrl-C ends the fetch rather than the process. `end` takes
 * the bar away; after a Ctrl-C it ends the process as Ctrl-C does, now that the cache is in order. */
void cli_hub_begin(cli_hub *hub);
void cli_hub_end(void);

/* khub_get, khub_download and khub_choose_in, between begin and end. `get`, `download`: .hub is set here. */
int cli_get(khub_kernel **out, const char *name, khub_get_options *get, cli_hub *hub, khub_error *err);
int cli_download(khub_snapshot **out, const char *name, khub_download_options *download, cli_hub *hub,
                 khub_error *err);
int cli_choose(khub_choice **out, const char *name, const khub_platform *platform, cli_hub *hub,
               khub_error *err);

#endif
