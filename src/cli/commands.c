/* The table of commands. */
#include "cli.h"

extern const cli_command cli_variants;

const cli_command *const cli_commands[] = {
    &cli_variants,
    NULL,
};
