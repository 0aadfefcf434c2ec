/* khub info: what a kernel repository of the Hub is, without loading anything of it. */
#include "hub.h"

#include <jansson.h>
#include <stdlib.h>

typedef struct facts {
    const char *name;
    khub_choice *choice;
    khub_snapshot *snapshot; /* with the metadata.json of the chosen build; NULL: none fits */
    json_t *metadata;        /* NULL: none */
    int trusted;
    khub_error untrusted; /* why not */
} facts;

/* "build/VARIANT/metadata.json" of the chosen build, fetched and read. */
static int read_metadata(facts *info, cli_hub *hub, khub_error *err)
{
    const khub_decision *chosen = khub_choice_chosen(info->choice);
    char pattern[600];
    khub_download_options download;
    if (!chosen) return KHUB_OK;
    snprintf(pattern, sizeof(pattern), "build/%s/metadata.json", chosen->name);
    const char *patterns[] = {pattern, NULL};
    KHUB_INIT(&download);
    download.patterns = patterns;
    int rc = cli_download(&info->snapshot, info->name, &download, hub, err);
    if (rc != KHUB_OK) return rc;
    size_t size = strlen(khub_snapshot_path(info->snapshot)) + sizeof(pattern) + 1;
    char *path = malloc(size);
    if (!path) return KHUB_E_NOMEM;
    snprintf(path, size, "%s/%s", khub_snapshot_path(info->snapshot), pattern);
    info->metadata = json_load_file(path, 0, NULL);
    free(path);
    return KHUB_OK;
}

static int collect(facts *info, const khub_platform *platform, cli_hub *hub, khub_error *err)
{
    int rc = cli_choose(&info->choice, info->name, platform, hub, err);
    if (rc == KHUB_OK) rc = read_metadata(info, hub, err);
    if (rc != KHUB_OK) return rc;
    cli_hub_begin(hub);
    rc = khub_trusted(info->name, &hub->options, &info->untrusted);
    cli_hub_end();
    info->trusted = rc == KHUB_OK;
    return KHUB_OK;
}

static const char *const fields[] = {"name", "version", "license", "upstream", "source"};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

static void print_json(const facts *info)
{
    const khub_decision *chosen = khub_choice_chosen(info->choice);
    json_t *out = json_object();
    json_object_set_new(out, "repo", json_string(info->name));
    json_object_set_new(out, "commit",
                        info->snapshot ? json_string(khub_snapshot_commit(info->snapshot)) : json_null());
    json_object_set_new(out, "trusted", json_boolean(info->trusted));
    json_object_set_new(out, "builds", json_integer((json_int_t)khub_choice_count(info->choice)));
    json_object_set_new(out, "chosen", chosen ? json_string(chosen->name) : json_null());
    json_object_set_new(out, "metadata", info->metadata ? json_incref(info->metadata) : json_null());
    char *text = json_dumps(out, JSON_INDENT(2));
    if (text) printf("%s\n", text);
    free(text);
    json_decref(out);
}

static void print_table(const facts *info)
{
    const khub_decision *chosen = khub_choice_chosen(info->choice);
    for (size_t i = 0; i < FIELDS; i++) {
        const json_t *value = json_object_get(info->metadata, fields[i]);
        if (json_is_integer(value))
            printf("%-10s %lld\n", fields[i], (long long)json_integer_value(value));
        else if (json_is_string(value))
            cli_print(stdout, "%-10s %s\n", fields[i], json_string_value(value));
    }
    if (info->snapshot) printf("%-10s %s\n", "commit", khub_snapshot_commit(info->snapshot));
    cli_print(stdout, "%-10s %s\n", "publisher", info->trusted ? "trusted" : info->untrusted.message);
    printf("%-10s %zu, of which %s%s\n", "builds", khub_choice_count(info->choice),
           chosen ? "this machine takes " : "none fits", chosen ? chosen->name : "");
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
    if (n != 1) return cli_usage("info", n ? "one repository at a time" : "of which repository?");
    khub_error err = {0};
    khub_platform *platform = NULL;
    facts info = {.name = argv[1]};
    int rc = cli_platform(&platform, file, backend, &err);
    if (rc == KHUB_OK) rc = collect(&info, platform, &hub, &err);
    if (rc == KHUB_OK && json) print_json(&info);
    if (rc == KHUB_OK && !json) print_table(&info);
    json_decref(info.metadata);
    khub_snapshot_free(info.snapshot);
    khub_choice_free(info.choice);
    khub_platform_free(platform);
    return rc == KHUB_OK ? EXIT_DONE : cli_fail(&err);
}

const cli_command cli_info = {
    .name = "info",
    .summary = "what a kernel of the Hub is: version, licence, publisher, builds",
    .help =
        "khub info ORG/NAME@REV: what a kernel of the Hub is, without loading anything of it\n\n"
        "    khub info kernels-community/activation@v1\n\n"
        "Fetches at most the metadata.json of the build that fits. khub variants lists all builds, with "
        "reasons.\n\n"
        "    --json            {\"repo\", \"commit\", \"trusted\", \"builds\", \"chosen\", \"metadata\"}\n"
        "    --backend NAME    as if the machine had that backend only: cpu, or the one it has\n"
        "    --platform FILE   for the machine that FILE describes\n" CLI_HUB_HELP,
    .run = run,
};
