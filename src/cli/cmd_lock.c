/* khub lock: writes kernels.lock, the commits of kernels and of all that they need. */
#include "hub.h"

#include <stdlib.h>

typedef struct lock_job {
    cli_hub hub;
    const char *out;
    int keep, check, json;
    const char *file;           /* the lock that is there, or is to be */
    khub_locked_kernel *before; /* what it had */
    size_t before_count;
    char **project; /* names of the pyproject.toml beside it */
} lock_job;

/* A lock that isn't there has nothing. */
static int read_before(lock_job *job, khub_error *err)
{
    khub_error why = {0};
    int rc = khub_lock_read(&job->before, &job->before_count, job->file, &why);
    if (rc == KHUB_OK || rc == KHUB_E_NOTFOUND) return KHUB_OK;
    *err = why;
    return rc;
}

/* The pyproject.toml in the lock's directory. */
static int read_project(lock_job *job, khub_error *err)
{
    static const char file[] = "pyproject.toml";
    const char *slash = strrchr(job->file, '/');
    size_t folder = slash ? (size_t)(slash - job->file) + 1 : 0;
    char *path = malloc(folder + sizeof(file));
    khub_error why = {0};
    if (!path) return cli_no_memory(err);
    memcpy(path, job->file, folder);
    memcpy(path + folder, file, sizeof(file));
    int rc = khub_lock_project(&job->project, path, &why);
    free(path);
    if (rc == KHUB_OK || rc == KHUB_E_NOTFOUND) return KHUB_OK;
    *err = why;
    return rc;
}

static const char *find_before(const lock_job *job, const char *name)
{
    for (size_t i = 0; i < job->before_count; i++)
        if (!strcmp(job->before[i].name, name)) return job->before[i].commit;
    return NULL;
}

static int is_in(const khub_locked_kernel *kernels, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(kernels[i].name, name)) return 1;
    return 0;
}

static void print_text(const lock_job *job, const khub_locked_kernel *kernels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *was = find_before(job, kernels[i].name);
        cli_name(stdout, kernels[i].name);
        printf(" %s", kernels[i].commit);
        if (was && strcmp(was, kernels[i].commit) != 0) printf(" (was %s)", was);
        puts(!was && job->before_count ? " (new)" : "");
    }
    for (size_t i = 0; i < job->before_count; i++)
        if (!is_in(kernels, count, job->before[i].name)) {
            cli_name(stdout, job->before[i].name);
            printf(" %s (gone)\n", job->before[i].commit);
        }
}

static void print_json(const lock_job *job, const khub_locked_kernel *kernels, size_t count, int current)
{
    fputs("{\"lock\": ", stdout);
    cli_json_text(stdout, job->file);
    printf(", \"current\": %s, \"kernels\": [", current ? "true" : "false");
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ",\n {\"name\": " : "{\"name\": ", stdout);
        cli_json_text(stdout, kernels[i].name);
        printf(", \"commit\": \"%s\", \"before\": ", kernels[i].commit);
        cli_json_text(stdout, find_before(job, kernels[i].name));
        fputs("}", stdout);
    }
    fputs("], \"gone\": [", stdout);
    const char *comma = "";
    for (size_t i = 0; i < job->before_count; i++) {
        if (is_in(kernels, count, job->before[i].name)) continue;
        fputs(comma, stdout);
        cli_json_text(stdout, job->before[i].name);
        comma = ", ";
    }
    fputs("]}\n", stdout);
}

/* 1: the file holds exactly the text. */
static int holds(const char *path, const char *text)
{
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    size_t length = strlen(text), n = 0;
    int c;
    while ((c = getc(file)) != EOF && n < length && c == (unsigned char)text[n])
        n++;
    fclose(file);
    return c == EOF && n == length;
}

static int report(const lock_job *job, const khub_locked_kernel *kernels, size_t count, int current)
{
    if (job->json)
        print_json(job, kernels, count, current);
    else
        print_text(job, kernels, count);
    if (!job->check || current) return EXIT_DONE;
    cli_print(stderr, "khub: %s: isn't what khub lock would write now\n", job->file);
    return EXIT_FAILED;
}

/* Writes what is locked, or says whether it is there. */
static int finish(const lock_job *job, const khub_locked_kernel *kernels, size_t count)
{
    khub_error err = {0};
    char *text = NULL;
    if (khub_lock_text(&text, kernels, count, &err) != KHUB_OK) return cli_fail(&err);
    int status = EXIT_DONE;
    if (job->out && !strcmp(job->out, "-")) {
        fputs(text, stdout);
    } else {
        int current = holds(job->file, text);
        if (!current && !job->check && khub_lock_write(job->file, kernels, count, &err) != KHUB_OK)
            status = cli_fail(&err);
        else
            status = report(job, kernels, count, current);
    }
    khub_free(text);
    return status;
}

static int lock(lock_job *job, const char *const *names)
{
    khub_error err = {0};
    khub_locked_kernel *kernels = NULL;
    size_t count = 0;
    khub_lock_options options;
    KHUB_INIT(&options);
    options.hub = &job->hub.options;
    if (job->keep && job->before_count) options.lock = job->file;
    if (cli_hub_begin(&job->hub, &err) != KHUB_OK) return cli_fail(&err);
    int rc = khub_lock(&kernels, &count, names, &options, &err);
    cli_hub_end();
    int status = rc == KHUB_OK ? finish(job, kernels, count) : cli_fail(&err);
    khub_free(kernels);
    return status;
}

/* Of the command line, else of the project, else of the lock itself. */
static int choose_names(lock_job *job, char **given, int n)
{
    const char **names = calloc((size_t)n + job->before_count + 1, sizeof(*names));
    if (!names) return cli_fail_memory();
    size_t count = 0;
    for (int i = 0; i < n; i++)
        names[count++] = given[i];
    int use_project = !n && job->project && job->project[0];
    for (size_t i = 0; !n && !use_project && i < job->before_count; i++)
        names[count++] = job->before[i].name;
    int status;
    if (use_project)
        status = lock(job, (const char *const *)job->project);
    else if (count)
        status = lock(job, names);
    else
        status = cli_usage(
            "lock", "which kernels? None is named, and there are none in %s nor a pyproject.toml", job->file);
    free(names);
    return status;
}

static int run(int argc, char **argv)
{
    lock_job job = {0};
    khub_error err = {0};
    cli_hub_init(&job.hub);
    const cli_option options[] = {{"-o", CLI_TEXT, &job.out},
                                  {"--keep", CLI_FLAG, &job.keep},
                                  {"--check", CLI_FLAG, &job.check},
                                  {"--json", CLI_FLAG, &job.json},
                                  CLI_HUB_OPTIONS(job.hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    int to_stdout = job.out && !strcmp(job.out, "-");
    if (to_stdout && (job.json || job.check))
        return cli_usage("lock", "-o - writes the lock to the standard output; --json and --check say "
                                 "something about a file");
    job.file = job.out && !to_stdout ? job.out : "kernels.lock";
    int rc = read_before(&job, &err);
    if (rc == KHUB_OK && !n) rc = read_project(&job, &err);
    int status = rc == KHUB_OK ? choose_names(&job, argv + 1, n) : cli_fail(&err);
    khub_free(job.before);
    khub_free(job.project);
    return status;
}

const cli_command cli_lock = {
    .name = "lock",
    .summary = "writes kernels.lock: the commits of kernels and of all that they need",
    .help =
        "khub lock [KERNEL...]: finds the commits at which kernels are now, and all that any of their builds "
        "needs, and\n"
        "writes them to kernels.lock, as the Python package does\n\n"
        "    khub lock kernels-community/activation@v1 kernels-community/rotary@v2\n"
        "    khub lock                             those of the lock, or of the pyproject.toml beside it, "
        "once more\n"
        "    khub lock --check                     says whether that would change it (exit status 1)\n"
        "    khub download --lock kernels.lock     what it has; then: khub get KERNEL --lock kernels.lock\n\n"
        "KERNEL is ORG/NAME@REV; of a range (\">=1,<3\") the highest version is locked. The lock has the "
        "kernels that are\n"
        "named and what they need, and nothing else. A pyproject.toml names them under "
        "[tool.kernels.dependencies]\n"
        "(\"org/name\" = 1). Where versions stand is asked for, whatever the cache says.\n\n"
        "    -o FILE           instead of kernels.lock; - is the standard output\n"
        "    --keep            what the lock has stays at its commit; only what is new is looked for\n"
        "    --check           writes nothing; exit status 1 when the lock would change\n"
        "    --json            {\"lock\", \"current\", \"kernels\": [{\"name\", \"commit\", \"before\"}], "
        "\"gone\"}\n" CLI_HUB_HELP,
    .run = run,
};
