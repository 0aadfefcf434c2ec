/* Options, messages, exit statuses. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>

static int quiet, verbose;
static void (*log_observer)(const khub_log_record *record);

int cli_verbose(void)
{
    return verbose;
}

static void log_line(void *user, const khub_log_record *record)
{
    (void)user;
    if (log_observer) log_observer(record);
    if (record->level == KHUB_LOG_DEBUG && !verbose) return;
    if (record->level != KHUB_LOG_WARNING && quiet) return;
    fprintf(stderr, "khub: %s%s%s%s\n", record->level == KHUB_LOG_WARNING ? "warning: " : "", record->object,
            record->object[0] ? ": " : "", record->text);
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
    if (option->kind == CLI_OPTIONAL && !value[0]) {
        cli_usage(command, "%s= needs a value after \"=\"", option->name);
        return -1;
    }
    if (option->kind == CLI_TEXT || option->kind == CLI_OPTIONAL) {
        *(const char **)option->to = value;
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

/* Takes argv[*i] as an option. 1: taken, 0: it is no option, -1: said. */
static int take(int argc, char **argv, int *i, const cli_option *options, size_t count)
{
    const char *argument = argv[*i], *value = NULL;
    if (argument[0] != '-' || !argument[1]) return 0;
    if (!strcmp(argument, "-q")) return quiet = 1;
    if (!strcmp(argument, "-v")) return verbose = 1;
    const cli_option *option = match(options, count, argument, &value);
    if (!option) {
        if (is_negative_number(argument)) return 0;
        cli_usage(argv[0], "there is no option \"%s\"", argument);
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
    if (!value) {
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
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nkhub %s --help says how it is used\n", command);
    va_end(args);
    return EXIT_USAGE;
}

int cli_fail(const khub_error *err)
{
    static const struct {
        int code, status;
    } table[] = {{KHUB_E_NOBUILD, EXIT_NOBUILD},
                 {KHUB_E_NEEDS_PYTHON, EXIT_NOBUILD},
                 {KHUB_E_UNTRUSTED, EXIT_UNTRUSTED},
                 {KHUB_E_OFFLINE, EXIT_OFFLINE},
                 {KHUB_E_NETWORK, EXIT_NETWORK}};
    fprintf(stderr, "khub: %s\n", err->message[0] ? err->message : khub_status_name(err->code));
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].code == err->code) return table[i].status;
    return EXIT_FAILED;
}

void cli_note(const char *format, ...)
{
    if (quiet) return;
    va_list args;
    va_start(args, format);
    fputs("khub: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

int cli_platform(khub_platform **out, const char *file, const char *backend, khub_error *err)
{
    int rc = file ? khub_platform_read(out, file, err) : khub_platform_detect(out, NULL, err);
    if (rc == KHUB_OK && backend) rc = khub_platform_select(*out, backend, err);
    return rc;
}

/* Length of the UTF-8 sequence at `text` (1 to 4 bytes), 0 when it is none: JSON must be UTF-8, file names
 * needn't. */
static size_t sequence(const unsigned char *text, size_t left)
{
    static const struct {
        unsigned char first, last, low, high; /* bytes that it starts with; limits of the second byte */
        size_t length;
    } forms[] = {{0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                 {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                 {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        if (*text < forms[i].first || *text > forms[i].last) continue;
        if (forms[i].length > left) return 0;
        if (forms[i].length > 1 && (text[1] < forms[i].low || text[1] > forms[i].high)) return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((text[k] & 0xC0) != 0x80) return 0;
        return forms[i].length;
    }
    return 0;
}

void cli_json_string(FILE *to, const char *text, size_t length)
{
    static const char short_forms[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    fputc('"', to);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        size_t n = sequence((const unsigned char *)text + i, length - i);
        const char *form = c ? strchr(short_forms, c) : NULL;
        while (form && (form - short_forms) % 2)
            form = strchr(form + 1, c); /* only the first of each pair */
        if (form)
            fputc('\\', to), fputc(form[1], to);
        else if (c < 0x20)
            fprintf(to, "\\u%04x", c);
        else if (n)
            fwrite(text + i, 1, n, to), i += n - 1;
        else
            fputs("\\ufffd", to);
    }
    fputc('"', to);
}
