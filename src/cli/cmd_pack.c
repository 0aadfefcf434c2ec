/* khub pack: makes a build of a kernel repository, to be published, from a directory with a library. */
#include "cli.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

typedef struct pack_job {
    const char *directory, *repository, *version_text;
    int64_t version;
    cli_list archs;
    khub_pack_options options;
    int json;
} pack_job;

static json_t *read_metadata(const char *build)
{
    size_t size = strlen(build) + sizeof("/metadata.json");
    char *path = malloc(size);
    if (!path) return NULL;
    snprintf(path, size, "%s/metadata.json", build);
    json_t *metadata = json_load_file(path, 0, NULL);
    free(path);
    return metadata;
}

static int print_json(const char *build, const json_t *metadata)
{
    json_t *out = json_pack("{s:s, s:s, s:O}", "build", build, "variant", strrchr(build, '/') + 1, "metadata",
                            metadata);
    char *text = out ? json_dumps(out, JSON_INDENT(2)) : NULL;
    if (text) printf("%s\n", text);
    json_decref(out);
    if (!text) return cli_fail_memory();
    free(text);
    return EXIT_DONE;
}

/* The build's directory on stdout, its files for people on stderr. */
static void print_words(const char *build, const json_t *metadata)
{
    const json_t *digest = json_object_get(metadata, "digest"), *files = json_object_get(digest, "files");
    const char *key;
    json_t *value;
    cli_note("%s: %zu files with a %s digest:", json_string_value(json_object_get(metadata, "id")),
             json_object_size(files), json_string_value(json_object_get(digest, "algorithm")));
    json_object_foreach ((json_t *)(uintptr_t)files, key, value)
        cli_note("    %s", key);
    cli_print(stdout, "%s\n", build);
}

static int pack(const pack_job *job)
{
    khub_error err = {0};
    char *build;
    if (khub_pack(&build, job->directory, job->repository, &job->options, &err) != KHUB_OK)
        return cli_fail(&err);
    json_t *metadata = read_metadata(build);
    int status = EXIT_DONE;
    if (!metadata)
        status = cli_fail_memory();
    else if (job->json)
        status = print_json(build, metadata);
    else
        print_words(build, metadata);
    json_decref(metadata);
    khub_free(build);
    return status;
}

static int take_version(pack_job *job)
{
    char *end;
    if (!job->version_text) return EXIT_DONE;
    errno = 0;
    long long version = strtoll(job->version_text, &end, 10);
    if (*job->version_text < '0' || *job->version_text > '9' || *end || errno)
        return cli_usage("pack", "--version is \"%s\"; versions are numbers from 0 on", job->version_text);
    job->version = version;
    job->options.version = &job->version;
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    pack_job job = {0};
    KHUB_INIT(&job.options);
    const cli_option options[] = {{"-o", CLI_TEXT, &job.repository},
                                  {"--variant", CLI_TEXT, &job.options.variant},
                                  {"--name", CLI_TEXT, &job.options.name},
                                  {"--version", CLI_TEXT, &job.version_text},
                                  {"--license", CLI_TEXT, &job.options.license},
                                  {"--upstream", CLI_TEXT, &job.options.upstream},
                                  {"--source", CLI_TEXT, &job.options.source},
                                  {"--id", CLI_TEXT, &job.options.id},
                                  {"--arch", CLI_LIST, &job.archs},
                                  {"--library", CLI_TEXT, &job.options.library},
                                  {"--algorithm", CLI_TEXT, &job.options.algorithm},
                                  {"--replace", CLI_FLAG, &job.options.replace},
                                  {"--json", CLI_FLAG, &job.json}};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n != 1 || !job.repository) return cli_usage("pack", "it takes a directory and -o REPO");
    job.directory = argv[1];
    if (job.archs.count) job.options.archs = job.archs.items;
    int status = take_version(&job);
    return status == EXIT_DONE ? pack(&job) : status;
}

const cli_command cli_pack = {
    .name = "pack",
    .summary = "makes a build of a kernel repository from a library",
    .help =
        "khub pack DIR -o REPO: makes REPO/build/VARIANT from the files in DIR, and prints where\n\n"
        "    khub pack out -o my-relu --name my-relu --version 1 --license Apache-2.0\n"
        "    khub pack out -o my-relu --variant tvm-ffi01-cu128-x86_64-linux --arch 9.0 --arch 10.0\n\n"
        "DIR holds the library, and what belongs to it: layers.json, the Python face, a metadata.json with "
        "what "
        "isn't said here.\n"
        "metadata.json gets a digest over all files of the build. Nothing is loaded. docs/publishing.md has "
        "the "
        "rest.\n\n"
        "    -o REPO           the kernel repository, a directory; made if it isn't there\n"
        "    --variant NAME    the build's name; else that of a tvm-ffi kernel on the CPU for this machine\n"
        "    --name NAME, --version N, --license TEXT, --upstream URL, --source URL, --id ID\n"
        "                      what metadata.json says; else as the one in DIR has it\n"
        "    --arch ARCH       a GPU architecture in the library (\"9.0\", \"gfx942\"); again for more\n"
        "    --library FILE    the kernel, if there are several *.so in DIR\n"
        "    --algorithm NAME  of the digest: sha256 or sha512\n"
        "    --replace         puts it in the place of a build that is there\n"
        "    --json            {\"build\", \"variant\", \"metadata\"}\n",
    .run = run,
};
