/* khub bench: how fast a kernel is here. */
#include "arguments.h"
#include "bench.h"
#include "device.h"
#include "hub.h"
#include "model.h"
#include "svg.h"

#include <errno.h>
#include <stdlib.h>

typedef struct job {
    /* the command line */
    cli_hub hub;
    cli_list shapes, dtypes;
    const char *layer, *svg, *time, *device;
    long threads;
    int json, cold, no_standard;
    char *kernel, *name; /* "khub/norm", what stands behind its ":"; NULL: nothing */
    cli_argument *arguments;
    int count;
    /* the work */
    khub_get_options get;
    khub_bench_options options;
    khub_bench *bench;
    cli_device on; /* of a function's arguments */
} job;

/* "KERNEL:NAME", split in place; a colon in a folder's name is none. */
static void split_target(job *j, char *target)
{
    char *colon = strrchr(target, ':');
    j->kernel = target;
    if (!colon || colon == target || strchr(colon, '/')) return;
    *colon = 0;
    j->name = colon + 1;
}

static int parse_time(job *j)
{
    char *end = NULL;
    j->options.seconds = j->time ? strtod(j->time, &end) : 0;
    if (!j->time || (end != j->time && !*end && j->options.seconds > 0 && j->options.seconds < 1e6))
        return EXIT_DONE;
    return cli_usage("bench", "--time takes seconds, as in 2.5, not \"%s\"", j->time);
}

static int parse_arguments(job *j, int argc, char **argv)
{
    j->arguments = calloc((size_t)argc, sizeof(*j->arguments));
    if (!j->arguments) return cli_fail_memory();
    int status = EXIT_DONE;
    for (; j->count < argc - 1 && status == EXIT_DONE; j->count++)
        status = cli_argument_parse(&j->arguments[j->count], "bench", argv[2 + j->count]);
    return status;
}

/* What goes together. */
static int check(const job *j)
{
    if (j->name && !*j->name)
        return cli_usage("bench", "%s: a layer or a function is expected behind \":\"", j->kernel);
    if (j->count && !j->name)
        return cli_usage("bench", "arguments are for a function: %s:FUNCTION", j->kernel);
    if (j->count &&
        (j->layer || j->shapes.count || j->dtypes.count || j->cold || j->threads || j->no_standard))
        return cli_usage("bench",
                         "a function that gets arguments takes none of --layer, --shape, --dtype, --threads, "
                         "--cold and --no-standard");
    if (j->layer && !j->name)
        return cli_usage("bench", "--layer %s: which function? %s:FUNCTION", j->layer, j->kernel);
    if (j->layer && !khub_layer_arg(j->layer, 0))
        return cli_usage("bench", "--layer %s: docs/layers.md has no such layer", j->layer);
    return EXIT_DONE;
}

static int parse(job *j, int argc, char **argv)
{
    if (argc < 1) return cli_usage("bench", "of which kernel?");
    split_target(j, argv[1]);
    int status = parse_time(j);
    if (status == EXIT_DONE) status = parse_arguments(j, argc, argv);
    return status == EXIT_DONE ? check(j) : status;
}

/* A line that says how far it is, where somebody waits for it. */
static int on_progress(void *user, size_t done, size_t count)
{
    (void)user;
    if (!cli_quiet() && cli_is_terminal(stderr))
        fprintf(stderr, "\r\033[Kkhub: measuring %zu of %zu\r", done + 1, count);
    return 0;
}

static void end_progress(void)
{
    if (!cli_quiet() && cli_is_terminal(stderr)) fputs("\r\033[K", stderr);
}

static int measure_function(job *j, khub_error *err)
{
    khub_kernel *kernel = NULL;
    khub_value *values = calloc((size_t)j->count + 1, sizeof(*values));
    int rc = values ? cli_get(&kernel, j->kernel, &j->get, &j->hub, err) : KHUB_E_NOMEM;
    if (rc == KHUB_OK) rc = khub_gpu_open_for(&j->on.gpu, kernel, j->device, NULL, err);
    for (int i = 0; i < j->count && rc == KHUB_OK; i++) {
        cli_argument *a = &j->arguments[i];
        rc = cli_argument_fill(a, err);
        if (rc == KHUB_OK && a->name && !a->file) rc = cli_model.khub_bench_fill(&a->array.tensor, err);
        values[i] = a->value;
    }
    j->options.gpu = j->on.gpu;
    cli_kernels_begin();
    if (rc == KHUB_OK && j->on.gpu) rc = cli_device_put(&j->on, j->arguments, j->count, values, err);
    if (rc == KHUB_OK)
        rc = cli_model.khub_bench_function(&j->bench, kernel, j->name, values, j->count, &j->options, err);
    cli_device_free(&j->on);
    cli_kernels_end();
    khub_kernel_close(kernel);
    free(values);
    return rc;
}

static int measure_layers(job *j, khub_error *err)
{
    int rc = j->device ? khub_gpu_open(&j->options.gpu, j->device, NULL, err) : KHUB_OK;
    if (rc == KHUB_OK)
        rc =
            cli_model.khub_bench_layer(&j->bench, j->kernel, j->layer ? j->layer : j->name, &j->options, err);
    khub_gpu_close(j->options.gpu);
    return rc;
}

static int measure(job *j, khub_error *err)
{
    j->options.shapes = j->shapes.count ? j->shapes.items : NULL;
    j->options.dtypes = j->dtypes.count ? j->dtypes.items : NULL;
    j->options.threads = (unsigned)j->threads;
    j->options.cold = j->cold;
    j->options.no_standard = j->no_standard;
    j->options.function = j->layer ? j->name : NULL;
    j->options.progress = on_progress;
    j->get.backend = j->device;
    if (j->count) return measure_function(j, err);
    int rc = cli_hub_begin(&j->hub, err);
    if (rc != KHUB_OK) return rc;
    j->get.hub = &j->hub.options;
    j->options.get = &j->get;
    rc = measure_layers(j, err);
    cli_hub_end();
    end_progress();
    return rc;
}

static int run(int argc, char **argv)
{
    job j = {0};
    khub_error err = {0};
    KHUB_INIT(&j.options);
    KHUB_INIT(&j.get);
    cli_hub_init(&j.hub);
    const cli_option options[] = {{"--json", CLI_FLAG, &j.json},
                                  {"--svg", CLI_TEXT, &j.svg},
                                  {"--shape", CLI_LIST, &j.shapes},
                                  {"--dtype", CLI_LIST, &j.dtypes},
                                  {"--layer", CLI_TEXT, &j.layer},
                                  {"--threads", CLI_NUMBER, &j.threads},
                                  {"--time", CLI_TEXT, &j.time},
                                  {"--cold", CLI_FLAG, &j.cold},
                                  {"--no-standard", CLI_FLAG, &j.no_standard},
                                  {"--standard", CLI_TEXT, &j.options.standard},
                                  {"--device", CLI_TEXT, &j.device},
                                  {"--variant", CLI_TEXT, &j.get.variant},
                                  {"--torch", CLI_TEXT, &j.get.torch},
                                  {"--no-torch", CLI_FLAG, &j.get.no_torch},
                                  CLI_HUB_OPTIONS(j.hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    int status = n < 0 ? EXIT_USAGE : parse(&j, n, argv);
    if (status == EXIT_DONE) {
        int rc = measure(&j, &err);
        err.code = rc;
        if (rc != KHUB_OK)
            status = cli_fail(&err);
        else
            (j.json ? cli_bench_json : cli_bench_table)(stdout, j.bench);
        if (rc == KHUB_OK && j.svg) status = cli_svg_write(j.svg, cli_bench_chart, j.bench);
    }
    cli_model.khub_bench_free(j.bench);
    for (int i = 0; i < j.count; i++)
        cli_argument_free(&j.arguments[i]);
    free(j.arguments);
    return status;
}

const cli_command cli_bench = {
    .name = "bench",
    .summary = "how fast a kernel is here, beside the standard implementation",
    .help =
        "khub bench KERNEL[:LAYER]: how fast a kernel's layers are here, beside the standard implementation\n"
        "khub bench KERNEL:FUNCTION ARG...: how fast one call is; arguments as in khub call\n\n"
        "    khub bench khub/norm:LayerNorm\n"
        "    khub bench khub/linear:Linear --shape m=252,n=1536,k=384 --dtype float32 --svg linear.svg\n"
        "    khub bench khub/linear:linear --layer Linear --cold\n"
        "    khub bench ./my-kernel:scale out=float32[1000] x=float32[1000] 2.0\n\n"
        "Both are called in turn, sample by sample, on one thread unless --threads says otherwise. GB/s "
        "count every\n"
        "tensor of a call once, GFLOP/s the operations of the layer's definition (docs/bench.md). Beside "
        "them\n"
        "stands what this machine can do, measured in the same run: copying as many bytes, and multiply-adds "
        "of\n"
        "float32.\n\n"
        "    --shape SHAPE     m=252,n=384,k=384; again for more. Left out: the layer's own list. What a "
        "layer may\n"
        "                      lack or switch is there with 0 or 1: bias=0, causal=1\n"
        "    --dtype DTYPE     float32, bfloat16; again for more. Left out: both\n"
        "    --threads N       as many threads; a call is cut along the axes that its function declares\n"
        "    --time SECONDS    for all cases together, at most, about: the last ones may not be measured. "
        "Left out: half\n"
        "                      a second for each, or as long as a few calls take\n"
        "    --cold            every call gets other tensors, as many as fill the caches twice, as the "
        "weights of a\n"
        "                      model do\n"
        "    --layer LAYER     takes the function for this layer, arguments in the layer's order\n"
        "    --no-standard     the kernel alone\n"
        "    --standard WHOSE  beside khub's plain implementation (khub) or PyTorch's operators (torch)\n"
        "    --json            {\"kernel\", \"variant\", \"isa\", \"machine\", \"cases\": [{\"layer\", "
        "\"shape\", \"bytes\", "
        "\"kernel\":\n"
        "                      {\"median\", \"best\", \"q1\", \"q3\", ...}, \"standard\", \"ratio\", ...}]}, "
        "in seconds and "
        "bytes\n"
        "    --svg FILE        a chart, too\n"
        "    --device cuda:N   builds for that GPU, called on it and timed by its own clock, without a "
        "standard\n"
        "                      implementation beside them\n"
        "    --variant NAME    that build and no other\n" CLI_TORCH_HELP CLI_HUB_HELP,
    .run = run,
    .contained = 1,
    .needs_model = 1,
};
