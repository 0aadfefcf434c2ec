/* khub download: fills the cache, for later or for another machine. Nothing is loaded. */
#include "hub.h"

#include <stdlib.h>

typedef struct download {
    cli_hub hub;
    cli_list include;
    cli_machine machine;
    const char *lock;
    khub_platform *platform;
    int all, model, json;
} download;

static void print_place(const download *job, const char *name, const char *path)
{
    if (!job->json) {
        printf("%s\n", path);
        return;
    }
    fputs("{\"name\": ", stdout);
    cli_json_text(stdout, name);
    fputs(", \"path\": ", stdout);
    cli_json_text(stdout, path);
    fputs("}\n", stdout);
}

/* The build that fits, with the kernels that it needs. */
static int fetch_build(download *job, const char *name, khub_error *err)
{
    char *build = NULL;
    khub_get_options get;
    KHUB_INIT(&get);
    get.platform = job->platform;
    get.lock = job->lock;
    get.hub = &job->hub.options;
    int rc = cli_hub_begin(&job->hub, err);
    if (rc != KHUB_OK) return rc;
    rc = khub_prefetch(&build, name, &get, err);
    cli_hub_end();
    if (rc == KHUB_OK) print_place(job, name, build);
    khub_free(build);
    return rc;
}

static int fetch_files(download *job, const char *name, khub_error *err)
{
    static const char *const builds[] = {"build/*", NULL};
    khub_download_options files;
    khub_snapshot *snapshot;
    KHUB_INIT(&files);
    files.model = job->model;
    files.lock = job->lock;
    if (job->include.count)
        files.patterns = job->include.items;
    else if (!job->model)
        files.patterns = builds;
    int rc = cli_download(&snapshot, name, &files, &job->hub, err);
    if (rc == KHUB_OK) print_place(job, name, khub_snapshot_path(snapshot));
    khub_snapshot_free(snapshot);
    return rc;
}

static int fetch(download *job, const char *name, khub_error *err)
{
    int whole = job->all || job->model || job->include.count;
    return whole ? fetch_files(job, name, err) : fetch_build(job, name, err);
}

/* One entry of a lock that has no build for this machine, and why. */
typedef struct unfit {
    size_t entry;
    khub_error err;
} unfit;

/* The kernels of a lock, and those of them that don't fit. */
typedef struct locked {
    khub_locked_kernel *kernels;
    size_t count, unfit_count;
    unfit *unfit;
    const char **fitting; /* NULL-terminated */
} locked;

static int is_in(const khub_locked_kernel *kernels, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(kernels[i].name, name)) return 1;
    return 0;
}

/* A lock has what the builds for all machines need: a kernel without a build for this one is in order when
 * only others need it. */
static int judge_unfit(download *job, const locked *lock)
{
    khub_error err = {0};
    khub_locked_kernel *needed = NULL;
    size_t count = 0;
    khub_lock_options options;
    KHUB_INIT(&options);
    options.hub = &job->hub.options;
    options.lock = job->lock;
    if (cli_hub_begin(&job->hub, &err) != KHUB_OK) return cli_fail(&err);
    int rc = khub_lock(&needed, &count, lock->fitting, &options, &err);
    cli_hub_end();
    int status = rc == KHUB_OK ? EXIT_DONE : cli_fail(&err);
    for (size_t i = 0; i < lock->unfit_count && status == EXIT_DONE; i++) {
        const char *name = lock->kernels[lock->unfit[i].entry].name;
        if (is_in(needed, count, name))
            cli_note("%s: has no build for this machine, and no kernel here needs it: only builds for other "
                     "machines do",
                     name);
        else
            status = cli_fail(&lock->unfit[i].err);
    }
    khub_free(needed);
    return status;
}

static int fetch_each(download *job, locked *lock)
{
    int status = EXIT_DONE;
    size_t fitting = 0;
    for (size_t i = 0; i < lock->count && status == EXIT_DONE; i++) {
        khub_error err = {0};
        int rc = fetch(job, lock->kernels[i].name, &err);
        if (rc == KHUB_OK)
            lock->fitting[fitting++] = lock->kernels[i].name;
        else if (rc == KHUB_E_NOBUILD || rc == KHUB_E_NEEDS_PYTHON)
            lock->unfit[lock->unfit_count++] = (unfit){i, err};
        else
            status = cli_fail(&err);
    }
    return status == EXIT_DONE && lock->unfit_count ? judge_unfit(job, lock) : status;
}

/* Every entry, at its commit. */
static int fetch_locked(download *job)
{
    khub_error err = {0};
    locked lock = {0};
    if (khub_lock_read(&lock.kernels, &lock.count, job->lock, &err) != KHUB_OK) return cli_fail(&err);
    lock.unfit = calloc(lock.count + 1, sizeof(*lock.unfit));
    lock.fitting = calloc(lock.count + 1, sizeof(*lock.fitting));
    int status = lock.unfit && lock.fitting ? fetch_each(job, &lock) : cli_fail_memory();
    free(lock.unfit);
    free(lock.fitting);
    khub_free(lock.kernels);
    return status;
}

static int fetch_named(download *job, const char *name)
{
    khub_error err = {0};
    return fetch(job, name, &err) == KHUB_OK ? EXIT_DONE : cli_fail(&err);
}

static int check(const download *job, int names)
{
    if (!names == !job->lock) return cli_usage("download", "it takes names or --lock FILE");
    if (job->model && job->lock)
        return cli_usage("download", "a lock is of kernels; --model can't go with it");
    if ((job->all || job->model || job->include.count) && cli_machine_given(&job->machine))
        return cli_usage("download", "--platform, --backend and --torch choose a build; --all, --include and "
                                     "--model take all of them");
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    download job = {0};
    cli_hub_init(&job.hub);
    const cli_option options[] = {{"--json", CLI_FLAG, &job.json},   {"--lock", CLI_TEXT, &job.lock},
                                  {"--all", CLI_FLAG, &job.all},     {"--include", CLI_LIST, &job.include},
                                  {"--model", CLI_FLAG, &job.model}, CLI_MACHINE_OPTIONS(job.machine),
                                  CLI_HUB_OPTIONS(job.hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    int status = n < 0 ? EXIT_USAGE : check(&job, n);
    khub_error err = {0};
    if (status == EXIT_DONE && cli_machine_given(&job.machine) &&
        cli_platform(&job.platform, &job.machine, &err) != KHUB_OK)
        status = cli_fail(&err);
    if (status == EXIT_DONE && job.lock) status = fetch_locked(&job);
    for (int i = 1; i <= n && status == EXIT_DONE; i++)
        status = fetch_named(&job, argv[i]);
    khub_platform_free(job.platform);
    return status;
}

const cli_command cli_download_command = {
    .name = "download",
    .summary = "fills the cache, for later or for another machine",
    .help =
        "khub download REPO... | --lock FILE: fills the cache, for later or for another machine, and prints "
        "where\n\n"
        "    khub download kernels-community/activation@v1\n"
        "    khub download kernels-community/activation@v1 --platform h100\n"
        "    khub download --lock kernels.lock --all\n"
        "    khub download --model sentence-transformers/all-MiniLM-L6-v2\n\n"
        "Of a kernel, the build that fits is fetched, and the kernels that it needs. Nothing is loaded.\n\n"
        "    --json            a line for each: {\"name\", \"path\"}\n"
        "    --all             every build\n"
        "    --include GLOB    the files that it takes, whole paths (\"build/torch2*\"); again for more\n"
        "    --model           REPO is a model; without --include, all its files\n"
        "    --lock FILE       what a kernels.lock has, at its commits\n" CLI_MACHINE_HELP CLI_HUB_HELP,
    .run = run,
};
