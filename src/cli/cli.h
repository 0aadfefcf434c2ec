/* What the commands share: the table's row, option parsing, messages and exit statuses. */
#ifndef CLI_H
#define CLI_H

#include <khub/khub.h>

#include <stdarg.h>
#include <stdio.h>

/* Exit statuses, as README documents them. */
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOBUILD = 3,
    EXIT_UNTRUSTED = 4,
    EXIT_OFFLINE = 5,
    EXIT_NETWORK = 6
};

/* One command, one file cmd_NAME.c. */
typedef struct cli_command {
    const char *name;
    const char *summary;               /* one line of `khub --help` */
    const char *help;                  /* `khub NAME --help`, an example first */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns an exit status */
    int contained;   /* 1: runs in a child process, since it loads kernels: a crash there is a message here */
    int needs_model; /* 1: calls functions of libkhub-model (model.h) */
} cli_command;

extern const cli_command *const cli_commands[]; /* NULL-terminated, in the order of `khub --help` */

/* The values of an option that may be given several times. */
enum { CLI_LIST_MAX = 64 };
typedef struct cli_list {
    const char *items[CLI_LIST_MAX + 1]; /* NULL-terminated */
    size_t count;
} cli_list;

/* One option of a command. */
typedef enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_OPTIONAL, CLI_NUMBER, CLI_LIST } cli_kind;
typedef struct cli_option {
    const char *name; /* "--json" or "-o" */
    cli_kind kind;
    void *to; /* int, const char *, const char * ("" when no "=VALUE" is given), long (1 to 2^31-1) or
                 cli_list */
} cli_option;

/* Takes the options out of argv ("--x VALUE" and "--x=VALUE"; "--" ends them); what remains stays in
 * argv[1…], and its number is returned. -q and -v are understood everywhere. -1: wrong usage, already said.
 */
int cli_options(int argc, char **argv, const cli_option *options, size_t count);

/* -q and -v, which may stand before the command too. 1: `argument` is one of them, and is taken. */
int cli_common_option(const char *argument);

/* Which of some words was meant by one that is none of them: {.word = …}, then each is tried; `best` is the
 * nearest, NULL when none is near. What stands behind "=" doesn't count. */
typedef struct cli_guess {
    const char *word, *best;
    size_t distance;
} cli_guess;
void cli_guess_try(cli_guess *guess, const char *candidate);

/* Says what is wrong with the command line and where help is; returns EXIT_USAGE. */
int cli_usage(const char *command, const char *format, ...) KHUB_PRINTF(2, 3);

/* Says the error on stderr and returns the exit status that belongs to its code. */
int cli_fail(const khub_error *err);
int cli_fail_memory(void);
/* Makes *err KHUB_E_NOMEM, which is returned. */
int cli_no_memory(khub_error *err);

/* A line on stderr, unless -q. */
void cli_note(const char *format, ...) KHUB_PRINTF(1, 2);

/* 1 when -v, when -q was given. */
int cli_verbose(void);
int cli_quiet(void);

/* The machine that a build is chosen for: --platform, --backend, --torch, --no-torch. */
typedef struct cli_machine {
    const char *file, *backend, *torch; /* NULL: this machine, its own */
    int no_torch, refresh;              /* refresh: drivers are asked anew */
} cli_machine;

/* Rows for a command's table of options, and their lines for its help. */
#define CLI_MACHINE_OPTIONS(machine)                                                                         \
    {"--platform", CLI_TEXT, &(machine).file}, {"--backend", CLI_TEXT, &(machine).backend},                  \
        {"--device", CLI_TEXT, &(machine).backend}, {"--torch", CLI_TEXT, &(machine).torch},                 \
    {                                                                                                        \
        "--no-torch", CLI_FLAG, &(machine).no_torch                                                          \
    }
#define CLI_MACHINE_HELP                                                                                     \
    "    --platform WHICH  for a well-known machine, such as h100 (khub matrix lists them), or the one "     \
    "that "                                                                                                  \
    "a\n"                                                                                                    \
    "                      file describes: ./my.json (khub platform --json prints such a file)\n"            \
    "    --backend NAME    as if the machine had that backend only: cpu, or the one it has\n"                \
    "    --device NAME:N   as if it had that device only: cuda:1 is the second one\n" CLI_TORCH_HELP
#define CLI_TORCH_HELP                                                                                       \
    "    --torch DIR       builds of Torch may be called through the libtorch in DIR, and no other "         \
    "(KHUB_TORCH_DIR)\n"                                                                                     \
    "    --no-torch        no build of Torch fits\n"

/* Whether any of them is given. */
int cli_machine_given(const cli_machine *machine);

/* That platform. */
int cli_platform(khub_platform **out, const cli_machine *machine, khub_error *err);

/* Text for people that may hold a stranger's: what would steer a terminal, and what isn't UTF-8, becomes "?".
 * Line ends and tabs stay, but not in a name. */
void cli_text(FILE *to, const char *text, size_t length);
void cli_name(FILE *to, const char *name);
/* As fprintf and vfprintf, through cli_text. */
void cli_print(FILE *to, const char *format, ...) KHUB_PRINTF(2, 3);
void cli_vprint(FILE *to, const char *format, va_list args) KHUB_PRINTF(2, 0);

/* As cli_print, for one line of a table or a part of it: of line ends only one at the end stays. */
void cli_line(FILE *to, const char *format, ...) KHUB_PRINTF(2, 3);

/* Turns the names that libkhub's messages have for its options ("khub_hub_options.trust") into those of the
 * command line ("--trust"). cli_print does it. */
void cli_own_words(char *text);

/* 1 for "1", "ON", "YES", "TRUE" in any case: how the Hugging Face tools read a variable. */
int cli_env_is_true(const char *name);

/* Writes `length` bytes of text as a JSON string with its quotes; a terminal isn't steered by it either. */
void cli_json_string(FILE *to, const char *text, size_t length);
/* The same of a text that ends with NUL; null for NULL. */
void cli_json_text(FILE *to, const char *text);

/* With so many significant digits; null for what JSON has no number for. */
void cli_json_number(FILE *to, double value, int digits);

/* Called with every log record, before it is judged for printing. */
void cli_observe(void (*observer)(const khub_log_record *record));

/* What was printed leaves the buffer; cli_finish tells if it doesn't. */
void cli_flush(void);

/* 1: stdout is a pipe that nobody reads any more. */
int cli_reader_left(void);

/* Makes sure that what was printed arrived: `status`, or EXIT_FAILED after saying why it didn't, of which a
 * reader that has left needs no words. */
int cli_finish(int status);

/* Ends the process: what libraries would do at its end takes time (libtorch 0.2 s), and may crash. Under a
 * sanitizer, which has its say at the end of main, it returns. */
void cli_leave(int status);

/* Before all else in main: standard streams and signals as the command needs them. */
void cli_prepare(void);

/* Before libraries with threads of OpenMP's (libtorch, kernels) are opened by a command that computes with
 * khub's own threads in between: theirs sleep when they have nothing to do. What the caller set stays. */
void cli_share_processors(void);

/* 1 when what is written to `file` is shown to a person. */
int cli_is_terminal(FILE *file);

/* Of a clock that never goes back. */
int64_t cli_now_ms(void);

/* Ctrl-C calls `handler`, within a signal handler; it returns 1 when it takes care of it, else the process
 * ends. A second one ends it in any case. NULL: as it was before. Where the caller ignores Ctrl-C, so does
 * this. */
void cli_on_interrupt(int (*handler)(void));

/* `path` from the root on, malloc'ed; NULL: no memory, or the directory that this runs in is gone. */
char *cli_absolute(const char *path);

/* Waits until no other khub is between reading and writing the file at `path`; until this process ends none
 * is. A file system without locks, or a directory that isn't there yet, has nobody waiting. */
void cli_one_at_a_time(const char *path);

/* NULL when `path` is a directory (links are followed), else what is wrong with it; static, until the next
 * call. */
const char *cli_not_a_directory(const char *path);

/* Becomes a program of libexec/khub. Returns only when it can't, which is said: EXIT_FAILED. */
int cli_become(const char *name, char **argv);

/* Runs a contained command in a child and waits for it (contain.c). */
int cli_contain(const cli_command *command, int argc, char **argv);

/* Between these two kernels may run: stdout is the command's, so what they print there goes to stderr. Nest.
 */
void cli_kernels_begin(void);
void cli_kernels_end(void);

/* For a contained command that calls a kernel itself: what is said if that ends the process. ("call",
 * "khub/norm:rms_norm") before the call, (NULL, NULL) after it. libkhub's own loads and calls are known. */
void cli_at_work(const char *stage, const char *object);

#endif
