#include "cli.h"

int cli_contain(const cli_command *command, int argc, char **argv)
{
    return command->run(argc, argv);
}
