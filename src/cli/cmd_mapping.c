/* khub mapping: which kernel serves which layer, as a mapping says it. */
#include "cli.h"

#include <stdlib.h>

static const char help[] =
    "khub mapping [WHAT]: which kernel serves which layer, on which device, in which mode\n\n"
    "    khub mapping\n"
    "    khub mapping my.json --device cuda:89 --mode training\n"
    "    khub mapping 'GeLU=org/repo@v1:GeLU,LayerNorm='\n\n"
    "WHAT is what khub embed takes after --kernels=: parts between commas, each laid over those before it.\n"
    "LAYER=NAME is one entry (nothing after = leaves the layer standard), \"default\" the default mapping, "
    "any\n"
    "other part a file; what begins with an entry goes over the default mapping. Without WHAT: the default "
    "mapping.\n"
    "docs/layers.md tells what stands in a file.\n\n"
    "    --device DEVICE   only what applies there: cpu (which it is with --mode alone), cuda, rocm, mps, "
    "xpu, npu, neuron, tpu; cuda:89 with a\n"
    "                      capability. What is tried after another is marked with \"then\"\n"
    "    --mode MODE       only what applies there: inference (which it is without this), training, or one "
    "of\n"
    "                      them with |compile\n"
    "    --json            the mapping as a file would have it; with --device or --mode a list of\n"
    "                      {\"key\", \"rank\", \"device\", \"mode\", \"kernel\", \"layer\", \"function\", "
    "\"fault\", \"from\"}\n"
    "\nexit status: 0; 1 when an entry has a fault, which is told in its place\n";

typedef struct question {
    const char *what, *device;
    int mode, json, asked; /* asked: only what applies */
} question;

static const char *device_of(const khub_mapping_line *line)
{
    return line->device ? line->device : "";
}

static void at_least(int *width, size_t length)
{
    if (*width < (int)length) *width = (int)length;
}

/* What a line of the table says of the kernel. */
static void print_kernel(const khub_mapping_line *line)
{
    const struct {
        const char *before, *name;
    } parts[] = {{"fault: ", line->fault},
                 {"", line->fault     ? NULL
                      : *line->kernel ? line->kernel
                                      : "standard"},
                 {":", line->fault ? NULL : line->layer},
                 {", function ", line->fault ? NULL : line->function}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        if (!parts[i].name) continue;
        fputs(parts[i].before, stdout);
        cli_name(stdout, parts[i].name); /* one line, whatever is in it */
    }
    fputc('\n', stdout);
}

/* The rank of an entry where something is asked, 0 where nothing is; -1: it isn't shown. */
static int rank_of(const khub_mapping *mapping, size_t i, const question *q)
{
    int rank = 0;
    khub_error ignored = {0};
    if (q->asked && khub_mapping_rank(&rank, mapping, i, q->device, q->mode, &ignored) != KHUB_OK) return -1;
    return rank;
}

static void print_table(const khub_mapping *mapping, const question *q)
{
    int widths[3] = {0};
    const khub_mapping_line *line;
    for (size_t i = 0; (line = khub_mapping_at(mapping, i)); i++) {
        if (rank_of(mapping, i, q) < 0) continue;
        at_least(&widths[0], strlen(line->key));
        at_least(&widths[1], strlen(device_of(line)));
        if (line->mode && line->mode != KHUB_MODE_FALLBACK)
            at_least(&widths[2], strlen(khub_mode_name(line->mode)));
    }
    for (size_t i = 0; (line = khub_mapping_at(mapping, i)); i++) {
        int rank = rank_of(mapping, i, q);
        if (rank < 0) continue;
        cli_name(stdout, line->key);
        printf("%*s  %-*s", widths[0] - (int)strlen(line->key), "", widths[1], device_of(line));
        if (widths[1]) fputs("  ", stdout);
        if (widths[2])
            printf("%-*s  ", widths[2],
                   line->mode && line->mode != KHUB_MODE_FALLBACK ? khub_mode_name(line->mode) : "");
        if (rank) fputs("then ", stdout);
        print_kernel(line);
    }
}

static void print_field(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    cli_json_text(stdout, text);
}

static void print_line_json(const khub_mapping_line *line, int rank)
{
    fputs("{\"key\": ", stdout);
    cli_json_text(stdout, line->key);
    printf(", \"rank\": %d", rank);
    print_field("device", line->device);
    print_field("mode", line->mode ? khub_mode_name(line->mode) : NULL);
    print_field("kernel", line->kernel);
    print_field("layer", line->layer);
    print_field("function", line->function);
    print_field("fault", line->fault);
    print_field("from", line->from);
    fputc('}', stdout);
}

static int print_json(const khub_mapping *mapping, const question *q)
{
    const khub_mapping_line *line;
    if (!q->asked) {
        char *text = khub_mapping_json(mapping);
        if (!text) return cli_fail_memory();
        fputs(text, stdout);
        khub_free(text);
        return EXIT_DONE;
    }
    const char *before = "[";
    for (size_t i = 0; (line = khub_mapping_at(mapping, i)); i++) {
        int rank = rank_of(mapping, i, q);
        if (rank < 0) continue;
        fputs(before, stdout);
        print_line_json(line, rank);
        before = ",\n ";
    }
    puts(*before == ',' ? "]" : "[]");
    return EXIT_DONE;
}

static int show(const khub_mapping *mapping, const question *q)
{
    int status = EXIT_DONE;
    if (q->json)
        status = print_json(mapping, q);
    else
        print_table(mapping, q);
    const khub_mapping_line *line;
    for (size_t i = 0; (line = khub_mapping_at(mapping, i)); i++)
        if (line->fault && status == EXIT_DONE) status = EXIT_FAILED;
    return status;
}

/* A wrong device or mode is found before anything is printed. */
static int check_question(question *q, const char *mode, khub_error *err)
{
    const khub_mapping_line *line[KHUB_MAPPING_CANDIDATES];
    size_t count;
    khub_mapping *none;
    q->asked = q->device || mode;
    q->mode = KHUB_MODE_INFERENCE;
    if (!q->device) q->device = "cpu";
    int rc = mode ? khub_mode_parse(&q->mode, mode, err) : KHUB_OK;
    if (rc == KHUB_OK) rc = khub_mapping_new(&none, err);
    if (rc != KHUB_OK) return rc;
    rc = khub_mapping_find(line, &count, none, "", "", q->device, q->mode, err);
    khub_mapping_free(none);
    if (rc == KHUB_E_NOTFOUND) khub_error_clear(err);
    return rc == KHUB_E_NOTFOUND ? KHUB_OK : rc;
}

static int run(int argc, char **argv)
{
    question q = {0};
    const char *mode = NULL;
    const cli_option options[] = {
        {"--device", CLI_TEXT, &q.device}, {"--mode", CLI_TEXT, &mode}, {"--json", CLI_FLAG, &q.json}};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n > 1) return cli_usage("mapping", "one mapping at a time; parts of one stand between commas");
    khub_error err = {0};
    khub_mapping *mapping = NULL;
    khub_set_log(NULL, NULL); /* what it would warn of stands in the table */
    int rc = check_question(&q, mode, &err);
    if (rc == KHUB_OK) rc = khub_mapping_items(&mapping, n ? argv[1] : "default", &err);
    int status = rc == KHUB_OK ? show(mapping, &q) : cli_fail(&err);
    khub_mapping_free(mapping);
    return status;
}

const cli_command cli_mapping = {
    .name = "mapping",
    .summary = "which kernel serves which layer",
    .help = help,
    .run = run,
};
