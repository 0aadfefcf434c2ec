/* khub matrix: which build of a kernel repository well-known machines get. */
#include "matrix.h"

#include "svg.h"

#include <stdlib.h>

const khub_decision *cli_matrix_nearest(const khub_choice *choice)
{
    const khub_decision *d, *nearest = NULL;
    for (size_t i = 0; (d = khub_choice_at(choice, i)); i++)
        if (!nearest || d->met > nearest->met) nearest = d;
    return nearest;
}

size_t cli_matrix_served(const cli_matrix *m)
{
    size_t served = 0;
    for (size_t i = 0; i < m->count; i++)
        served += khub_choice_chosen(m->rows[i].choice) != NULL;
    return served;
}

static void print_row_json(const cli_matrix_row *row)
{
    const khub_decision *d, *chosen = khub_choice_chosen(row->choice);
    const khub_decision *nearest = chosen ? NULL : cli_matrix_nearest(row->choice),
                        *told = chosen ? chosen : nearest;
    fputs("{\"platform\": ", stdout);
    cli_json_text(stdout, row->name);
    fputs(", \"about\": ", stdout);
    cli_json_text(stdout, khub_platform_about(row->platform));
    fputs(", \"chosen\": ", stdout);
    cli_json_text(stdout, chosen ? chosen->name : NULL);
    fputs(", \"nearest\": ", stdout);
    cli_json_text(stdout, nearest ? nearest->name : NULL);
    fputs(", \"reason\": ", stdout);
    cli_json_text(stdout, told ? told->reason : NULL);
    fputs(", \"accepted\": [", stdout);
    for (size_t i = 0; (d = khub_choice_at(row->choice, i)) && d->kind == KHUB_ACCEPTED; i++) {
        if (i) fputs(", ", stdout);
        cli_json_text(stdout, d->name);
    }
    fputs("]}", stdout);
}

static void print_json(const cli_matrix *m)
{
    fputs("{\"repo\": ", stdout);
    cli_json_text(stdout, m->repository);
    fputs(", \"revision\": ", stdout);
    cli_json_text(stdout, m->count ? khub_choice_commit(m->rows[0].choice) : NULL);
    fputs(", \"platforms\": [", stdout);
    for (size_t i = 0; i < m->count; i++) {
        if (i) fputs(",\n ", stdout);
        print_row_json(&m->rows[i]);
    }
    fputs("]}\n", stdout);
}

static void print_row(const cli_matrix_row *row, int width)
{
    const khub_decision *chosen = khub_choice_chosen(row->choice);
    const khub_decision *nearest = cli_matrix_nearest(row->choice);
    cli_name(stdout, row->name);
    printf("%*s", width - (int)strlen(row->name) + 2, "");
    if (chosen)
        cli_line(stdout, "%s%s%s\n", chosen->name, chosen->reason ? "; " : "",
                 chosen->reason ? chosen->reason : "");
    else if (nearest)
        cli_line(stdout, "none; nearest is %s: %s\n", nearest->name, nearest->reason);
    else
        puts("none: there are no builds");
}

static void print_table(const cli_matrix *m)
{
    int width = 0;
    for (size_t i = 0; i < m->count; i++)
        if ((int)strlen(m->rows[i].name) > width) width = (int)strlen(m->rows[i].name);
    for (size_t i = 0; i < m->count; i++)
        print_row(&m->rows[i], width);
}

/* The first answer of the Hub says at which commit; the others are about the same. */
static int choose(cli_matrix *m, cli_hub *hub, khub_error *err)
{
    char at[512];
    const char *name = m->repository;
    for (size_t i = 0; i < m->count; i++) {
        cli_matrix_row *row = &m->rows[i];
        cli_machine machine = {.file = row->name};
        int rc = cli_platform(&row->platform, &machine, err);
        if (rc == KHUB_OK) rc = cli_choose(&row->choice, name, row->platform, hub, err);
        if (rc != KHUB_OK) return rc;
        if (i > 0 || !khub_choice_commit(row->choice)) continue;
        snprintf(at, sizeof(at), "%s@%s", khub_choice_repository(row->choice),
                 khub_choice_commit(row->choice));
        name = at;
    }
    return KHUB_OK;
}

static int show(const cli_matrix *m, int json, const char *svg)
{
    int status = EXIT_DONE;
    if (json)
        print_json(m);
    else
        print_table(m);
    size_t served = cli_matrix_served(m);
    if (served < m->count)
        cli_note("%s: %zu of %zu machines get no build", m->repository, m->count - served, m->count);
    if (svg) status = cli_svg_write(svg, cli_matrix_chart, m);
    return status == EXIT_DONE && served == 0 ? EXIT_NOBUILD : status;
}

/* Those that were named, else all that khub knows. */
static int make_rows(cli_matrix *m, const cli_list *named, char **known, size_t known_count, khub_error *err)
{
    m->count = named->count ? named->count : known_count;
    m->rows = calloc(m->count + 1, sizeof(*m->rows));
    if (!m->rows) return cli_no_memory(err);
    for (size_t i = 0; i < m->count; i++)
        m->rows[i].name = named->count ? named->items[i] : known[i];
    return KHUB_OK;
}

static void close_rows(cli_matrix *m)
{
    for (size_t i = 0; m->rows && i < m->count; i++) {
        khub_choice_free(m->rows[i].choice);
        khub_platform_free(m->rows[i].platform);
    }
    free(m->rows);
}

static int run(int argc, char **argv)
{
    int json = 0;
    const char *svg = NULL;
    cli_list named = {.count = 0};
    cli_hub hub;
    cli_hub_init(&hub);
    const cli_option options[] = {{"--json", CLI_FLAG, &json},
                                  {"--svg", CLI_TEXT, &svg},
                                  {"--platform", CLI_LIST, &named},
                                  CLI_HUB_OPTIONS(hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n != 1) return cli_usage(argv[0], n ? "one repository at a time" : "of which repository?");
    cli_matrix m = {.repository = argv[1]};
    char **known = NULL;
    size_t known_count = 0;
    khub_error err = {0};
    int rc = named.count ? KHUB_OK : khub_platform_known_names(&known, &known_count, &err);
    if (rc == KHUB_OK) rc = make_rows(&m, &named, known, known_count, &err);
    if (rc == KHUB_OK) rc = choose(&m, &hub, &err);
    int status = rc == KHUB_OK ? show(&m, json, svg) : cli_fail(&err);
    close_rows(&m);
    khub_free(known);
    return status;
}

const cli_command cli_matrix_command = {
    .name = "matrix",
    .summary = "which build of a kernel well-known machines get, and who is left out",
    .help =
        "khub matrix REPO: which build of a kernel well-known machines get, and who is left out\n\n"
        "    khub matrix kernels-community/activation@v1\n"
        "    khub matrix ./my-kernel --platform h100 --platform mi300x --platform ./ours.json\n"
        "    khub matrix ./my-kernel --svg matrix.svg\n\n"
        "The machines are those of khub's share/khub/platforms, from an x86-64 processor to a GPU of each "
        "kind,\n"
        "with a current driver, Torch and tvm-ffi. Nothing but what describes the builds is fetched.\n\n"
        "    --platform WHICH  these machines only: a name of the list, or a file; again for more\n"
        "    --svg FILE        a chart, too\n"
        "    --json            {\"repo\", \"revision\", \"platforms\": [{\"platform\", \"about\", "
        "\"chosen\", "
        "\"nearest\",\n"
        "                      \"reason\", \"accepted\": [NAME]}]}\n" CLI_HUB_HELP
        "\nexit status: 0 a machine gets a build; 3 none does\n",
    .run = run,
};
