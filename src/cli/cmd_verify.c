/* khub verify: whether the builds that are there are still what they should be. */
#include "hub.h"
#include "trust.h"

typedef struct verify_job {
    cli_hub hub;
    khub_verify_options options;
    int json;
    size_t builds, wrong, absent;
} verify_job;

static void print_json(verify_job *job, const khub_verified *build)
{
    const char *const fields[] = {"name",    build->name,    "commit", build->commit,
                                  "variant", build->variant, "path",   build->path};
    fputs(job->builds + job->absent ? ",\n {" : "{", stdout);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i += 2) {
        printf("\"%s\": ", fields[i]);
        cli_json_text(stdout, fields[i + 1]);
        fputs(", ", stdout);
    }
    printf("\"holds\": %s, \"decisions\": ", !build->trust                    ? "null"
                                             : khub_trust_holds(build->trust) ? "true"
                                                                              : "false");
    cli_trust_json(stdout, build->trust);
    fputs("}", stdout);
}

/* A line for each thing that is wrong; a note for what is worth knowing, but for a signature: most have none.
 */
static void print_wrong(const khub_trust *trust)
{
    const khub_trust_reason *reason;
    for (size_t i = 0; (reason = khub_trust_at(trust, i)); i++) {
        if (reason->decision == KHUB_TRUST_REFUSED) {
            cli_name(stdout, reason->words);
            fputc('\n', stdout);
        } else if (reason->decision == KHUB_TRUST_NOTED && strcmp(reason->about, "signature") != 0) {
            cli_note("%s", reason->words);
        }
    }
}

static void print_text(const khub_verified *build)
{
    if (!build->trust)
        cli_note("%s: no build of it is in the cache", build->name);
    else if (cli_verbose())
        cli_trust_lines(stdout, build->trust, NULL, 0);
    else
        print_wrong(build->trust);
}

static int on_build(void *user, const khub_verified *build)
{
    verify_job *job = user;
    cli_kernels_end(); /* no kernel prints here, we do */
    if (job->json)
        print_json(job, build);
    else
        print_text(build);
    cli_kernels_begin();
    if (build->trust)
        job->builds++;
    else
        job->absent++;
    return ferror(stdout);
}

static int verify(verify_job *job, const char *name, khub_error *err)
{
    size_t wrong = 0;
    job->options.hub = &job->hub.options;
    int rc = cli_hub_begin(&job->hub, err);
    if (rc != KHUB_OK) return rc;
    rc = khub_verify(&wrong, name, &job->options, on_build, job, err);
    cli_hub_end();
    job->wrong += wrong;
    return rc;
}

static int finish(const verify_job *job, int status)
{
    if (job->json)
        printf("], \"wrong\": %zu}\n", job->wrong);
    else if (job->wrong)
        printf("%zu of %zu build%s: not what it should be\n", job->wrong, job->builds,
               job->builds == 1 ? "" : "s");
    else if (status == EXIT_DONE)
        printf("%zu build%s: as %s should be\n", job->builds, job->builds == 1 ? "" : "s",
               job->builds == 1 ? "it" : "they");
    return job->wrong ? EXIT_UNTRUSTED : status;
}

static int run(int argc, char **argv)
{
    verify_job job = {0};
    khub_error err = {0};
    cli_hub_init(&job.hub);
    KHUB_INIT(&job.options);
    const cli_option options[] = {
        {"--json", CLI_FLAG, &job.json}, {"--lock", CLI_TEXT, &job.options.lock}, CLI_HUB_OPTIONS(job.hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (!n && !job.options.lock)
        return cli_usage("verify", "which kernels? It takes names, directories, or --lock FILE");
    if (job.json) fputs("{\"builds\": [", stdout);
    int rc = n ? KHUB_OK : verify(&job, NULL, &err);
    for (int i = 1; rc == KHUB_OK && i <= n; i++)
        rc = verify(&job, argv[i], &err);
    return finish(&job, rc == KHUB_OK ? EXIT_DONE : cli_fail(&err));
}

const cli_command cli_verify = {
    .name = "verify",
    .summary = "hashes kernels that are there again: are they what they should be?",
    .help = "khub verify KERNEL... | DIR... | --lock FILE: judges each build that is there as before it is "
            "loaded, "
            "and hashes\n"
            "every file again, whatever was proven before. A line for each file that is wrong.\n\n"
            "    khub verify --lock kernels.lock\n"
            "    khub verify kernels-community/activation@v1\n"
            "    khub verify ./my-kernel khub/norm\n\n"
            "KERNEL is ORG/NAME@REV in the cache, ORG/NAME for all its commits there, or a built-in kernel; "
            "DIR a "
            "kernel\n"
            "repository or one build. With --lock alone, all that the lock has. Nothing is fetched but what "
            "says what "
            "should be\n"
            "there: a list of files, whether a publisher is trusted; offline the cache has to know it.\n\n"
            "    --json            {\"builds\": [{\"name\", \"commit\", \"variant\", \"path\", \"holds\", "
            "\"decisions\": "
            "[{\"about\",\n"
            "                      \"decision\", \"words\"}]}], \"wrong\"}; nothing of it in the cache: "
            "\"variant\" is "
            "null\n"
            "    --lock FILE       a kernels.lock: names at the commits that it has\n"
            "    -v                every decision, not only what is wrong\n" CLI_HUB_HELP
            "\nexit status: 4 when something is wrong, 5 when a kernel that is named isn't in the cache\n",
    .run = run,
};
