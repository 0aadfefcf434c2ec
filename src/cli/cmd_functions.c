/* khub functions: what the library of a kernel's build exports, and how each is called. */
#include "hub.h"

#include <jansson.h>
#include <stdlib.h>

/* `indent` follows every line's end. */
static void print_text(FILE *to, const char *text, const char *indent)
{
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n");
        cli_text(to, text, n);
        if (!text[n]) break;
        n++;
        fprintf(to, "\n%s", text[n] == '\n' || !text[n] ? "" : indent);
    }
}

/* tvm-ffi's names of types, and how they are said here. */
static const char *plain_type(const char *type)
{
    static const char *const table[][2] = {
        {"DLTensor*", "Tensor"},     {"ffi.String", "str"},  {"ffi.SmallStr", "str"},
        {"const char*", "str"},      {"std::string", "str"}, {"ffi.Bytes", "bytes"},
        {"ffi.SmallBytes", "bytes"}, {"DataType", "dtype"},  {"TVMFFIByteArray*", "bytes"},
        {"void*", "pointer"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(type, table[i][0])) return table[i][1];
    return strncmp(type, "ffi.", 4) == 0 ? type + 4 : type;
}

static void print_type(FILE *to, const json_t *schema);

static void print_types(FILE *to, const json_t *list, const char *between)
{
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item) {
        if (i) fputs(between, to);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name) {
            print_text(to, name, "");
            fputs(": ", to);
        }
        print_type(to, item);
    }
}

/* {"type": NAME, "args": [TYPE…]}: Tensor, float | None, Map[str, int] */
static void print_type(FILE *to, const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    const json_t *args = json_object_get(schema, "args");
    if (!type) {
        fputs("?", to);
    } else if (!strcmp(type, "Optional")) {
        print_types(to, args, " | ");
        fputs(" | None", to);
    } else if (!strcmp(type, "Variant") || !strcmp(type, "Union")) {
        print_types(to, args, " | ");
    } else {
        print_text(to, plain_type(type), "");
        if (!json_array_size(args)) return;
        fputc('[', to);
        print_types(to, args, ", ");
        fputc(']', to);
    }
}

/* A function's schema has the result and the parameters apart, or, in tvm-ffi's older form, in one list. That
 * of an operator of Torch is no JSON, and a signature as it stands. */
static void print_signature(FILE *to, const khub_function_info *info, const json_t *schema)
{
    if (info->schema && !schema) {
        print_text(to, info->schema, "");
        return;
    }
    const json_t *named = json_object_get(schema, "named_args"), *args = json_object_get(schema, "args");
    const json_t *result =
        named ? json_array_get(json_object_get(named, "return"), 0) : json_array_get(args, 0);
    const json_t *parameters = json_object_get(named, "params");
    print_text(to, info->name, "");
    fputc('(', to);
    if (named) {
        print_types(to, parameters, ", ");
    } else {
        for (size_t i = 1; i < json_array_size(args); i++) {
            if (i > 1) fputs(", ", to);
            print_type(to, json_array_get(args, i));
        }
        if (!args) fputs("...", to); /* any arguments, or it doesn't say */
    }
    fputc(')', to);
    if (result) {
        fputs(" -> ", to);
        print_type(to, result);
    }
}

static void print_json_field(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    cli_json_text(stdout, text);
}

/* The schema as it stands in the library: JSON, or text when it isn't any. */
static void print_raw_schema(const khub_function_info *info, const json_t *schema)
{
    char *text = schema ? json_dumps(schema, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    if (text)
        printf(", \"schema\": %s", text);
    else
        print_json_field("schema", info->schema);
    free(text);
}

static void print_signature_json(const khub_function_info *info, const json_t *schema)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (!to) return;
    print_signature(to, info, schema);
    if (fclose(to) == 0) print_json_field("signature", text);
    free(text);
}

static void print_function(const khub_function_info *info, int json, int first)
{
    json_t *schema = info->schema ? json_loads(info->schema, 0, NULL) : NULL;
    if (json) {
        fputs(first ? "{\"name\": " : ",\n {\"name\": ", stdout);
        cli_json_text(stdout, info->name);
        print_signature_json(info, schema);
        print_raw_schema(info, schema);
        print_json_field("doc", info->doc);
        fputc('}', stdout);
    } else {
        print_signature(stdout, info, schema);
        fputc('\n', stdout);
        if (info->doc) {
            fputs("    ", stdout);
            print_text(stdout, info->doc, "    ");
            fputc('\n', stdout);
        }
    }
    json_decref(schema);
}

static void print_functions(khub_kernel *kernel, int json)
{
    cli_kernels_begin(); /* it is asked for its descriptions, all at once */
    khub_kernel_function_info(kernel, 0);
    cli_kernels_end();
    if (json) {
        fputs("{\"repo\": ", stdout);
        cli_json_text(stdout, khub_kernel_name(kernel));
        print_json_field("variant", khub_kernel_variant(kernel));
        printf(", \"version\": %lld", (long long)khub_kernel_version(kernel));
        print_json_field("library", khub_kernel_library(kernel));
        fputs(", \"functions\": [", stdout);
    }
    const khub_function_info *info;
    size_t i = 0;
    for (; (info = khub_kernel_function_info(kernel, i)) != NULL; i++)
        print_function(info, json, i == 0);
    if (json) fputs("]}\n", stdout);
    if (i == 0)
        cli_note("%s: the library exports no function that can be called (__tvm_ffi_NAME)",
                 khub_kernel_library(kernel));
}

static int run(int argc, char **argv)
{
    int json = 0;
    cli_machine machine = {0};
    khub_get_options get;
    cli_hub hub;
    KHUB_INIT(&get);
    cli_hub_init(&hub);
    const cli_option options[] = {{"--json", CLI_FLAG, &json},
                                  CLI_MACHINE_OPTIONS(machine),
                                  {"--variant", CLI_TEXT, &get.variant},
                                  {"--lock", CLI_TEXT, &get.lock},
                                  CLI_HUB_OPTIONS(hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n != 1) return cli_usage("functions", n ? "one kernel at a time" : "of which kernel?");
    khub_error err = {0};
    khub_platform *platform = NULL;
    khub_kernel *kernel = NULL;
    int rc = cli_machine_given(&machine) ? cli_platform(&platform, &machine, &err) : KHUB_OK;
    get.platform = platform;
    if (rc == KHUB_OK) rc = cli_get(&kernel, argv[1], &get, &hub, &err);
    if (rc == KHUB_OK) print_functions(kernel, json);
    khub_kernel_close(kernel);
    khub_platform_free(platform);
    return rc == KHUB_OK ? EXIT_DONE : cli_fail(&err);
}

const cli_command cli_functions = {
    .name = "functions",
    .summary = "the functions of a kernel, and how each is called",
    .help =
        "khub functions REPO: the functions of a kernel, and how each is called\n\n"
        "    khub functions khub/norm\n"
        "    khub functions ./my-kernel --json\n\n"
        "REPO is ORG/NAME@REV, a path that starts with /, ./ or ../, or a built-in kernel. The build that "
        "fits this "
        "machine is "
        "loaded;\n"
        "types and documentation are what it says about itself.\n\n"
        "    --json            {\"repo\", \"variant\", \"version\", \"library\", \"functions\": [{\"name\", "
        "\"signature\", \"schema\", \"doc\"}]}\n"
        "    --variant NAME    that build, whether it fits or not\n"
        "    --lock FILE       at the commit that a kernels.lock has\n" CLI_MACHINE_HELP CLI_HUB_HELP,
    .run = run,
    .contained = 1,
};
