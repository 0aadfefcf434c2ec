/* khub call: calls one function of a kernel with arguments from the command line and from files. */
#include "device.h"
#include "hub.h"

#include <stdlib.h>

/* One call, from its words to its files. */
typedef struct call {
    const char *repository; /* "khub/norm" */
    const char *function;   /* "rms_norm", behind it in argv */
    const char *directory;  /* that files are written to; NULL: the current one */
    cli_argument *arguments;
    int count;
    khub_kernel *kernel;
    khub_value result;
    cli_device device;
    char **result_files; /* where the tensors of result_items were saved; NULL: that one wasn't */
} call;

/* What came back: the one value, or those of an array. */
static const khub_value *result_items(const call *c, size_t *count)
{
    *count = c->device.result_count;
    if (c->device.results) return c->device.results;
    *count = 1;
    return c->result.type == KHUB_TYPE_ARRAY ? khub_value_items(&c->result, count) : &c->result;
}

/* "REPO:FUNCTION", split in place at its last colon. */
static int parse_target(call *c, char *target)
{
    char *colon = strrchr(target, ':');
    if (!colon || colon == target || !colon[1])
        return cli_usage("call", "\"%s\" isn't REPO:FUNCTION; khub functions %s lists the functions", target,
                         target[0] && target[0] != ':' ? target : "REPO");
    *colon = 0;
    c->repository = target;
    c->function = colon + 1;
    return EXIT_DONE;
}

/* Whether two outputs, or an output and the result, would be one file. */
static int parse_names(const call *c)
{
    for (int i = 0; i < c->count; i++) {
        const char *name = c->arguments[i].name;
        if (name && c->directory && !strcmp(name, "result"))
            return cli_usage("call",
                             "%s: with -o, result.npy is what the function returns; take another name",
                             c->arguments[i].text);
        for (int k = 0; name && k < i; k++)
            if (c->arguments[k].name && !strcmp(name, c->arguments[k].name))
                return cli_usage("call", "%s and %s would both be written to %s.npy", c->arguments[k].text,
                                 c->arguments[i].text, name);
    }
    return EXIT_DONE;
}

static int parse(call *c, int argc, char **argv)
{
    if (argc < 1) return cli_usage("call", "which function?");
    int status = parse_target(c, argv[1]);
    if (status != EXIT_DONE) return status;
    c->arguments = calloc((size_t)argc, sizeof(*c->arguments)); /* one more than there are: never of size 0 */
    if (!c->arguments) return cli_fail_memory();
    for (; c->count < argc - 1 && status == EXIT_DONE; c->count++)
        status = cli_argument_parse(&c->arguments[c->count], "call", argv[2 + c->count]);
    return status == EXIT_DONE ? parse_names(c) : status;
}

/* Said before the work rather than after it. */
static int check_directory(const call *c)
{
    const char *wrong = c->directory ? cli_not_a_directory(c->directory) : NULL;
    if (!wrong) return EXIT_DONE;
    cli_print(stderr, "khub: -o %s: %s\n", c->directory, wrong);
    return EXIT_FAILED;
}

static int get(call *c, khub_get_options *options, cli_hub *hub, const cli_machine *machine, khub_error *err)
{
    khub_platform *platform = NULL;
    int rc = cli_machine_given(machine) ? cli_platform(&platform, machine, err) : KHUB_OK;
    options->platform = platform;
    if (rc == KHUB_OK) rc = cli_get(&c->kernel, c->repository, options, hub, err);
    if (rc == KHUB_OK) rc = khub_gpu_open_for(&c->device.gpu, c->kernel, machine->backend, platform, err);
    khub_platform_free(platform);
    return rc;
}

static int call_on_device(call *c, const char *what, const khub_function *f, khub_value *values,
                          khub_error *err)
{
    size_t count;
    int rc = cli_device_put(&c->device, c->arguments, c->count, values, err);
    if (rc == KHUB_OK) rc = khub_gpu_call(c->device.gpu, what, f, values, c->count, &c->result, err);
    if (rc != KHUB_OK) return rc;
    const khub_value *items = result_items(c, &count);
    return cli_device_take(&c->device, c->arguments, items, count, err);
}

static int call_function(call *c, khub_error *err)
{
    khub_function f;
    khub_value *values = NULL;
    int rc = khub_kernel_function(&f, c->kernel, c->function, err);
    for (int i = 0; i < c->count && rc == KHUB_OK; i++)
        rc = cli_argument_fill(&c->arguments[i], err);
    if (rc != KHUB_OK) return rc;
    values = calloc((size_t)c->count + 1, sizeof(*values));
    if (!values) return KHUB_E_NOMEM;
    for (int i = 0; i < c->count; i++)
        values[i] = c->arguments[i].value;
    char object[4000];
    snprintf(object, sizeof(object), "%s:%s", c->repository, c->function);
    cli_at_work("call", object);
    cli_kernels_begin();
    rc = c->device.gpu ? call_on_device(c, object, &f, values, err)
                       : khub_function_call(&f, values, c->count, &c->result, err);
    cli_kernels_end();
    cli_at_work(NULL, NULL);
    free(values);
    return rc;
}

/* "DIR/NAME.npy" */
static char *file_for(const call *c, const char *name)
{
    const char *dir = c->directory ? c->directory : "";
    size_t size = strlen(dir) + strlen(name) + sizeof("/.npy");
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s%s%s.npy", dir, *dir && dir[strlen(dir) - 1] != '/' ? "/" : "", name);
    return path;
}

/* What is to be written; room for every argument and the result. */
typedef struct files {
    const char **paths;
    const khub_tensor **tensors;
    size_t count;
} files;

/* *path becomes the caller's to free. */
static int add_file(files *f, const call *c, const char *name, const khub_tensor *tensor, char **path)
{
    *path = file_for(c, name);
    f->paths[f->count] = *path;
    f->tensors[f->count++] = tensor;
    return *path ? KHUB_OK : KHUB_E_NOMEM;
}

/* "result", or "result.0", "result.1", …, which no output can be called. */
static int add_result(files *f, call *c, size_t i, const khub_value *item)
{
    char name[32] = "result";
    const khub_tensor *tensor = khub_value_tensor(item);
    if (!tensor) return KHUB_OK;
    if (c->result.type == KHUB_TYPE_ARRAY) snprintf(name, sizeof(name), "result.%zu", i);
    return add_file(f, c, name, tensor, &c->result_files[i]);
}

static int add_files(files *f, call *c, const khub_value *items, size_t count)
{
    int rc = KHUB_OK;
    for (int i = 0; i < c->count && rc == KHUB_OK; i++) {
        cli_argument *a = &c->arguments[i];
        if (a->name) rc = add_file(f, c, a->name, &a->array.tensor, &a->saved);
    }
    for (size_t i = 0; c->directory && i < count && rc == KHUB_OK; i++)
        rc = add_result(f, c, i, &items[i]);
    return rc;
}

/* All of them or none. */
static int save_all(call *c, khub_error *err)
{
    size_t count;
    const khub_value *items = result_items(c, &count);
    size_t most = (size_t)c->count + count + 1;
    files f = {calloc(most, sizeof(*f.paths)), calloc(most, sizeof(*f.tensors)), 0};
    c->result_files = calloc(count + 1, sizeof(*c->result_files));
    int rc = f.paths && f.tensors && c->result_files ? add_files(&f, c, items, count) : KHUB_E_NOMEM;
    if (rc == KHUB_OK) rc = khub_npy_write_all(f.paths, f.tensors, f.count, err);
    free(f.paths);
    free(f.tensors);
    return rc;
}

static void print_text(const call *c)
{
    for (int i = 0; i < c->count; i++) {
        const cli_argument *a = &c->arguments[i];
        if (!a->name) continue;
        cli_print(stdout, "%s: ", a->saved);
        cli_show_tensor(stdout, &a->array.tensor);
        putchar('\n');
    }
    size_t count;
    const khub_value *items = result_items(c, &count);
    for (size_t i = 0; i < count; i++) {
        if (c->result.type == KHUB_TYPE_ARRAY && items[i].type == KHUB_TYPE_NONE) puts("none");
        cli_show_value(stdout, &items[i], c->result_files[i]);
    }
}

static void print_result_json(const call *c)
{
    size_t count;
    const khub_value *items = result_items(c, &count);
    int is_array = c->result.type == KHUB_TYPE_ARRAY;
    if (is_array) putchar('[');
    for (size_t i = 0; i < count; i++) {
        if (i) fputs(", ", stdout);
        cli_show_value_json(stdout, &items[i], c->result_files[i]);
    }
    if (is_array) putchar(']');
}

static void print_json(const call *c)
{
    const struct {
        const char *key, *text;
    } head[] = {{"{\"kernel\": ", c->repository},
                {", \"variant\": ", khub_kernel_variant(c->kernel)},
                {", \"function\": ", c->function}};
    for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++) {
        fputs(head[i].key, stdout);
        cli_json_text(stdout, head[i].text);
    }
    fputs(", \"result\": ", stdout);
    print_result_json(c);
    fputs(", \"outputs\": {", stdout);
    for (int i = 0, n = 0; i < c->count; i++) {
        const cli_argument *a = &c->arguments[i];
        if (!a->name) continue;
        printf("%s\"%s\": ", n++ ? ", " : "", a->name);
        cli_show_tensor_json(stdout, &a->array.tensor, a->saved);
    }
    fputs("}}\n", stdout);
}

static void free_call(call *c)
{
    size_t count;
    result_items(c, &count);
    for (size_t i = 0; c->result_files && i < count; i++)
        free(c->result_files[i]);
    free(c->result_files);
    khub_value_release(&c->result);
    cli_device_free(&c->device);
    khub_kernel_close(c->kernel);
    for (int i = 0; i < c->count; i++)
        cli_argument_free(&c->arguments[i]);
    free(c->arguments);
}

static int run(int argc, char **argv)
{
    int json = 0;
    cli_machine machine = {0};
    call c = {0};
    khub_error err = {0};
    khub_get_options how;
    cli_hub hub;
    KHUB_INIT(&how);
    cli_hub_init(&hub);
    const cli_option options[] = {{"--json", CLI_FLAG, &json},     {"-o", CLI_TEXT, &c.directory},
                                  CLI_MACHINE_OPTIONS(machine),    {"--variant", CLI_TEXT, &how.variant},
                                  {"--lock", CLI_TEXT, &how.lock}, CLI_HUB_OPTIONS(hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    int status = n < 0 ? EXIT_USAGE : parse(&c, n, argv);
    if (status == EXIT_DONE) status = check_directory(&c);
    if (status == EXIT_DONE) {
        int rc = get(&c, &how, &hub, &machine, &err);
        if (rc == KHUB_OK) rc = call_function(&c, &err);
        if (rc == KHUB_OK) rc = save_all(&c, &err);
        if (rc != KHUB_OK) {
            err.code = rc;
            status = cli_fail(&err);
        } else if (json) {
            print_json(&c);
        } else {
            print_text(&c);
        }
    }
    cli_kernels_begin(); /* a result may be the kernel's to free */
    free_call(&c);
    cli_kernels_end();
    return status;
}

const cli_command cli_call = {
    .name = "call",
    .summary = "calls one function of a kernel",
    .help = "khub call REPO:FUNCTION ARG...: calls one function of a kernel\n\n"
            "    khub call khub/activation:gelu out=float32[3] '[-1, 0, 1]'\n\n"
            "The arguments, in the function's order (khub functions REPO shows it):\n"
            "    3  -1                  an integer\n"
            "    2.5  1e-3  inf  nan    a float\n"
            "    true  false  none\n"
            "    '[[1, 2], [3, 4]]'     a float32 array of these numbers\n"
            "    x.npy                  the array in that file, as numpy.save writes it\n"
            "    out=float32[64,384]    an output: a tensor of zeros, written to out.npy after the call\n"
            "    x=start.npy            the same, but it starts as the array in that file\n"
            "    str:TEXT               text, as is anything that is none of the above\n\n"
            "What the function returns is printed. When it fails, nothing is written. A build for CUDA or\n"
            "ROCm is called on the first GPU, or on that of --device cuda:1.\n\n"
            "    -o DIR            write there, and a tensor that the function returns as result.npy\n"
            "                      (several: result.0.npy, result.1.npy, ...)\n"
            "    --json            {\"kernel\", \"variant\", \"function\", \"result\", \"outputs\": {NAME: "
            "{\"dtype\", "
            "\"shape\", \"file\"}}}\n"
            "    --variant NAME    that build and no other\n"
            "    --lock FILE       at the commit that a kernels.lock has\n" CLI_MACHINE_HELP CLI_HUB_HELP,
    .run = run,
    .contained = 1,
};
