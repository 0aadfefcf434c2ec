/* khub check: does a kernel load everywhere it should, and is it what is said about it? */
#include "hub.h"

#include <stdlib.h>

static void print_finding_json(const khub_check_finding *f)
{
    fputs("{\"file\": ", stdout);
    cli_json_text(stdout, f->file);
    printf(", \"about\": \"%s\", \"level\": \"%s\", \"value\": ", f->about, khub_check_level_name(f->level));
    cli_json_text(stdout, f->value);
    fputs(", \"words\": ", stdout);
    cli_json_text(stdout, f->words);
    fputs(", \"items\": [", stdout);
    for (size_t i = 0; i < f->item_count; i++) {
        if (i) fputs(", ", stdout);
        cli_json_text(stdout, f->items[i]);
    }
    fputs("]}", stdout);
}

static void print_report_json(const char *name, const khub_check_report *report)
{
    const khub_check_finding *f;
    fputs("{\"name\": ", stdout);
    cli_json_text(stdout, name);
    fputs(", \"findings\": [", stdout);
    for (size_t i = 0; (f = khub_check_report_at(report, i)); i++) {
        if (i) fputs(",\n  ", stdout);
        print_finding_json(f);
    }
    fputs("]}", stdout);
}

/* The findings about one file, the gravest first. Returns where the next file's start. */
static size_t print_file(const khub_check_report *report, size_t from)
{
    const khub_check_finding *first = khub_check_report_at(report, from), *f;
    size_t end = from;
    while ((f = khub_check_report_at(report, end)) && !strcmp(f->file, first->file))
        end++;
    cli_name(stdout, first->file);
    fputc('\n', stdout);
    for (int level = KHUB_CHECK_LEVEL_ERROR; level >= KHUB_CHECK_LEVEL_NOTE; level--)
        for (size_t i = from; i < end; i++) {
            f = khub_check_report_at(report, i);
            if ((int)f->level == level)
                cli_line(stdout, "    %-8s %-12s %s\n", khub_check_level_name(f->level), f->about, f->words);
        }
    return end;
}

static size_t count(khub_check_report *const *reports, size_t n, khub_check_level level)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += khub_check_report_count(reports[i], level);
    return sum;
}

static void print_json(char **names, khub_check_report *const *reports, size_t n)
{
    fputs("{\"checks\": [", stdout);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",\n " : "", stdout);
        print_report_json(names[i], reports[i]);
    }
    printf("],\n \"errors\": %zu, \"warnings\": %zu}\n", count(reports, n, KHUB_CHECK_LEVEL_ERROR),
           count(reports, n, KHUB_CHECK_LEVEL_WARNING));
}

static void print_table(khub_check_report *const *reports, size_t n)
{
    size_t errors = count(reports, n, KHUB_CHECK_LEVEL_ERROR),
           warnings = count(reports, n, KHUB_CHECK_LEVEL_WARNING);
    for (size_t i = 0; i < n; i++)
        for (size_t at = 0; khub_check_report_at(reports[i], at);)
            at = print_file(reports[i], at);
    printf("%zu error%s, %zu warning%s\n", errors, errors == 1 ? "" : "s", warnings,
           warnings == 1 ? "" : "s");
}

static int check_all(khub_check_report **reports, char **names, size_t n, khub_check_options *options,
                     cli_hub *hub)
{
    for (size_t i = 0; i < n; i++) {
        khub_error err = {0};
        if (cli_hub_begin(hub, &err) != KHUB_OK) return cli_fail(&err);
        options->hub = &hub->options;
        int rc = khub_check_kernel(&reports[i], names[i], options, &err);
        cli_hub_end();
        if (rc != KHUB_OK) return cli_fail(&err);
    }
    return EXIT_DONE;
}

/* All is checked before anything is printed, so that --json prints the whole or nothing. */
static int check(char **names, size_t n, khub_check_options *options, cli_hub *hub, int json)
{
    khub_check_report **reports = calloc(n, sizeof(khub_check_report *));
    if (!reports) return cli_fail_memory();
    int status = check_all(reports, names, n, options, hub);
    if (status == EXIT_DONE && json) print_json(names, reports, n);
    if (status == EXIT_DONE && !json) print_table(reports, n);
    if (status == EXIT_DONE && count(reports, n, KHUB_CHECK_LEVEL_ERROR)) status = EXIT_FAILED;
    for (size_t i = 0; i < n; i++)
        khub_check_report_free(reports[i]);
    free(reports);
    return status;
}

static int run(int argc, char **argv)
{
    int json = 0, no_load = 0;
    khub_check_options given;
    cli_hub hub;
    KHUB_INIT(&given);
    cli_hub_init(&hub);
    const cli_option options[] = {
        {"--json", CLI_FLAG, &json},           {"--manylinux", CLI_TEXT, &given.manylinux},
        {"--python", CLI_TEXT, &given.python}, {"--macos", CLI_TEXT, &given.macos},
        {"--torch", CLI_TEXT, &given.torch},   {"--variant", CLI_TEXT, &given.variant},
        {"--no-load", CLI_FLAG, &no_load},     CLI_HUB_OPTIONS(hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n == 0) return cli_usage("check", "of which library or repository?");
    given.load = !no_load;
    return check(argv + 1, (size_t)n, &given, &hub, json);
}

const cli_command cli_check = {
    .name = "check",
    .summary = "whether a kernel loads everywhere it should, and is what is said about it",
    .help =
        "khub check FILE.so… | DIR | REPO: whether a kernel loads everywhere it should, and is what is said "
        "about it\n\n"
        "    khub check ./build/tvm-ffi01-cpu-x86_64-linux/_relu_cpu_30dc0ae.so\n"
        "    khub check ./my-kernel --json\n\n"
        "Reads ELF, Mach-O and PE libraries, metadata.json and layers.json. DIR is a build, or a directory "
        "with "
        "libraries;\n"
        "REPO a kernel repository: a path, a built-in kernel, or ORG/NAME@REV, all of whose builds are "
        "downloaded. docs/publishing.md\n"
        "says what each finding means.\n\n"
        "    --json            {\"checks\": [{\"name\", \"findings\": [{\"file\", \"about\", \"level\", "
        "\"value\", "
        "\"words\", \"items\"}]}],\n"
        "                      \"errors\", \"warnings\"}\n"
        "    --variant NAME    of a repository that build alone\n"
        "    --manylinux NAME  the level that Linux libraries should have (manylinux_2_28)\n"
        "    --python X.Y      the Python whose limited API they may use (3.9)\n"
        "    --macos X.Y       the macOS that they should load on (15.0)\n"
        "    --torch X.Y       the PyTorch whose stable ABI they may use (as the build's name says)\n"
        "    --no-load         reads only; otherwise each library for this machine is also loaded, in a "
        "process of "
        "its own\n" CLI_HUB_HELP "\nexit status: 0 no error was found; 1 there is one\n",
    .run = run,
};
