/* khub variants: which build of a kernel repository fits, and why the others don't. */
#include "builds.h"

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
    fputs(", \"revision\": ", stdout);
    cli_json_text(stdout, khub_choice_commit(choice));
    fputs(", \"chosen\": ", stdout);
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
            cli_line(stdout, "%*s  %-14s  %s\n", padding, "", kind, d->reason);
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
    cli_builds builds;
    int status = cli_builds_open(&builds, argc, argv, NULL);
    if (status == EXIT_DONE) {
        if (builds.json)
            print_json(builds.name, builds.choice);
        else
            print_table(builds.choice);
        if (!khub_choice_chosen(builds.choice)) status = say_none(builds.name, builds.choice);
    }
    cli_builds_close(&builds);
    return status;
}

const cli_command cli_variants = {
    .name = "variants",
    .summary = "which build of a kernel fits this machine, and why the others don't",
    .help =
        "khub variants REPO: which build of a kernel fits this machine, and why the others don't\n\n"
        "    khub variants khub/norm\n"
        "    khub variants ./my-kernel --platform h100\n\n"
        "REPO is ORG/NAME@REV, a path that starts with /, ./ or ../, or a built-in kernel. The builds are "
        "listed in "
        "order of\n"
        "preference; the one that khub would load is marked with *.\n\n"
        "    --json            {\"repo\", \"revision\", \"chosen\", \"variants\": [{\"name\", "
        "\"decision\", \"reason\"}]};\n"
        "                      \"revision\" is the commit, null for a directory of this "
        "machine\n" CLI_BUILDS_HELP
        "\nexit status: 0 there is a build; 3 none fits, or those that fit need Python\n",
    .run = run,
};
