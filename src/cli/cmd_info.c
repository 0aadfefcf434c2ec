/* khub info: what a kernel repository of the Hub is, without loading anything of it. */
#include "builds.h"
#include "trust.h"

#include <jansson.h>
#include <stdlib.h>

typedef struct facts {
    cli_builds builds;
    khub_snapshot *snapshot; /* with the metadata.json of the chosen build; NULL: none fits */
    json_t *metadata;        /* NULL: none */
    khub_trust *trust;       /* the verdict on that build; NULL: none fits, the publisher alone is judged */
    int trusted;
    khub_error untrusted; /* why the publisher isn't */
    int sbom;             /* 1: --sbom */
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

static int judge_build(facts *info, const char *variant, khub_error *err)
{
    const khub_choice *choice = info->builds.choice;
    char name[400];
    khub_get_options get;
    KHUB_INIT(&get);
    get.variant = variant;
    get.hub = &info->builds.hub.options;
    snprintf(name, sizeof(name), "%s@%s", khub_choice_repository(choice), khub_choice_commit(choice));
    int rc = khub_judge(&info->trust, name, 0, &get, err);
    info->trusted = khub_trust_holds(info->trust);
    return rc;
}

static int judge(facts *info, khub_error *err)
{
    const khub_decision *chosen = khub_choice_chosen(info->builds.choice);
    if (chosen) return judge_build(info, chosen->name, err);
    info->trusted = khub_trusted(khub_choice_repository(info->builds.choice), &info->builds.hub.options,
                                 &info->untrusted) == KHUB_OK;
    return KHUB_OK;
}

/* Metadata that isn't what the commit or its signature says isn't read; a signature of nobody who is known is
 * none. */
static int is_readable(const facts *info)
{
    const khub_signature *signature = khub_trust_signature(info->trust);
    const khub_trust_reason *reason;
    for (size_t i = 0; (reason = khub_trust_at(info->trust, i)) != NULL; i++)
        if (reason->decision == KHUB_TRUST_REFUSED && !strcmp(reason->about, "content")) return 0;
    return !signature || signature->reason == KHUB_SIGNATURE_HOLDS ||
           signature->reason == KHUB_SIGNATURE_IDENTITY ||
           signature->reason == KHUB_SIGNATURE_UNKNOWN_AUTHORITY ||
           signature->reason == KHUB_SIGNATURE_UNKNOWN_LOG;
}

/* Judged first, looked into after that. */
static int collect(facts *info, khub_error *err)
{
    int rc = cli_hub_begin(&info->builds.hub, err);
    if (rc != KHUB_OK) return rc;
    rc = judge(info, err);
    cli_hub_end();
    return rc == KHUB_OK && is_readable(info) ? read_metadata(info, err) : rc;
}

static const char *const fields[] = {"name", "version", "license", "upstream", "source"};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

/* The policy that was gone by, for its trusted root. */
static void with_policy(const facts *info, void (*print)(FILE *to, const khub_policy *policy))
{
    khub_error err = {0};
    khub_policy *read = NULL;
    const khub_policy *policy = info->builds.hub.options.policy;
    if (!policy && khub_policy_read(&read, NULL, &err) == KHUB_OK) policy = read;
    print(stdout, policy);
    khub_policy_free(read);
}

static void print_json(const facts *info)
{
    const khub_choice *choice = info->builds.choice;
    const khub_decision *chosen = khub_choice_chosen(choice);
    char *metadata = info->metadata ? json_dumps(info->metadata, 0) : NULL;
    fputs("{\"repo\": ", stdout);
    cli_json_text(stdout, info->builds.name);
    printf(", \"commit\": \"%s\", \"trusted\": %s, \"level\": ", khub_choice_commit(choice),
           info->trusted ? "true" : "false");
    cli_json_text(stdout, info->trust ? khub_trust_level_name(khub_trust_level_of(info->trust)) : NULL);
    fputs(",\n \"trust\": ", stdout);
    cli_trust_json(stdout, info->trust);
    fputs(",\n \"signature\": ", stdout);
    cli_signature_json(stdout, khub_trust_signature(info->trust));
    fputs(",\n \"trusted_root\": ", stdout);
    with_policy(info, cli_root_json);
    printf(",\n \"builds\": %zu, \"chosen\": ", khub_choice_count(choice));
    cli_json_text(stdout, chosen ? chosen->name : NULL);
    printf(", \"metadata\": %s}\n", metadata ? metadata : "null");
    free(metadata);
}

/* A line for each decision, the first one's beside what they come to. */
static void print_trust(const facts *info)
{
    const khub_signature *signature = khub_trust_signature(info->trust);
    if (!info->trust) {
        cli_line(stdout, "%-10s %s\n", "publisher", info->trusted ? "trusted" : info->untrusted.message);
        return;
    }
    printf("%-10s %s (level %s)\n", "trust", info->trusted ? "may be loaded" : "may not be loaded",
           khub_trust_level_name(khub_trust_level_of(info->trust)));
    cli_trust_lines(stdout, info->trust, khub_choice_repository(info->builds.choice), 11);
    if (!signature) return;
    if (signature->repository)
        cli_line(stdout, "%-10s %s%s%s\n", "signed", signature->repository,
                 signature->commit ? " at commit " : "", signature->commit ? signature->commit : "");
    printf("%-10s ", "root");
    with_policy(info, cli_root_line);
    putchar('\n');
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
            cli_line(stdout, "%-10s %s\n", fields[i], json_string_value(value));
    }
    cli_line(stdout, "%-10s %s\n", "commit", khub_choice_commit(choice));
    print_trust(info);
    cli_line(stdout, "%-10s %zu, of which %s%s\n", "builds", khub_choice_count(choice),
             chosen ? "this machine takes " : "none fits", chosen ? chosen->name : "");
}

/* The directory of a build of the Hub, with all its files; the caller's (free). */
static int bring(char **build, facts *info, const char *variant, khub_error *err)
{
    const khub_choice *choice = info->builds.choice;
    char name[400], pattern[600];
    khub_download_options download;
    snprintf(name, sizeof(name), "%s@%s", khub_choice_repository(choice), khub_choice_commit(choice));
    snprintf(pattern, sizeof(pattern), "build/%s/*", variant);
    const char *patterns[] = {pattern, NULL};
    KHUB_INIT(&download);
    download.patterns = patterns;
    int rc = cli_download(&info->snapshot, name, &download, &info->builds.hub, err);
    if (rc != KHUB_OK) return rc;
    size_t size = strlen(khub_snapshot_path(info->snapshot)) + sizeof(pattern);
    *build = malloc(size);
    if (*build) snprintf(*build, size, "%s/build/%s", khub_snapshot_path(info->snapshot), variant);
    return *build ? KHUB_OK : cli_no_memory(err);
}

/* The same for a directory of this machine, or a built-in kernel. */
static int find(char **build, facts *info, const char *variant, khub_error *err)
{
    char *found;
    khub_get_options get;
    KHUB_INIT(&get);
    get.variant = variant;
    get.hub = &info->builds.hub.options;
    int rc = khub_prefetch(&found, info->builds.name, &get, err);
    if (rc != KHUB_OK) return rc;
    *build = malloc(strlen(found) + 1);
    if (*build) memcpy(*build, found, strlen(found) + 1);
    khub_free(found);
    return *build ? KHUB_OK : cli_no_memory(err);
}

static int print_sbom(facts *info)
{
    const khub_choice *choice = info->builds.choice;
    const khub_decision *chosen = khub_choice_chosen(choice);
    khub_error err = {0};
    khub_sbom_options options;
    char *build = NULL, *json = NULL;
    KHUB_INIT(&options);
    options.repository = khub_choice_repository(choice);
    options.commit = khub_choice_commit(choice);
    options.policy = info->builds.hub.options.policy;
    int rc = khub_choice_require(choice, info->builds.name, &err);
    if (rc == KHUB_OK) rc = (options.commit ? bring : find)(&build, info, chosen->name, &err);
    if (rc == KHUB_OK) rc = khub_sbom(&json, build, &options, &err);
    if (rc == KHUB_OK) fputs(json, stdout);
    khub_free(json);
    free(build);
    return rc == KHUB_OK ? EXIT_DONE : cli_fail(&err);
}

static int tell(facts *info)
{
    khub_error err = {0};
    if (info->sbom) return print_sbom(info);
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
    const cli_option sbom = {"--sbom", CLI_FLAG, &info.sbom};
    int status = cli_builds_open(&info.builds, argc, argv, &sbom);
    if (status == EXIT_DONE) status = tell(&info);
    json_decref(info.metadata);
    khub_trust_free(info.trust);
    khub_snapshot_free(info.snapshot);
    cli_builds_close(&info.builds);
    return status;
}

const cli_command cli_info = {
    .name = "info",
    .summary = "what a kernel of the Hub is: version, licence, publisher, builds",
    .help = "khub info ORG/NAME@REV: what a kernel of the Hub is, without loading anything of it\n\n"
            "    khub info kernels-community/activation@v1\n\n"
            "Fetches at most the metadata.json of the build that fits and its signature, and judges whether "
            "it may be\n"
            "loaded (docs/trust.md). khub variants lists all builds, with "
            "reasons.\n\n"
            "    --json            {\"repo\", \"commit\", \"trusted\", \"level\", \"trust\": [{\"about\", "
            "\"decision\",\n"
            "                      \"words\"}], \"signature\", \"trusted_root\": {\"path\", \"sha256\", "
            "\"newest\",\n"
            "                      \"age_days\"}, \"builds\", \"chosen\", \"metadata\"}\n"
            "    --sbom            a bill of materials of the build that fits, whose files are fetched: "
            "CycloneDX 1.6, JSON;\n"
            "                      also of a directory and of a built-in kernel\n" CLI_BUILDS_HELP,
    .run = run,
};
