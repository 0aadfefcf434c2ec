#include "builds.h"

int cli_builds_open(cli_builds *out, int argc, char **argv, const cli_option *own)
{
    cli_machine machine = {0};
    memset(out, 0, sizeof(*out));
    cli_hub_init(&out->hub);
    const cli_option json = {"--json", CLI_FLAG, &out->json};
    const cli_option options[] = {json, own ? *own : json, CLI_MACHINE_OPTIONS(machine),
                                  CLI_HUB_OPTIONS(out->hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n != 1) return cli_usage(argv[0], n ? "one repository at a time" : "which repository?");
    out->name = argv[1];
    khub_error err = {0};
    khub_platform *platform = NULL;
    int rc = cli_platform(&platform, &machine, &err);
    if (rc == KHUB_OK) rc = cli_choose(&out->choice, out->name, platform, &out->hub, &err);
    khub_platform_free(platform);
    return rc == KHUB_OK ? EXIT_DONE : cli_fail(&err);
}

void cli_builds_close(cli_builds *builds)
{
    khub_choice_free(builds->choice);
}
