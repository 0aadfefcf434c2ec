/* khub versions: which versions of a kernel there are. */
#include "hub.h"

static void print_json(const char *name, const khub_versions *versions)
{
    const khub_version_info *info;
    fputs("{\"repo\": ", stdout);
    cli_json_text(stdout, name);
    printf(", \"offline\": %s, \"versions\": [", khub_versions_offline(versions) ? "true" : "false");
    for (size_t i = 0; (info = khub_versions_at(versions, i)); i++)
        printf("%s{\"version\": %lld, \"commit\": \"%s\", \"cached\": %s}", i ? ",\n " : "",
               (long long)info->version, info->commit, info->cached ? "true" : "false");
    fputs("]}\n", stdout);
}

static void print_table(const khub_versions *versions)
{
    const khub_version_info *info;
    for (size_t i = 0; (info = khub_versions_at(versions, i)); i++)
        printf("v%-6lld %.12s%s%s\n", (long long)info->version, info->commit,
               info->cached ? "  in the cache" : "", info->version ? "" : "  experimental");
}

static int run(int argc, char **argv)
{
    int json = 0;
    cli_hub hub;
    cli_hub_init(&hub);
    const cli_option options[] = {{"--json", CLI_FLAG, &json}, CLI_HUB_OPTIONS(hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n != 1) return cli_usage("versions", n ? "one repository at a time" : "of which repository?");
    khub_error err = {0};
    khub_versions *versions = NULL;
    if (cli_hub_begin(&hub, &err) != KHUB_OK) return cli_fail(&err);
    int rc = khub_versions_list(&versions, argv[1], &hub.options, &err);
    cli_hub_end();
    if (rc != KHUB_OK) return cli_fail(&err);
    if (json)
        print_json(argv[1], versions);
    else
        print_table(versions);
    if (!khub_versions_at(versions, 0))
        cli_note("%s: there are no versions (branches v0, v1, ...)%s", argv[1],
                 khub_versions_offline(versions) ? " in the cache" : "");
    khub_versions_free(versions);
    return EXIT_DONE;
}

const cli_command cli_versions = {
    .name = "versions",
    .summary = "which versions of a kernel there are",
    .help = "khub versions ORG/NAME: which versions of a kernel there are, and which the cache has\n\n"
            "    khub versions kernels-community/activation\n\n"
            "    --json            {\"repo\", \"offline\", \"versions\": [{\"version\", \"commit\", "
            "\"cached\"}]}\n" CLI_HUB_HELP,
    .run = run,
};
