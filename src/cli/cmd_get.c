/* khub get: fetches a kernel, if it isn't there yet, and loads it. */
#include "hub.h"
#include "trust.h"

static void print_field(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    cli_json_text(stdout, text);
}

static void print_json(const khub_kernel *kernel)
{
    fputs("{\"name\": ", stdout);
    cli_json_text(stdout, khub_kernel_name(kernel));
    print_field("commit", khub_kernel_commit(kernel));
    printf(", \"version\": %lld", (long long)khub_kernel_version(kernel));
    print_field("variant", khub_kernel_variant(kernel));
    print_field("build", khub_kernel_build(kernel));
    print_field("library", khub_kernel_library(kernel));
    fputs(", \"trust\": ", stdout);
    cli_trust_json(stdout, khub_kernel_trust(kernel));
    fputs("}\n", stdout);
}

static int get_one(const char *name, khub_get_options *get, cli_hub *hub, int json)
{
    khub_error err = {0};
    khub_kernel *kernel = NULL;
    int rc = cli_get(&kernel, name, get, hub, &err);
    if (rc != KHUB_OK) return cli_fail(&err);
    if (json)
        print_json(kernel);
    else
        printf("%s\n", khub_kernel_build(kernel));
    khub_kernel_close(kernel);
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    int json = 0;
    khub_get_options get;
    cli_hub hub;
    KHUB_INIT(&get);
    cli_hub_init(&hub);
    const cli_option options[] = {{"--json", CLI_FLAG, &json},
                                  {"--backend", CLI_TEXT, &get.backend},
                                  {"--device", CLI_TEXT, &get.backend},
                                  {"--torch", CLI_TEXT, &get.torch},
                                  {"--no-torch", CLI_FLAG, &get.no_torch},
                                  {"--variant", CLI_TEXT, &get.variant},
                                  {"--lock", CLI_TEXT, &get.lock},
                                  CLI_HUB_OPTIONS(hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (!n) return cli_usage("get", "which kernel?");
    get.rehearse = 1;
    int status = EXIT_DONE;
    for (int i = 1; i <= n && status == EXIT_DONE; i++)
        status = get_one(argv[i], &get, &hub, json);
    cli_kernels_begin(); /* what they leave for the end of the process */
    return status;
}

const cli_command cli_get_command = {
    .name = "get",
    .summary = "fetches a kernel, if it isn't there yet, and loads it",
    .help = "khub get KERNEL...: fetches the build that fits this machine, if it isn't in the cache yet, "
            "loads it, and\n"
            "prints the directory that it is in\n\n"
            "    khub get kernels-community/activation@v1\n"
            "    khub get khub/norm --json\n\n"
            "KERNEL is ORG/NAME@REV (v1 or 1 is version 1, \">=1,<3\" a range of them; else a branch, a tag "
            "or a commit), a path that "
            "starts with /, ./\n"
            "or ../, or a built-in kernel. A version is asked for again when the cache's word on it is older "
            "than\n"
            "KHUB_REFRESH_SECONDS (600).\n\n"
            "    --json            a line for each: {\"name\", \"commit\", \"version\", \"variant\", "
            "\"build\", \"library\",\n"
            "                      \"trust\": [{\"about\", \"decision\", \"words\"}]}\n"
            "    --lock FILE       at the commits that a kernels.lock has\n"
            "    --backend NAME    as if the machine had that backend only: cpu, or the one it has\n"
            "    --device NAME:N   as if it had that device only: cuda:1 is the second one\n" CLI_TORCH_HELP
            "    --variant NAME    that build, whether it fits or not\n" CLI_HUB_HELP,
    .run = run,
};
