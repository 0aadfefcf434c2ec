/* What the commands about the builds of one repository share: khub info, khub variants. */
#ifndef CLI_BUILDS_H
#define CLI_BUILDS_H

#include "hub.h"

typedef struct cli_builds {
    cli_hub hub;
    const char *name; /* of the repository, as it was given */
    int json;
    khub_choice *choice; /* for the platform that was asked for */
} cli_builds;

/* Reads the command line (--json, the machine's and the Hub's options, the command's `own`, which may be
 * NULL, and one name) and chooses. EXIT_DONE, or another status after saying what is wrong. In each case to
 * be closed. */
int cli_builds_open(cli_builds *out, int argc, char **argv, const cli_option *own);
void cli_builds_close(cli_builds *builds);

/* Rows of the help for those options. */
#define CLI_BUILDS_HELP CLI_MACHINE_HELP CLI_HUB_HELP

#endif
