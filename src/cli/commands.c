/* The table of commands. */
#include "cli.h"

const cli_command *const cli_commands[] = {
    NULL,
};
