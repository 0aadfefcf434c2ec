/* khub COMMAND …: finds the command in the table, runs it, and makes sure that what it printed arrived. */
#include "cli.h"
#include "model.h"

#include <errno.h>

static void print_commands(FILE *to)
{
    fputs("khub: compute kernels for every program\n\n    khub platform\n\ncommands:\n", to);
    for (size_t i = 0; cli_commands[i]; i++)
        fprintf(to, "    %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fputs("\nkhub COMMAND --help says more. --version: the version.\n"
          "-q: no notices, -v: each step; before the command or behind it.\n"
          "Results go to stdout, words about them to stderr: notices, and why something failed. With --json "
          "what is\n"
          "on stdout is JSON; stderr has words all the same, and the exit status tells failures apart.\n"
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

/* Behind the command. */
static int wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return 1;
    return 0;
}

static int is_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

/* Says what is wrong with the word where a command should stand. */
static int unknown(const char *word)
{
    cli_guess guess = {.word = word};
    for (size_t i = 0; cli_commands[i]; i++)
        cli_guess_try(&guess, cli_commands[i]->name);
    if (guess.best)
        cli_print(stderr, "khub: there is no command \"%s\": did you mean %s? khub --help lists them\n", word,
                  guess.best);
    else
        cli_print(stderr,
                  word[0] == '-'
                      ? "khub: there is no option \"%s\" before the command; khub --help says more\n"
                      : "khub: there is no command \"%s\"; khub --help lists them\n",
                  word);
    return EXIT_USAGE;
}

/* Of the command `name`; of khub itself when it is NULL, or an option. */
static int print_help(const char *name)
{
    const cli_command *command = name ? find(name) : NULL;
    if (name && !command && name[0] != '-') return unknown(name);
    if (command)
        fputs(command->help, stdout);
    else
        print_commands(stdout);
    return EXIT_DONE;
}

/* argv[0] is the command; `all` is what the program was started with. */
static int run_command(int argc, char **argv, char **all)
{
    const cli_command *command = find(argv[0]);
    if (!command) return unknown(argv[0]);
    if (wants_help(argc, argv)) {
        fputs(command->help, stdout);
        return EXIT_DONE;
    }
    if (command->needs_model && !cli_model.khub_model_open) return cli_become("khub-model", all);
    return command->contained ? cli_contain(command, argc, argv) : command->run(argc, argv);
}

static int run(int argc, char **argv)
{
    int at = 1;
    while (at < argc && cli_common_option(argv[at]))
        at++;
    if (at >= argc) {
        print_commands(stderr);
        return EXIT_USAGE;
    }
    if (is_help(argv[at])) return print_help(argv[at + 1]);
    if (!strcmp(argv[at], "--version")) {
        printf("khub %s\n", khub_version());
        return EXIT_DONE;
    }
    return run_command(argc - at, argv + at, argv);
}

static int flush_error; /* errno of the first flush that failed */

void cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 && !flush_error) flush_error = errno;
}

int cli_finish(int status)
{
    cli_flush();
    if (ferror(stdout) && cli_reader_left()) return EXIT_FAILED; /* it has what it wanted, as head does */
    if (ferror(stdout)) {
        fprintf(stderr, "khub: can't write the result: %s\n",
                flush_error ? strerror(flush_error) : "stdout is closed, or its disk is full");
        return EXIT_FAILED;
    }
    return status;
}

int main(int argc, char **argv)
{
    cli_prepare();
    int status = cli_finish(run(argc, argv));
    cli_leave(status);
    return status;
}
