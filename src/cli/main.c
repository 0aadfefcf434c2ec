/* khub COMMAND …: finds the command in the table, runs it, and makes sure that what it printed arrived. */
#include "cli.h"

#include <errno.h>
#include <signal.h>

static void print_commands(FILE *to)
{
    fputs("khub: compute kernels for every program\n\n    khub platform\n\ncommands:\n", to);
    for (size_t i = 0; cli_commands[i]; i++)
        fprintf(to, "    %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fputs("\nkhub COMMAND --help says more. -q: no notices, -v: each step, --version: the version.\n"
          "exit status: 0 done; 1 failed; 2 wrong usage; 3 no build fits this machine;\n"
          "    4 not trusted or not what it claims to be; 5 not in the cache and offline; 6 the network "
          "failed\n",
          to);
}

static const cli_command *find(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++)
        if (!strcmp(cli_commands[i]->name, name)) return cli_commands[i];
    return NULL;
}

static int wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return 1;
    return 0;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_commands(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_commands(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("khub %s\n", khub_version());
        return EXIT_DONE;
    }
    const cli_command *command = find(argv[1]);
    if (!command) {
        cli_print(stderr, "khub: there is no command \"%s\"; khub --help lists them\n", argv[1]);
        return EXIT_USAGE;
    }
    if (wants_help(argc - 1, argv + 1)) {
        fputs(command->help, stdout);
        return EXIT_DONE;
    }
    return command->contained ? cli_contain(command, argc - 1, argv + 1) : command->run(argc - 1, argv + 1);
}

int cli_finish(int status)
{
    errno = 0;
    if (ferror(stdout) || fflush(stdout) != 0) {
        fprintf(stderr, "khub: can't write the result: %s\n",
                errno ? strerror(errno) : "stdout is closed, or its disk is full");
        return EXIT_FAILED;
    }
    return status;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed stdout is an error to report, not a death */
    return cli_finish(run(argc, argv));
}
