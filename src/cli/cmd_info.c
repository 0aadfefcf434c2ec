/* khub info: what a kernel repository of the Hub is, without loading anything of it. */
#include "builds.h"

#include <jansson.h>
#include <stdlib.h>

typedef struct facts {
    cli_builds builds;
    khub_snapshot *snapshot; /* with the metadata.json of the chosen build; NULL: none fits */
    json_t *metadata;        /* NULL: none */
    int trusted;
    khub_error untrusted; /* why not */
} facts;

/* "build/VARIANT/metadata.json" of the chosen build, fetched and read. At the commit that the choice was made
 * from: where the version stands isn't asked again. */
static int read_metadata(facts *info, khub_error *err)
{
    const khub_choice *choice = info->builds.choice;
    const khub_decision *chosen = khub_choice_chosen(choice);
    char pattern[600], name[400];
    khub_download_options download;
    if (!chosen) return KHUB_OK;
    snprintf(name, sizeof(name), "%s@%s", khub_choice_repository(choice), khub_choice_commit(choice));
    snprintf(pattern, sizeof(pattern), "build/%s/metadata.json", chosen->name);
    const char *patterns[] = {pattern, NULL};
    KHUB_INIT(&download);
    download.patterns = patterns;
    int rc = cli_download(&info->snapshot, name, &download, &info->builds.hub, err);
    if (rc != KHUB_OK) return rc;
    size_t size = strlen(khub_snapshot_path(info->snapshot)) + sizeof(pattern) + 1;
    char *path = malloc(size);
    if (!path) return err->code = KHUB_E_NOMEM;
    snprintf(path, size, "%s/%s", khub_snapshot_path(info->snapshot), pattern);
    info->metadata = json_load_file(path, 0, NULL);
    free(path);
    return KHUB_OK;
}

static int collect(facts *info, khub_error *err)
{
    int rc = read_metadata(info, err);
    if (rc != KHUB_OK) return rc;
    rc = cli_hub_begin(&info->builds.hub, err);
    if (rc != KHUB_OK) return rc;
    rc = khub_trusted(khub_choice_repository(info->builds.choice), &info->builds.hub.options,
                      &info->untrusted);
    cli_hub_end();
    info->trusted = rc == KHUB_OK;
    return KHUB_OK;
}

static const char *const fields[] = {"name", "version", "license", "upstream", "source"};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

static void print_json(const facts *info)
{
    const khub_choice *choice = info->builds.choice;
    const khub_decision *chosen = khub_choice_chosen(choice);
    json_t *out = json_object();
    json_object_set_new(out, "repo", json_string(info->builds.name));
    json_object_set_new(out, "commit", json_string(khub_choice_commit(choice)));
    json_object_set_new(out, "trusted", json_boolean(info->trusted));
    json_object_set_new(out, "builds", json_integer((json_int_t)khub_choice_count(choice)));
    json_object_set_new(out, "chosen", chosen ? json_string(chosen->name) : json_null());
    json_object_set_new(out, "metadata", info->metadata ? json_incref(info->metadata) : json_null());
    char *text = json_dumps(out, JSON_INDENT(2));
    if (text) printf("%s\n", text);
    free(text);
    json_decref(out);
}

static void print_table(const facts *info)
{
    const khub_choice *choice = info->builds.choice;
    const khub_decision *chosen = khub_choice_chosen(choice);
    for (size_t i = 0; i < FIELDS; i++) {
        const json_t *value = json_object_get(info->metadata, fields[i]);
        if (json_is_integer(value))
            printf("%-10s %lld\n", fields[i], (long long)json_integer_value(value));
        else if (json_is_string(value))
            cli_print(stdout, "%-10s %s\n", fields[i], json_string_value(value));
    }
    printf("%-10s %s\n", "commit", khub_choice_commit(choice));
    cli_print(stdout, "%-10s %s\n", "publisher", info->trusted ? "trusted" : info->untrusted.message);
    printf("%-10s %zu, of which %s%s\n", "builds", khub_choice_count(choice),
           chosen ? "this machine takes " : "none fits", chosen ? chosen->name : "");
}

static int tell(facts *info)
{
    khub_error err = {0};
    if (!khub_choice_commit(info->builds.choice))
        return cli_usage(
            "info",
            "%s is a directory of this machine; khub info tells of those of the Hub, khub variants of both",
            info->builds.name);
    if (collect(info, &err) != KHUB_OK) return cli_fail(&err);
    if (info->builds.json)
        print_json(info);
    else
        print_table(info);
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    facts info = {0};
    int status = cli_builds_open(&info.builds, argc, argv);
    if (status == EXIT_DONE) status = tell(&info);
    json_decref(info.metadata);
    khub_snapshot_free(info.snapshot);
    cli_builds_close(&info.builds);
    return status;
}

const cli_command cli_info = {
    .name = "info",
    .summary = "what a kernel of the Hub is: version, licence, publisher, builds",
    .help = "khub info ORG/NAME@REV: what a kernel of the Hub is, without loading anything of it\n\n"
            "    khub info kernels-community/activation@v1\n\n"
            "Fetches at most the metadata.json of the build that fits. khub variants lists all builds, with "
            "reasons.\n\n"
            "    --json            {\"repo\", \"commit\", \"trusted\", \"builds\", \"chosen\", "
            "\"metadata\"}\n" CLI_BUILDS_HELP,
    .run = run,
};
