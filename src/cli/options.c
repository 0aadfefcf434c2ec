/* Options, messages, exit statuses. */
#include "cli.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

static int quiet, verbose;
static void (*log_observer)(const khub_log_record *record);

int cli_verbose(void)
{
    return verbose;
}

int cli_quiet(void)
{
    return quiet;
}

static void log_line(void *user, const khub_log_record *record)
{
    (void)user;
    if (log_observer) log_observer(record);
    if (record->level == KHUB_LOG_DEBUG && !verbose) return;
    if (record->level != KHUB_LOG_WARNING && quiet) return;
    cli_print(stderr, "khub: %s%s%s%s\n", record->level == KHUB_LOG_WARNING ? "warning: " : "",
              record->object, record->object[0] ? ": " : "", record->text);
}

void cli_observe(void (*observer)(const khub_log_record *record))
{
    log_observer = observer;
}

/* The option that `argument` names, and its value after "=" if it has one. */
static const cli_option *match(const cli_option *options, size_t count, const char *argument,
                               const char **value)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(options[i].name);
        if (strncmp(argument, options[i].name, n) != 0) continue;
        *value = argument[n] == '=' ? argument + n + 1 : NULL;
        if (!argument[n] || *value) return &options[i];
    }
    return NULL;
}

static int store(const cli_option *option, const char *value, const char *command)
{
    if (option->kind == CLI_TEXT || option->kind == CLI_OPTIONAL) {
        *(const char **)option->to = value;
        return 0;
    }
    if (option->kind == CLI_LIST) {
        cli_list *list = option->to;
        if (list->count == CLI_LIST_MAX) {
            cli_usage(command, "%s is given more than %d times", option->name, CLI_LIST_MAX);
            return -1;
        }
        list->items[list->count++] = value;
        return 0;
    }
    char *end;
    long n = strtol(value, &end, 10);
    if (*end || end == value || n < 1 || n > 0x7fffffff) {
        cli_usage(command, "%s takes a number from 1 on, not \"%s\"", option->name, value);
        return -1;
    }
    *(long *)option->to = n;
    return 0;
}

/* Of what starts with "-". */
static int is_negative_number(const char *argument)
{
    return strchr("0123456789.", argument[1]) || !strcmp(argument, "-inf") || !strcmp(argument, "-nan");
}

int cli_common_option(const char *argument)
{
    if (!strcmp(argument, "-q")) return quiet = 1;
    if (!strcmp(argument, "-v")) return verbose = 1;
    return 0;
}

static void say_unknown(const char *command, const char *argument, const cli_option *options, size_t count)
{
    cli_guess guess = {.word = argument};
    for (size_t i = 0; i < count; i++)
        cli_guess_try(&guess, options[i].name);
    cli_usage(command,
              guess.best ? "there is no option \"%s\": did you mean %s?" : "there is no option \"%s\"",
              argument, guess.best);
}

/* Takes argv[*i] as an option. 1: taken, 0: it is no option, -1: said. */
static int take(int argc, char **argv, int *i, const cli_option *options, size_t count)
{
    const char *argument = argv[*i], *value = NULL;
    if (argument[0] != '-' || !argument[1]) return 0;
    if (cli_common_option(argument)) return 1;
    const cli_option *option = match(options, count, argument, &value);
    if (!option) {
        if (is_negative_number(argument)) return 0;
        say_unknown(argv[0], argument, options, count);
        return -1;
    }
    if (option->kind == CLI_FLAG) {
        if (value) {
            cli_usage(argv[0], "%s takes no value", option->name);
            return -1;
        }
        return *(int *)option->to = 1;
    }
    if (option->kind == CLI_OPTIONAL && !value) {
        *(const char **)option->to = "";
        return 1;
    }
    if (!value && *i + 1 < argc) value = argv[++*i];
    if (!value || !*value) { /* "--cache-dir $UNSET" doesn't mean the usual cache */
        cli_usage(argv[0], "%s needs a value", option->name);
        return -1;
    }
    return store(option, value, argv[0]) == 0 ? 1 : -1;
}

int cli_options(int argc, char **argv, const cli_option *options, size_t count)
{
    int kept = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--")) {
            while (++i < argc)
                argv[++kept] = argv[i];
            break;
        }
        int taken = take(argc, argv, &i, options, count);
        if (taken < 0) return -1;
        if (!taken) argv[++kept] = argv[i];
    }
    khub_set_log(log_line, NULL);
    return kept;
}

int cli_usage(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "khub %s: ", command);
    cli_vprint(stderr, format, args);
    fprintf(stderr, "\nkhub %s --help says how it is used\n", command);
    va_end(args);
    return EXIT_USAGE;
}

/* What a khub_status comes to; what isn't here is EXIT_FAILED. The one place that says it. */
static int exit_status(int code)
{
    static const struct {
        int code, status;
    } table[] = {{KHUB_OK, EXIT_DONE},
                 {KHUB_E_INVAL, EXIT_USAGE}, /* what the command line asked for can't be */
                 {KHUB_E_NOBUILD, EXIT_NOBUILD},
                 {KHUB_E_NEEDS_PYTHON, EXIT_NOBUILD},
                 {KHUB_E_UNTRUSTED, EXIT_UNTRUSTED},
                 {KHUB_E_OFFLINE, EXIT_OFFLINE},
                 {KHUB_E_NETWORK, EXIT_NETWORK}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].code == code) return table[i].status;
    return EXIT_FAILED;
}

int cli_fail(const khub_error *err)
{
    cli_print(stderr, "khub: %s\n", err->message[0] ? err->message : khub_status_name(err->code));
    return exit_status(err->code);
}

int cli_no_memory(khub_error *err)
{
    *err = (khub_error){.code = KHUB_E_NOMEM, .message = "out of memory"};
    return err->code;
}

int cli_fail_memory(void)
{
    khub_error err;
    cli_no_memory(&err);
    return cli_fail(&err);
}

void cli_note(const char *format, ...)
{
    if (quiet) return;
    va_list args;
    va_start(args, format);
    fputs("khub: ", stderr);
    cli_vprint(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

int cli_env_is_true(const char *name)
{
    static const char *const words[] = {"1", "ON", "YES", "TRUE"};
    const char *value = getenv(name);
    for (size_t i = 0; value && i < sizeof(words) / sizeof(*words); i++) {
        size_t n = 0;
        while (value[n] && toupper((unsigned char)value[n]) == words[i][n])
            n++;
        if (!value[n] && !words[i][n]) return 1;
    }
    return 0;
}

int cli_machine_given(const cli_machine *machine)
{
    return machine->file || machine->backend || machine->torch || machine->no_torch;
}

/* A known platform's name is a word; a file's has a folder or an ending. */
static int open_platform(khub_platform **out, const char *name, khub_error *err)
{
    return strpbrk(name, "./") ? khub_platform_read(out, name, err) : khub_platform_known(out, name, err);
}

int cli_platform(khub_platform **out, const cli_machine *machine, khub_error *err)
{
    *out = NULL;
    if (machine->torch && machine->no_torch) {
        *err = (khub_error){.code = KHUB_E_INVAL, .message = "--torch and --no-torch at once"};
        return err->code;
    }
    int rc = machine->file ? open_platform(out, machine->file, err) : khub_platform_detect(out, NULL, err);
    if (rc == KHUB_OK && machine->backend) rc = khub_platform_select(*out, machine->backend, err);
    if (rc == KHUB_OK && (machine->torch || machine->no_torch))
        rc = khub_platform_use_torch(*out, machine->torch, err);
    return rc;
}
