/* What is known of slots before they are called, and which kernels fit it: device and capability, dtype,
 * shapes.
 */
#include "fakes.h"
#include "mappings.h"

#include "layer/targets.h"

#include <khub/khub.h>

#include <sys/stat.h>
#include <unistd.h>

static int nothing(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)args, (void)n, (void)result;
    return 0;
}

static const khub_function standard = {nothing, NULL};

#define WHOLE(...)                                                                                           \
    (int64_t[])                                                                                              \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

/* Up to two shapes of a slot. */
typedef struct facts {
    khub_dtype dtype;
    const char *device;
    khub_slot_shape shapes[2];
} facts;

static khub_slot_options options_of(const facts *k)
{
    khub_slot_options options;
    KHUB_INIT(&options);
    options.dtype = k->dtype;
    options.device = k->device;
    options.shapes = k->shapes;
    while (options.shape_count < 2 && k->shapes[options.shape_count].arg)
        options.shape_count++;
    return options;
}

static const khub_dtype f32 = {KHUB_DTYPE_FLOAT, 32, 1}, bf16 = {KHUB_DTYPE_BFLOAT, 16, 1};

START_TEST(what_cannot_be_known)
{
    const struct {
        facts known;
        const char *words;
    } table[] = {
        {{.device = "gpu"}, "a: \"gpu\" is no device"},
        {{.device = "*"}, "a: \"*\" is no device"},
        {{.device = "cuda:"}, "cuda:75"},
        {{.device = "cpu:1"}, "only cuda and rocm have capabilities"},
        {{.shapes = {{"y", 0, NULL}}}, "a: a shape is given for \"y\", and Linear has no such tensor"},
        {{.shapes = {{"weight", 2, NULL}}}, "the shape given for \"weight\" can't be one"},
        {{.shapes = {{"weight", -1, (int64_t[]){1}}}}, "\"weight\" can't be one"},
        {{.shapes = {{"weight", 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}}}}, "\"weight\" can't be one"},
        {{.shapes = {{"weight", 2, (int64_t[]){3, -2}}}}, "\"weight\" can't be one"},
        {{.shapes = {{"x", 0, NULL}, {"x", 0, NULL}}}, "\"x\" twice"},
    };
    khub_error err = {0};
    khub_layers *layers;
    khub_slot *slot = NULL;
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_slot_options options = options_of(&table[i].known);
        ck_khub_fails(khub_layers_add(layers, "a", "Linear", standard, &options, &slot, &err), &err,
                      KHUB_E_INVAL, table[i].words);
        ck_assert_ptr_null(slot);
    }
    khub_slot_options options = {.struct_size = sizeof(options), .shape_count = 1};
    ck_khub_fails(khub_layers_add(layers, "a", "Linear", standard, &options, &slot, &err), &err, KHUB_E_INVAL,
                  "shapes is NULL");
    options.struct_size = 0;
    ck_khub_fails(khub_layers_add(layers, "a", "Linear", standard, &options, &slot, &err), &err, KHUB_E_INVAL,
                  "khub_slot_options");
    const khub_slot_shape number = {"eps", 0, NULL};
    options = (khub_slot_options){.struct_size = sizeof(options), .shapes = &number, .shape_count = 1};
    ck_khub_fails(khub_layers_add(layers, "a", "RMSNorm", standard, &options, &slot, &err), &err,
                  KHUB_E_INVAL, "no such tensor");
    ck_assert_uint_eq(khub_layers_count(layers), 0);
    khub_layers_free(layers);
}
END_TEST

/* What is bound is what was said; a run is where its parts are. */
START_TEST(what_does_not_agree)
{
    khub_error err = {0};
    khub_layers *layers;
    khub_slot *linear, *act, *run;
    float numbers[6] = {0};
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    const facts of_linear = {.device = "cuda", .shapes = {{"weight", 2, (int64_t[]){-1, 3}}}};
    khub_slot_options options = options_of(&of_linear);
    ck_khub_ok(khub_layers_add(layers, "a.linear", "Linear", standard, &options, &linear, &err), &err);
    khub_tensor weight = khub_tensor_f32(numbers, 2, WHOLE(3, 2));
    ck_khub_fails(khub_slot_bind(linear, "weight", &weight, &err), &err, KHUB_E_INVAL,
                  "a.linear: \"weight\" is bound to a tensor");
    weight = khub_tensor_f32(numbers, 1, WHOLE(3));
    ck_khub_fails(khub_slot_bind(linear, "weight", &weight, &err), &err, KHUB_E_INVAL,
                  "is bound to a tensor");
    weight = khub_tensor_f32(numbers, 2, WHOLE(2, 3));
    ck_khub_ok(khub_slot_bind(linear, "weight", &weight, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "a.act", "GeLU", standard, NULL, &act, &err), &err);
    khub_slot *const parts[] = {linear, act};
    ck_khub_fails(khub_layers_add_run(layers, "a", "LinearGeLU", standard, NULL, parts, 2, &run, &err), &err,
                  KHUB_E_INVAL, "a: the slot a.act isn't said to be on the same device");
    khub_slot_options there = {.struct_size = sizeof(there), .device = "cuda"};
    ck_khub_ok(khub_layers_add(layers, "a.act2", "GeLU", standard, &there, &act, &err), &err);
    khub_slot *const others[] = {linear, act};
    there.device = "cuda:90";
    ck_khub_fails(khub_layers_add_run(layers, "a", "LinearGeLU", standard, &there, others, 2, &run, &err),
                  &err, KHUB_E_INVAL, "a: the slot a.linear isn't said to be on the same device");
    ck_khub_ok(khub_layers_add_run(layers, "a", "LinearGeLU", standard, NULL, others, 2, &run, &err), &err);
    khub_layers_free(layers);
}
END_TEST

/* A kernel says what it takes; what is known of the slot fits, or is the reason; what isn't known is no
 * reason.
 */
START_TEST(kernels_that_fit)
{
    const struct {
        const char *layer, *says;
        facts known;
        const char *words; /* NULL: it serves */
    } table[] = {
        {"GeLU", "", {f32}, NULL},
        {"GeLU", ",'dtypes':['float32']", {f32}, NULL},
        {"GeLU", ",'dtypes':['float32']", {bf16}, "serves GeLU in float32, the slot is bfloat16"},
        {"GeLU", ",'dtypes':['float32']", {{0, 0, 0}}, NULL},
        {"GeLU", ",'shapes':{'x:0':4}", {f32}, NULL},
        {"GeLU", ",'shapes':{'x:0':4}", {.shapes = {{"x", 2, (int64_t[]){4, 5}}}}, NULL},
        {"GeLU", ",'shapes':{'x:0':4}", {.shapes = {{"x", 2, (int64_t[]){-1, 5}}}}, NULL},
        {"GeLU", ",'shapes':{'x:0':4}", {.shapes = {{"out", 2, (int64_t[]){5, 5}}}}, NULL},
        {"GeLU",
         ",'shapes':{'x:0':4}",
         {.shapes = {{"x", 2, (int64_t[]){5, 5}}}},
         "set takes x with an axis 0 of 4; the slot's is 5"},
        {"GeLU", ",'shapes':{'x:-1':{'multiple':8}}", {.shapes = {{"x", 3, (int64_t[]){3, 1, 16}}}}, NULL},
        {"GeLU",
         ",'shapes':{'x:-1':{'multiple':8}}",
         {.shapes = {{"x", 3, (int64_t[]){8, 8, 12}}}},
         "set takes x with an axis -1 of multiples of 8; the slot's is 12"},
        {"GeLU",
         ",'shapes':{'x:2':{'min':0}}",
         {.shapes = {{"x", 2, (int64_t[]){8, 8}}}},
         "; the slot's has no such axis"},
        {"GeLU",
         ",'shapes':{'x:-1':{'max':8}}",
         {.shapes = {{"x", 0, NULL}}},
         "; the slot's has no such axis"},
        {"GeLU",
         ",'shapes':{'x:-1':{'min':2,'max':8,'multiple':2}}",
         {.shapes = {{"x", 1, (int64_t[]){10}}}},
         "an axis -1 of 2 and more, at most 8, multiples of 2; the slot's is 10"},
        {"GeLU", ",'shapes':{'x:-1':{'min':2,'max':8}}", {.shapes = {{"x", 1, (int64_t[]){1}}}}, "is 1"},
        {"GeLU", ",'shapes':{'x:-1':{'min':2,'max':8}}", {.shapes = {{"x", 1, (int64_t[]){8}}}}, NULL},
        {"GeLU",
         ",'shapes':{'x:0':{'min':1},'x:1':{'min':1}}",
         {.shapes = {{"x", 2, (int64_t[]){1, 0}}}},
         "axis 1 of 1 and more; the slot's is 0"},
        {"Attention",
         ",'shapes':{'q:-1':[64,128]}",
         {.shapes = {{"q", 4, (int64_t[]){-1, -1, 8, 128}}}},
         NULL},
        {"Attention",
         ",'shapes':{'q:-1':[64,128]}",
         {.shapes = {{"q", 4, (int64_t[]){-1, -1, 8, 96}}}},
         "set takes q with an axis -1 of 64, 128; the slot's is 96"},
        {"Attention", ",'shapes':{'scale:0':1}", {f32}, "names \"scale\", which is no tensor of Attention"},
        {"Attention", ",'shapes':{'mask:0':1}", {f32}, "names \"mask\", which is no tensor of Attention"},
        {"Linear", ",'shapes':{'weight:0':{'multiple':4}}", {f32}, "is 6"}, /* which is bound */
        {"Linear", ",'shapes':{'weight:0':6,'weight:1':2}", {f32}, NULL},
    };
    khub_platform *platform = fake_platform();
    float numbers[12] = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char text[6000];
        khub_error err = {0};
        khub_layers *layers;
        khub_slot *slot;
        khub_report *report;
        snprintf(text, sizeof(text), "{'%s':{'kernel':'%s','function':'set'%s}}", table[i].layer,
                 fake_repository("weighed"), table[i].says);
        for (char *at = text; *at; at++)
            if (*at == '\'') *at = '"';
        ck_khub_ok(khub_layers_new(&layers, &err), &err);
        khub_slot_options of_slot = options_of(&table[i].known);
        ck_khub_ok(khub_layers_add(layers, "a", table[i].layer, standard, &of_slot, &slot, &err), &err);
        ck_khub_ok(khub_layers_add(layers, "other", table[i].layer, standard, NULL, NULL, &err), &err);
        khub_tensor weight = khub_tensor_f32(numbers, 2, WHOLE(6, 2));
        if (!strcmp(table[i].layer, "Linear"))
            ck_khub_ok(khub_slot_bind(slot, "weight", &weight, &err), &err);
        khub_kernelize_options options;
        KHUB_INIT(&options);
        options.mapping = mapping_of(text);
        options.platform = platform;
        ck_khub_ok(khub_kernelize(layers, &options, &report, &err), &err);
        const khub_slot_report *line = khub_report_at(report, 0);
        ck_assert_msg(!line->reason == !table[i].words && khub_slot_is_served(slot) == !table[i].words,
                      "%zu: %s", i, line->reason);
        if (table[i].words) ck_assert_msg(strstr(line->reason, table[i].words) != NULL, "%s", line->reason);
        if (!table[i].words || !strstr(table[i].words, "no tensor")) /* one misfit stops no other slot */
            ck_assert_msg(!khub_report_at(report, 1)->reason, "%s", khub_report_at(report, 1)->reason);
        khub_report_free(report);
        khub_layers_free(layers);
    }
    khub_platform_free(platform);
}
END_TEST

/* The next candidate is tried where one doesn't fit. */
START_TEST(the_next_that_fits)
{
    char text[9000];
    khub_error err = {0};
    khub_layers *layers;
    khub_report *report;
    khub_kernelize_options options;
    khub_platform *platform = fake_platform();
    const facts small = {.shapes = {{"x", 1, (int64_t[]){4}}}},
                large = {.shapes = {{"x", 1, (int64_t[]){512}}}};
    khub_slot_options of_small = options_of(&small), of_large = options_of(&large);
    snprintf(text, sizeof(text),
             "{\"GeLU\":{\"cpu\":{\"inference\":{\"kernel\":\"%s\",\"function\":\"set\",\"shapes\":{\"x:0\":{"
             "\"min\":256}}},\"fallback\":{\"kernel\":\"%s\",\"function\":\"fail_late\"}}}}",
             fake_repository("weighed"), fake_repository("weighed"));
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "small", "GeLU", standard, &of_small, NULL, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "large", "GeLU", standard, &of_large, NULL, &err), &err);
    KHUB_INIT(&options);
    options.mapping = mapping_of(text);
    options.platform = platform;
    for (int i = 0; i < 2; i++) {
        ck_khub_ok(khub_kernelize(layers, &options, &report, &err), &err);
        ck_assert_str_eq(khub_report_at(report, 0)->function, "fail_late");
        ck_assert_ptr_nonnull(strstr(khub_report_at(report, 0)->candidates[0].reason, "the slot's is 4"));
        ck_assert_str_eq(khub_report_at(report, 1)->function, "set");
        khub_report_free(report);
    }
    khub_layers_free(layers);
    khub_platform_free(platform);
}
END_TEST

static char folder[] = "/tmp/khub-slots-XXXXXX";

static void remove_folder(void)
{
    char command[200];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert(file && fputs(text, file) >= 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* folder/NAME with one build of the fake kernel "weighed". */
static void make_repository(const char *name, const char *variant_end, const char *backend)
{
    char path[4096], to[5000], metadata[300];
    struct utsname machine;
    uname(&machine);
    fake_path(path, "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    fake_path(path, "%s/%s/build", folder, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    fake_path(path, "%s/%s/build/tvm-ffi01-%s-%s-linux", folder, name, variant_end, machine.machine);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(to, sizeof(to), "%s/_weighed_cpu_fa4e000.so", path);
    ck_assert_int_eq(symlink(fake_library("weighed"), to), 0);
    snprintf(metadata, sizeof(metadata),
             "{\"name\":\"weighed\",\"id\":\"_weighed_cpu_fa4e000\",\"version\":1,\"license\":\"Apache-2.0\","
             "\"backend\":{\"type\":\"%s\"},\"python-depends\":[]}",
             backend);
    snprintf(to, sizeof(to), "%s/metadata.json", path);
    write_file(to, metadata);
}

/* A platform file: what `khub platform` prints of a machine, as far as it decides. */
static khub_platform *platform_of(const char *backend, const char *archs)
{
    char path[4096], text[300];
    khub_platform *platform;
    khub_error err = {0};
    struct utsname machine;
    uname(&machine);
    snprintf(text, sizeof(text),
             "{\"os\":\"linux\",\"arch\":\"%s\",\"backend\":\"%s\",\"tvm_ffi\":\"0.1\",\"archs\":[%s]}",
             machine.machine, backend, archs);
    fake_path(path, "%s/platform.json", folder);
    write_file(path, text);
    ck_khub_ok(khub_platform_read(&platform, path, &err), &err);
    unlink(path);
    return platform;
}

/* The slot's device, else that of kernelize, else cpu; its capability, else that of kernelize for the same
 * device, else the platform's. */
START_TEST(devices_and_capabilities)
{
    static const struct {
        const char *backend, *archs, *kernelize, *slot, *kernel; /* "-": none */
    } table[] = {
        {"cu128", "\"9.0\"", "cuda", NULL, "hopper"},
        {"cu128", "\"9.0\"", NULL, "cuda", "hopper"},
        {"cu128", "\"9.0\",\"7.5\"", NULL, "cuda", "hopper"}, /* the first is in use */
        {"cu128", "\"7.5\",\"9.0\"", NULL, "cuda", "turing"},
        {"cu128", "\"8.9\"", NULL, "cuda", "turing"},
        {"cu128", "\"12.0\"", NULL, "cuda", "any"},
        {"cu128", "\"9.0\"", "cuda:89", NULL, "turing"},
        {"cu128", "\"9.0\"", "cuda:89", "cuda", "turing"},
        {"cu128", "\"9.0\"", "cuda:89", "cuda:120", "any"},
        {"cu128", "\"9.0\"", "rocm:94", "cuda", "hopper"},
        {"cu128", "", "cuda", NULL, "any"}, /* nobody knows */
        {"cu128", "\"9.0\"", "cuda", "cpu", "cpu"},
        {"cpu", "", "cuda", "cpu", "cpu"},
        {"cpu", "", NULL, NULL, "cpu"},
        {"cpu", "", NULL, "xpu", "-"},
        {"rocm71", "\"gfx942:sramecc+:xnack-\"", "rocm", NULL, "mi300"},
        {"rocm71", "\"gfx942\"", NULL, "rocm", "mi300"},
        {"rocm71", "\"gfx1100\"", NULL, "rocm", "-"},
        {"rocm71", "\"gfx942\"", NULL, "rocm:100", "-"},
    };
    static const char mapping[] = "{\"GeLU\":{\"cuda\":{\"kernel\":\"%s/any\",\"function\":\"set\"},"
                                  "\"cuda:75-89\":{\"kernel\":\"%s/turing\",\"function\":\"set\"},"
                                  "\"cuda:90\":{\"kernel\":\"%s/hopper\",\"function\":\"set\"},"
                                  "\"rocm:90-94\":{\"kernel\":\"%s/mi300\",\"function\":\"set\"},"
                                  "\"cpu\":{\"kernel\":\"%s/cpu\",\"function\":\"set\"}}}";
    char text[2000];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_repository("any", "cu128", "cuda");
    make_repository("turing", "cu128", "cuda");
    make_repository("hopper", "cu128", "cuda");
    make_repository("mi300", "rocm71", "rocm");
    make_repository("cpu", "cpu", "cpu");
    snprintf(text, sizeof(text), mapping, folder, folder, folder, folder, folder);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_error err = {0};
        khub_layers *layers;
        khub_report *report;
        khub_kernelize_options options;
        khub_platform *platform = platform_of(table[i].backend, table[i].archs);
        const facts known = {.device = table[i].slot};
        khub_slot_options of_slot = options_of(&known);
        ck_khub_ok(khub_layers_new(&layers, &err), &err);
        ck_khub_ok(khub_layers_add(layers, "a", "GeLU", standard, &of_slot, NULL, &err), &err);
        KHUB_INIT(&options);
        options.mapping = mapping_of(text);
        options.platform = platform;
        options.device = table[i].kernelize;
        ck_khub_ok(khub_kernelize(layers, &options, &report, &err), &err);
        const khub_slot_report *line = khub_report_at(report, 0);
        const char *kernel = line->kernel ? strrchr(line->kernel, '/') + 1 : "-";
        ck_assert_msg(!strcmp(kernel, table[i].kernel), "%zu: %s: %s", i, kernel,
                      line->reason ? line->reason : "");
        khub_report_free(report);
        khub_layers_free(layers);
        khub_platform_free(platform);
    }
    remove_folder();
}
END_TEST

/* Slots of one model on several devices: each gets its device's build, of one kernel too. */
START_TEST(several_devices)
{
    char text[5000], path[4096];
    khub_error err = {0};
    khub_layers *layers;
    khub_report *report;
    khub_kernelize_options options;
    khub_slot *slot[3];
    static const char *const devices[3] = {"cpu", "cuda", NULL};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_repository("both", "cu128", "cuda");
    make_repository("cpu", "cpu", "cpu");
    char from[5000], to[5000];
    struct utsname machine;
    uname(&machine);
    snprintf(from, sizeof(from), "%s/cpu/build/tvm-ffi01-cpu-%s-linux", folder, machine.machine);
    snprintf(to, sizeof(to), "%s/both/build/tvm-ffi01-cpu-%s-linux", folder, machine.machine);
    ck_assert_int_eq(rename(from, to), 0);
    fake_path(path, "%s/both", folder);
    snprintf(text, sizeof(text), "{\"GeLU\":{\"kernel\":\"%s\",\"function\":\"set\"}}", path);
    khub_platform *platform = platform_of("cu128", "\"9.0\"");
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    for (int i = 0; i < 3; i++) {
        const facts known = {.device = devices[i]};
        khub_slot_options of_slot = options_of(&known);
        ck_khub_ok(khub_layers_add(layers, (const char *[]){"a", "b", "c"}[i], "GeLU", standard, &of_slot,
                                   &slot[i], &err),
                   &err);
    }
    KHUB_INIT(&options);
    options.mapping = mapping_of(text);
    options.platform = platform;
    options.device = "cuda";
    for (int again = 0; again < 2; again++) {
        const khub_filling *were[3] = {khub_slot_filling(slot[0]), khub_slot_filling(slot[1]),
                                       khub_slot_filling(slot[2])};
        ck_khub_ok(khub_kernelize(layers, &options, &report, &err), &err);
        for (int i = 0; i < 3; i++) {
            const khub_slot_report *line = khub_report_at(report, (size_t)i);
            ck_assert_msg(line->variant && strstr(line->variant, i ? "-cu128-" : "-cpu-"), "%d: %s", i,
                          line->reason ? line->reason : line->variant);
            ck_assert(!again == (khub_slot_filling(slot[i]) != were[i])); /* the second changes nothing */
        }
        khub_report_free(report);
    }
    /* what isn't there for one device is told of that one */
    options.fallback = KHUB_FALLBACK_NAMED;
    options.mapping = mapping_of("{\"GeLU\":{\"cuda:120\":\"khub/activation\",\"cpu\":\"\"}}");
    ck_khub_ok(khub_kernelize(layers, &options, &report, &err), &err);
    ck_assert_str_eq(khub_report_at(report, 1)->reason,
                     "the mapping has kernels for GeLU on cuda, but for no range of capabilities that holds "
                     "cuda:90");
    ck_assert_str_eq(khub_report_at(report, 0)->reason, "the mapping leaves GeLU standard");
    khub_report_free(report);
    khub_layers_free(layers);
    khub_platform_free(platform);
    remove_folder();
}
END_TEST

/* RMSNorm and the Linear behind it, served by one built-in kernel: by the default mapping, and by name. */
START_TEST(a_norm_and_a_linear)
{
    static const char *const mappings[] = {
        NULL, "{\"RMSNorm + Linear\": \"khub/linear\"}",
        "{\"RMSNorm(a.*) + Linear(a.out)\": \"khub/linear:RMSNormLinear\"}"};
    enum { M = 3, N = 20, K = 37 };
    float x[M * K], g[K], w[N * K], between[M * K], expected[M * N], out[M * N];
    for (int i = 0; i < N * K; i++)
        w[i] = (float)(i * 37 % 101) / 64 - 0.75f;
    for (int i = 0; i < M * K; i++)
        x[i] = (float)(i * 53 % 97) / 32 - 1.5f;
    for (int i = 0; i < K; i++)
        g[i] = (float)(i % 7) / 4;
    const khub_tensor tx = khub_tensor_f32(x, 2, WHOLE(M, K)), tg = khub_tensor_f32(g, 1, WHOLE(K)),
                      tw = khub_tensor_f32(w, 2, WHOLE(N, K)), tb = khub_tensor_f32(between, 2, WHOLE(M, K)),
                      te = khub_tensor_f32(expected, 2, WHOLE(M, N)),
                      to = khub_tensor_f32(out, 2, WHOLE(M, N));
    const khub_value eps = khub_arg_float(1e-5), none = khub_arg_none();
    const khub_value of_norm[] = {khub_arg_tensor(&tb), khub_arg_tensor(&tx), khub_arg_tensor(&tg), eps},
                     of_linear[] = {khub_arg_tensor(&te), khub_arg_tensor(&tb), khub_arg_tensor(&tw), none},
                     of_run[] = {khub_arg_tensor(&to), khub_arg_tensor(&tx),
                                 khub_arg_tensor(&tg), eps,
                                 khub_arg_tensor(&tw), none};
    for (size_t i = 0; i < sizeof(mappings) / sizeof(*mappings); i++) {
        khub_error err = {0};
        khub_layers *layers;
        khub_slot *part[2], *run;
        khub_report *report;
        khub_kernelize_options options;
        ck_khub_ok(khub_layers_new(&layers, &err), &err);
        ck_khub_ok(khub_layers_add(layers, "a.norm", "RMSNorm", standard, NULL, &part[0], &err), &err);
        ck_khub_ok(khub_layers_add(layers, "a.out", "Linear", standard, NULL, &part[1], &err), &err);
        ck_khub_ok(khub_layers_add_run(layers, "a", "RMSNormLinear", standard, NULL, part, 2, &run, &err),
                   &err);
        ck_khub_ok(khub_slot_bind(part[1], "weight", &tw, &err), &err);
        KHUB_INIT(&options);
        ck_khub_ok(khub_kernelize(layers, &options, NULL, &err), &err); /* the run's weight isn't bound */
        ck_assert(!khub_slot_is_served(run) && khub_slot_is_served(part[0]) && khub_slot_is_served(part[1]));
        ck_khub_ok(khub_slot_call(part[0], of_norm, 4, &err), &err);
        ck_khub_ok(khub_slot_call(part[1], of_linear, 4, &err), &err);
        ck_khub_ok(khub_slot_bind(run, "weight", &tw, &err), &err);
        options.mapping = mapping_of(mappings[i]);
        options.fallback = KHUB_FALLBACK_REFUSE;
        ck_khub_ok(khub_kernelize(layers, &options, &report, &err), &err);
        ck_assert(khub_slot_is_served(run) && !khub_slot_is_served(part[0]) && !khub_slot_is_served(part[1]));
        ck_assert_str_eq(khub_report_at(report, 2)->function, "rms_norm_linear_packed");
        ck_assert_str_eq(khub_report_at(report, 0)->run, "a");
        ck_assert_uint_eq(khub_report_filled(report), 2);
        ck_khub_ok(khub_slot_call(run, of_run, 6, &err), &err);
        ck_assert_mem_eq(out, expected, sizeof(out));
        khub_report_free(report);
        khub_layers_free(layers);
    }
}
END_TEST

START_TEST(archs)
{
    static const struct {
        const char *arch;
        int capability;
    } table[] = {{"9.0", 90},
                 {"7.5", 75},
                 {"12.0", 120},
                 {"10.3", 103},
                 {"gfx942", 94},
                 {"gfx90a", 90},
                 {"gfx906", 90},
                 {"gfx1100", 110},
                 {"gfx1201", 120},
                 {"gfx1036", 103},
                 {"gfx942:sramecc+:xnack-", 94},
                 {NULL, -1},
                 {"", -1},
                 {"9", -1},
                 {"9.", -1},
                 {"9.0a", -1},
                 {"9.10", -1},
                 {".0", -1},
                 {"gfx", -1},
                 {"gfx9", -1},
                 {"gfx9-generic", -1},
                 {"gfxa00", -1},
                 {"gfx99999999900", -1},
                 {"99999999.0", -1}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_msg(khub__capability_of(table[i].arch) == table[i].capability, "%s: %d", table[i].arch,
                      (int)khub__capability_of(table[i].arch));
}
END_TEST

UNIT("slots", what_cannot_be_known, what_does_not_agree, kernels_that_fit, the_next_that_fits,
     devices_and_capabilities, several_devices, a_norm_and_a_linear, archs)
