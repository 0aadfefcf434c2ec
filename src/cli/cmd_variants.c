/* khub variants: which build of a kernel repository fits, and why the others don't. */
#include "hub.h"

#include <stdlib.h>

static void print_decision_json(const khub_decision *d)
{
    fputs("{\"name\": ", stdout);
    cli_json_text(stdout, d->name);
    printf(", \"decision\": \"%s\", \"reason\": ", khub_decision_kind_name(d->kind));
    cli_json_text(stdout, d->reason);
    fputc('}', stdout);
}

static void print_json(const char *repository, const khub_choice *choice)
{
    const khub_decision *chosen = khub_choice_chosen(choice);
    fputs("{\"repo\": ", stdout);
    cli_json_text(stdout, repository);
    fputs(", \"revision\": null, \"chosen\": ", stdout);
    cli_json_text(stdout, chosen ? chosen->name : NULL);
    fputs(", \"variants\": [", stdout);
    for (size_t i = 0; i < khub_choice_count(choice); i++) {
        if (i) fputs(",\n ", stdout);
        print_decision_json(khub_choice_at(choice, i));
    }
    fputs("]}\n", stdout);
}

static void print_table(const khub_choice *choice)
{
    const khub_decision *d, *chosen = khub_choice_chosen(choice);
    int width = 0;
    for (size_t i = 0; (d = khub_choice_at(choice, i)); i++)
        if ((int)strlen(d->name) > width) width = (int)strlen(d->name);
    for (size_t i = 0; (d = khub_choice_at(choice, i)); i++) {
        fputs(d == chosen ? "* " : "  ", stdout);
        cli_name(stdout, d->name);
        int padding = width - (int)strlen(d->name);
        const char *kind = khub_decision_kind_name(d->kind);
        if (d->reason)
            cli_print(stdout, "%*s  %-14s  %s\n", padding, "", kind, d->reason);
        else
            printf("%*s  %s\n", padding, "", kind);
    }
}

static size_t count_of(const khub_choice *choice, khub_decision_kind kind)
{
    const khub_decision *d;
    size_t n = 0;
    for (size_t i = 0; (d = khub_choice_at(choice, i)); i++)
        n += d->kind == kind;
    return n;
}

/* The reasons are in the list already, so that this says only what they come to. */
static int say_none(const char *repository, const khub_choice *choice)
{
    size_t python = count_of(choice, KHUB_NEEDS_PYTHON), unread = count_of(choice, KHUB_NOT_UNDERSTOOD);
    cli_print(stderr, "khub: %s: %s%s\n", repository,
              python ? "needs Python: the builds that fit this machine hold no library"
                     : "no build fits this machine",
              khub_choice_count(choice) ? "" : ": there are none");
    if (unread)
        cli_print(
            stderr,
            "khub: %s: builds exist that this khub (%s) can't read (%zu): upgrade khub, a newer one may\n",
            repository, khub_version(), unread);
    return EXIT_NOBUILD;
}

static int run(int argc, char **argv)
{
    int json = 0;
    const char *file = NULL, *backend = NULL;
    cli_hub hub;
    cli_hub_init(&hub);
    const cli_option options[] = {{"--json", CLI_FLAG, &json},
                                  {"--platform", CLI_TEXT, &file},
                                  {"--backend", CLI_TEXT, &backend},
                                  CLI_HUB_OPTIONS(hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n != 1) return cli_usage("variants", n ? "one repository at a time" : "which repository?");
    khub_error err = {0};
    khub_platform *platform = NULL;
    khub_choice *choice = NULL;
    int status, rc = cli_platform(&platform, file, backend, &err);
    if (rc == KHUB_OK) rc = cli_choose(&choice, argv[1], platform, &hub, &err);
    if (rc != KHUB_OK) {
        status = cli_fail(&err);
    } else {
        if (json)
            print_json(argv[1], choice);
        else
            print_table(choice);
        status = khub_choice_chosen(choice) ? EXIT_DONE : say_none(argv[1], choice);
    }
    khub_choice_free(choice);
    khub_platform_free(platform);
    return status;
}

const cli_command cli_variants = {
    .name = "variants",
    .summary = "which build of a kernel fits this machine, and why the others don't",
    .help =
        "khub variants REPO: which build of a kernel fits this machine, and why the others don't\n\n"
        "    khub variants khub/norm\n"
        "    khub variants ./my-kernel --platform h100.json\n\n"
        "REPO is ORG/NAME@REV, a path that starts with /, ./ or ../, or a built-in kernel. The builds are "
        "listed in "
        "order of\n"
        "preference; the one that khub would load is marked with *.\n\n"
        "    --json            {\"repo\", \"revision\", \"chosen\", \"variants\": [{\"name\", "
        "\"decision\", \"reason\"}]}\n"
        "    --platform FILE   for the machine that FILE describes (khub platform --json prints such a "
        "file)\n"
        "    --backend NAME    as if the machine had that backend only: cpu, or the one it has\n" CLI_HUB_HELP
        "\nexit status: 0 there is a build; 3 none fits, or those that fit need Python\n",
    .run = run,
};
