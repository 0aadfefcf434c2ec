/* kernelize again, with other options, and what it leaves as it was; modes and promises; calls that fail. */
#include "unit.h"

#include "mappings.h"
#include "failing_memory.h"
#include "fakes.h"

#include "layer/recipe.h"

#include <khub/khub.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const khub_slot_options f32 = {sizeof(f32), {KHUB_DTYPE_FLOAT, 32, 1}, NULL, NULL, 0};
static int standard_calls;

/* out = x + 1, so that what stood in x matters */
static int standard(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)n, (void)result;
    const khub_tensor *out = khub_value_tensor(&args[0]), *x = khub_value_tensor(&args[1]);
    for (int64_t i = 0; i < khub_tensor_count(x); i++)
        ((float *)out->data)[i] = ((float *)x->data)[i * (x->strides ? x->strides[0] : 1)] + 1;
    standard_calls++;
    return 0;
}

/* Layers RMSNorm (two, with a weight), GeLU, SiLU, ReLU, and a second GeLU at another path. */
enum { NORM, NORM2, GELU, SILU, RELU, GELU2, SLOTS };
struct model {
    khub_layers *layers;
    khub_slot *slot[SLOTS];
    float weights[2][2];
    int64_t shape[1];
    khub_tensor weight[2];
};

static void make(struct model *m)
{
    static const char *const layers[SLOTS] = {"RMSNorm", "RMSNorm", "GeLU", "SiLU", "ReLU", "GeLU"};
    static const char *const paths[SLOTS] = {"a.norm", "b.norm", "a.gelu", "a.silu", "a.relu", "b.gelu"};
    khub_error err = {0};
    *m = (struct model){.weights = {{3, 1}, {5, 1}}, .shape = {2}};
    ck_khub_ok(khub_layers_new(&m->layers, &err), &err);
    for (int i = 0; i < SLOTS; i++)
        ck_khub_ok(khub_layers_add(m->layers, paths[i], layers[i], (khub_function){standard, NULL}, &f32,
                                   &m->slot[i], &err),
                   &err);
    for (int i = 0; i < 2; i++) {
        m->weight[i] = khub_tensor_f32(m->weights[i], 1, m->shape);
        ck_khub_ok(khub_slot_bind(m->slot[i], "weight", &m->weight[i], &err), &err);
    }
}

/* A mapping text with $ standing for the repository "weighed". */
static const char *mapping(const char *pattern)
{
    static char text[8192];
    size_t at = 0;
    for (; *pattern; pattern++)
        if (*pattern == '$')
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s", fake_repository("weighed"));
        else
            text[at++] = *pattern;
    text[at] = 0;
    return text;
}

static const char everything[] = "{\"RMSNorm\":\"$\",\"GeLU\":\"$\",\"SiLU\":\"$\",\"ReLU\":\"$\"}";

static khub_kernelize_options options_of(const char *pattern)
{
    khub_kernelize_options options;
    KHUB_INIT(&options);
    options.mapping = mapping_of(mapping(pattern));
    return options;
}

static khub_report *kernelize(struct model *m, const khub_kernelize_options *options)
{
    khub_error err = {0};
    khub_report *report;
    ck_khub_ok(khub_kernelize(m->layers, options, &report, &err), &err);
    return report;
}

static int64_t times_prepared(void)
{
    khub_error err = {0};
    khub_function f;
    khub_value result;
    khub_kernel *kernel = fake_get("weighed");
    ck_khub_ok(khub_kernel_function(&f, kernel, "times_prepared", &err), &err);
    ck_khub_ok(khub_function_call(&f, NULL, 0, &result, &err), &err);
    khub_kernel_close(kernel);
    return result.as.i64;
}

/* out after a call with x = {1, 2} */
static int call(const khub_slot *slot, float out[2], khub_error *err)
{
    float x[2] = {1, 2};
    const int64_t shape[1] = {2};
    khub_tensor in = khub_tensor_f32(x, 1, shape), to = khub_tensor_f32(out, 1, shape);
    const khub_value args[4] = {khub_arg_tensor(&to), khub_arg_tensor(&in), khub_arg_none(),
                                khub_arg_float(1)};
    out[0] = out[1] = 0;
    return khub_slot_call(slot, args, strcmp(khub_slot_layer(slot), "RMSNorm") ? 2 : 4, err);
}

static void fillings_of(const khub_filling *out[SLOTS], const struct model *m)
{
    for (int i = 0; i < SLOTS; i++)
        out[i] = khub_slot_filling(m->slot[i]);
}

START_TEST(a_second_time_nothing_happens)
{
    struct model m;
    const khub_filling *standards[SLOTS], *first[SLOTS], *second[SLOTS];
    float out[2];
    khub_error err = {0};
    make(&m);
    fillings_of(standards, &m);
    khub_kernelize_options options = options_of(everything);
    khub_report_free(kernelize(&m, &options));
    fillings_of(first, &m);
    ck_assert_int_eq(times_prepared(), 2);
    ck_khub_ok(call(m.slot[NORM2], out, &err), &err);
    ck_assert_float_eq(out[0], 10);
    ck_assert_ptr_eq(first[GELU], first[GELU2]); /* nothing of their own */
    ck_assert_ptr_ne(first[NORM], first[NORM2]);
    khub_report_free(kernelize(&m, &options));
    fillings_of(second, &m);
    ck_assert_mem_eq(first, second, sizeof(first));
    ck_assert_int_eq(times_prepared(), 2);
    /* one entry less: only its slots change */
    options = options_of("{\"RMSNorm\":\"$\",\"GeLU\":\"\",\"SiLU\":\"$\",\"ReLU\":\"$\"}");
    khub_report_free(kernelize(&m, &options));
    fillings_of(second, &m);
    for (int i = 0; i < SLOTS; i++)
        ck_assert_ptr_eq(second[i], i == GELU || i == GELU2 ? standards[i] : first[i]);
    ck_assert_int_eq(times_prepared(), 2);
    /* another weight is prepared, and no other */
    ck_khub_ok(khub_slot_bind(m.slot[NORM2], "weight", &m.weight[0], &err), &err);
    khub_report_free(kernelize(&m, &options));
    ck_assert_int_eq(times_prepared(), 3);
    ck_khub_ok(call(m.slot[NORM2], out, &err), &err);
    ck_assert_float_eq(out[0], 6);
    ck_assert_ptr_eq(khub_slot_filling(m.slot[NORM]), first[NORM]);
    /* undone: the very same functions (L5) */
    khub_standardize(m.layers);
    fillings_of(second, &m);
    ck_assert_mem_eq(second, standards, sizeof(standards));
    for (int i = 0; i < SLOTS; i++)
        ck_assert(second[i]->function.call == standard);
    ck_assert_ptr_null(m.layers->sources);
    ck_assert_ptr_null(m.layers->recipes);
    khub_layers_free(m.layers);
}
END_TEST

/* Allocations of a second kernelize without a report. */
static long allocations(int slots)
{
    khub_error err = {0};
    khub_layers *layers;
    char path[32];
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    for (int i = 0; i < slots; i++) {
        snprintf(path, sizeof(path), "s.%d", i);
        ck_khub_ok(khub_layers_add(layers, path, i % 2 ? "GeLU" : "SiLU", (khub_function){standard, NULL},
                                   &f32, NULL, &err),
                   &err);
    }
    khub_kernelize_options options = options_of("{\"GeLU\":\"$\",\"SiLU\":\"$\"}");
    ck_khub_ok(khub_kernelize(layers, &options, NULL, &err), &err);
    long before = atomic_load(&fm_count);
    ck_khub_ok(khub_kernelize(layers, &options, NULL, &err), &err);
    long count = atomic_load(&fm_count) - before;
    khub_layers_free(layers);
    return count;
}

START_TEST(a_second_time_costs_no_memory_per_slot)
{
    fm_install_own();
    allocations(2); /* what the process keeps for good */
    ck_assert_int_eq(allocations(10), allocations(2000));
}
END_TEST

/* A weight that can't be prepared is a reason for its own slot alone. */
START_TEST(one_slot_that_cant_be_prepared)
{
    struct model m;
    make(&m);
    m.weights[1][0] = -1;
    khub_kernelize_options options = options_of(everything);
    khub_report *report = kernelize(&m, &options);
    ck_assert_uint_eq(khub_report_filled(report), SLOTS - 1);
    ck_assert_ptr_null(khub_report_at(report, NORM)->reason);
    ck_assert_ptr_nonnull(strstr(khub_report_at(report, NORM2)->reason,
                                 "weighed:double_weight: ValueError: the weight is negative"));
    ck_assert_int_eq(khub_report_at(report, NORM2)->candidates[0].serves, 0);
    ck_assert_int_eq(khub_report_at(report, NORM)->candidates[0].serves, 1);
    khub_report_free(report);
    khub_layers_free(m.layers);
}
END_TEST

START_TEST(promises_and_modes)
{
    static const struct {
        int mode, deterministic;
        const char *served; /* NORM, NORM2, GELU, SILU, RELU, GELU2 */
    } table[] = {{0, 0, "111111"},
                 {KHUB_MODE_INFERENCE, 1, "111001"},
                 {KHUB_MODE_TRAINING, 0, "001101"},
                 {KHUB_MODE_TRAINING | KHUB_MODE_COMPILE, 1, "001001"}};
    struct model m;
    make(&m);
    for (size_t t = 0; t < sizeof(table) / sizeof(*table); t++) {
        khub_kernelize_options options = options_of(everything);
        options.mode = table[t].mode;
        options.deterministic = table[t].deterministic;
        khub_report *report = kernelize(&m, &options);
        for (size_t i = 0; i < SLOTS; i++) {
            const khub_slot_report *line = khub_report_at(report, i);
            int served = table[t].served[i] == '1';
            const char *words = i == SILU || (i == RELU && table[t].deterministic)
                                    ? "promise to be deterministic"
                                    : "has no backward";
            ck_assert_msg(!served == !line->kernel, "%zu: %s: %s", t, line->path, line->reason);
            if (!served) ck_assert_msg(strstr(line->reason, words) != NULL, "%s", line->reason);
        }
        khub_report_free(report);
    }
    khub_error err = {0};
    khub_kernelize_options options = options_of("{}");
    options.mode = KHUB_MODE_FALLBACK;
    ck_khub_fails(khub_kernelize(m.layers, &options, NULL, &err), &err, KHUB_E_INVAL, "8 is no mode");
    options.mode = 0;
    options.device = "abacus";
    ck_khub_fails(khub_kernelize(m.layers, &options, NULL, &err), &err, KHUB_E_INVAL, "abacus");
    khub_layers_free(m.layers);
}
END_TEST

/* Slots on the CPU of a machine with a GPU get builds for CPUs; slots on its GPU none. */
START_TEST(the_device_of_the_slots)
{
    static const struct {
        const char *device, *words; /* NULL: served */
    } table[] = {{NULL, NULL},
                 {"cpu", NULL},
                 {"cuda:90", "built for backend cpu, the machine's is cu128"},
                 {"cuda", "built for backend cpu, the machine's is cu128"},
                 {"rocm", "rocm"}};
    khub_error err = {0};
    struct model m;
    struct utsname machine;
    char json[300];
    khub_platform *platform;
    make(&m);
    uname(&machine);
    snprintf(
        json, sizeof(json),
        "{\"os\":\"linux\",\"arch\":\"%s\",\"backend\":\"cu128\",\"tvm_ffi\":\"0.1\",\"archs\":[\"9.0\"]}",
        machine.machine);
    ck_khub_ok(khub_platform_parse(&platform, json, strlen(json), "gpu", &err), &err);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_kernelize_options options = options_of("{\"GeLU\":\"$\"}");
        options.platform = platform;
        options.device = table[i].device;
        khub_report *report = kernelize(&m, &options);
        const khub_slot_report *line = khub_report_at(report, GELU);
        ck_assert_msg(!line->kernel == (table[i].words != NULL), "%zu: %s", i, line->reason);
        if (table[i].words) ck_assert_msg(strstr(line->reason, table[i].words) != NULL, "%s", line->reason);
        khub_report_free(report);
    }
    khub_platform_free(platform);
    khub_layers_free(m.layers);
}
END_TEST

/* The first candidate that serves; the report has them all. */
START_TEST(candidates_are_reported)
{
    struct model m;
    make(&m);
    khub_kernelize_options options = options_of(
        "{\"GeLU\":{\"cpu\":{\"inference\":\"./nowhere\",\"training\":\"$:SiLU\",\"fallback\":\"$\"}},"
        "\"GeLU(b.*)\":\"$\"}");
    khub_report *report = kernelize(&m, &options);
    const khub_slot_report *line = khub_report_at(report, GELU);
    ck_assert_uint_eq(line->candidate_count, 3);
    ck_assert_str_eq(line->candidates[0].kernel, "./nowhere");
    ck_assert_ptr_nonnull(strstr(line->candidates[0].reason, "./nowhere"));
    ck_assert_int_eq(line->candidates[0].mode, KHUB_MODE_INFERENCE);
    ck_assert_int_eq(line->candidates[1].serves, 1);
    ck_assert_str_eq(line->candidates[1].layer, "SiLU");
    ck_assert_str_eq(line->candidates[1].device, "cpu");
    ck_assert_ptr_null(line->candidates[1].reason);
    ck_assert_int_eq(line->candidates[2].mode, KHUB_MODE_FALLBACK);
    ck_assert_int_eq(line->candidates[2].serves, 0);
    ck_assert_ptr_null(line->candidates[2].reason);
    ck_assert_str_eq(line->kernel, fake_repository("weighed"));
    ck_assert_ptr_null(line->repository);
    ck_assert_ptr_null(line->commit);
    ck_assert_int_eq(line->version, 1);
    ck_assert_ptr_nonnull(strstr(line->build, "weighed/build/tvm-ffi01-cpu-"));
    line = khub_report_at(report, GELU2);
    ck_assert_uint_eq(line->candidate_count, 1);
    ck_assert_str_eq(line->candidates[0].device, "*");
    ck_assert_int_eq(khub_report_at(report, SILU)->version, -1);
    ck_assert_uint_eq(khub_report_at(report, SILU)->candidate_count, 0);
    khub_report_free(report);
    khub_layers_free(m.layers);
}
END_TEST

START_TEST(no_fallback)
{
    khub_error err = {0};
    struct model m;
    const khub_filling *before[SLOTS], *after[SLOTS];
    make(&m);
    fillings_of(before, &m);
    khub_kernelize_options options = options_of("{\"RMSNorm\":\"./no\",\"GeLU\":\"$\",\"SiLU\":\"\"}");
    options.fallback = KHUB_FALLBACK_REFUSE;
    ck_assert_int_eq(khub_kernelize(m.layers, &options, NULL, &err), KHUB_E_NOBUILD);
    ck_assert_ptr_nonnull(strstr(err.message, "RMSNorm (2 of 2 slots, the first a.norm): ./no"));
    ck_assert_ptr_nonnull(
        strstr(err.message, "ReLU (1 of 1 slots, the first a.relu): the mapping has no kernel"));
    ck_assert_ptr_null(strstr(err.message, "SiLU")); /* on purpose */
    ck_assert_ptr_null(strstr(err.message, "GeLU"));
    fillings_of(after, &m);
    ck_assert_mem_eq(before, after, sizeof(before));
    khub_error_clear(&err);
    options = options_of("{\"RMSNorm\":\"$\",\"GeLU\":\"$\",\"SiLU\":\"\",\"ReLU\":\"$\"}");
    options.fallback = KHUB_FALLBACK_REFUSE;
    ck_khub_ok(khub_kernelize(m.layers, &options, NULL, &err), &err);
    options.fallback = (khub_fallback)7;
    ck_khub_fails(khub_kernelize(m.layers, &options, NULL, &err), &err, KHUB_E_INVAL, "fallback is 7");
    khub_layers_free(m.layers);
}
END_TEST

/* Where a run is served, its parts needn't be; where it isn't, they are what is missed. */
START_TEST(runs_and_their_parts)
{
    khub_error err = {0};
    khub_layers *layers;
    khub_slot *part[2], *run;
    float numbers[2] = {3, 1}, out[2];
    const int64_t shape[1] = {2};
    khub_tensor weight = khub_tensor_f32(numbers, 1, shape);
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    for (int i = 0; i < 2; i++)
        ck_khub_ok(khub_layers_add(layers, i ? "m.act" : "m.norm", i ? "GeLU" : "RMSNorm",
                                   (khub_function){standard, NULL}, &f32, &part[i], &err),
                   &err);
    ck_khub_ok(khub_layers_add_run(layers, "m", "RMSNorm", (khub_function){standard, NULL}, &f32, part, 2,
                                   &run, &err),
               &err);
    ck_khub_ok(khub_slot_bind(part[0], "weight", &weight, &err), &err);
    ck_khub_ok(khub_slot_bind(run, "weight", &weight, &err), &err);
    khub_kernelize_options options = options_of("{\"RMSNorm\":\"$\"}");
    options.fallback = KHUB_FALLBACK_REFUSE;
    ck_khub_ok(khub_kernelize(layers, &options, NULL, &err), &err);
    ck_assert_int_eq(times_prepared(), 1);
    ck_khub_ok(call(run, out, &err), &err);
    ck_assert_float_eq(out[0], 6);
    options = options_of("{}");
    options.fallback = KHUB_FALLBACK_REFUSE;
    ck_assert_int_eq(khub_kernelize(layers, &options, NULL, &err), KHUB_E_NOBUILD);
    ck_assert_ptr_nonnull(strstr(err.message, "RMSNorm (1 of 2 slots, the first m.norm)"));
    ck_assert_ptr_nonnull(strstr(err.message, "GeLU (1 of 1 slots"));
    khub_layers_free(layers);
}
END_TEST

static int notices;
static void count_notice(void *user, const khub_log_record *record)
{
    (void)user;
    notices += record->level == KHUB_LOG_NOTICE && strstr(record->text, "does again what failed") != NULL;
}

START_TEST(a_failing_kernel)
{
    khub_error err = {0};
    struct model m;
    float out[2], *x = out;
    const int64_t shape[1] = {2};
    make(&m);
    khub_set_log(count_notice, NULL);
    khub_kernelize_options options = options_of("{\"ReLU\":\"$\"}");
    khub_report_free(kernelize(&m, &options));
    ck_khub_fails(call(m.slot[RELU], out, &err), &err, KHUB_E_KERNEL, "a.relu (");
    ck_assert_int_eq(standard_calls, 0);
    options.on_error = KHUB_ON_ERROR_STANDARD;
    khub_report_free(kernelize(&m, &options));
    for (int i = 1; i <= 3; i++) {
        ck_khub_ok(call(m.slot[RELU], out, &err), &err);
        ck_assert_float_eq(out[0], 2);
        ck_assert_float_eq(out[1], 3);
        ck_assert_uint_eq(khub_slot_retried(m.slot[RELU]), i);
    }
    ck_assert_int_eq(notices, 1);
    /* in place: the kernel has overwritten x[0] before it fails */
    khub_tensor t = khub_tensor_f32(x, 1, shape);
    const khub_value args[2] = {khub_arg_tensor(&t), khub_arg_tensor(&t)};
    x[0] = 10, x[1] = 20;
    ck_khub_ok(khub_slot_call(m.slot[RELU], args, 2, &err), &err);
    ck_assert_float_eq(x[0], 11);
    ck_assert_float_eq(x[1], 21);
    /* every other element of a row, backwards, the output shifted by one into it */
    float row[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    int64_t back[1] = {-2};
    const int64_t four[1] = {4};
    khub_tensor in = khub_tensor_f32(&row[8], 1, four), to = khub_tensor_f32(&row[1], 1, four);
    in.strides = back;
    const khub_value strided[2] = {khub_arg_tensor(&to), khub_arg_tensor(&in)};
    khub_kept *kept;
    ck_khub_ok(khub_filling_keep(&kept, m.slot[RELU], khub_slot_filling(m.slot[RELU]), strided, 2, &err),
               &err);
    for (int i = 1; i < 9; i++)
        row[i] = -1;
    khub_kept_fail(kept, &err);
    standard_calls = 0;
    ck_khub_ok(khub_kept_settle(kept, m.slot[RELU], strided, 2, &err), &err);
    ck_assert_int_eq(standard_calls, 1);
    ck_assert_float_eq(row[8], 8); /* put back; and what lies between stays as it is */
    ck_assert_float_eq(row[7], -1);
    ck_assert_float_eq(row[5], -1);
    /* a wrong call is nobody's failure */
    ck_khub_fails(khub_slot_call(m.slot[RELU], args, 1, &err), &err, KHUB_E_INVAL, "takes 2 arguments");
    ck_khub_ok(khub_layers_disable(m.layers, "a.relu", 1, &err), &err);
    ck_khub_ok(khub_slot_call(m.slot[RELU], args, 2, &err), &err);
    ck_assert_uint_eq(khub_slot_retried(m.slot[RELU]), 5);
    khub_layers_free(m.layers);
}
END_TEST

/* From here on, whoever opens a file or a connection ends. */
static int forbid_opening(void)
{
    static const int calls[] = {SYS_openat, SYS_socket, SYS_connect
#ifdef SYS_open
                                ,
                                SYS_open
#endif
    };
    enum { CALLS = sizeof(calls) / sizeof(*calls) };
    struct sock_filter rules[CALLS + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (size_t i = 0; i < CALLS; i++)
        rules[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
                                                    (unsigned char)(CALLS - i), 0);
    rules[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    rules[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {CALLS + 3, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* L6, with the kernels that khub brings along, too. */
START_TEST(the_first_call_opens_nothing)
{
    struct model m;
    float out[2];
    make(&m);
    khub_kernelize_options options = options_of("{\"RMSNorm\":\"$\",\"GeLU\":\"khub/activation\"}");
    options.fallback = KHUB_FALLBACK_NAMED;
    khub_report_free(kernelize(&m, &options));
    for (int opens = 0; opens <= 1; opens++) {
        pid_t child = fork();
        if (child == 0) {
            if (!forbid_opening()) _exit(2);
            if (opens) fclose(fopen("/dev/null", "r"));
            int failed =
                call(m.slot[NORM], out, NULL) != KHUB_OK || call(m.slot[GELU2], out, NULL) != KHUB_OK;
            _exit(failed);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(opens ? WIFSIGNALED(status) : status == 0, "%d: %#x", opens, (unsigned)status);
    }
    khub_layers_free(m.layers);
}
END_TEST

static int kernelize_often(void *user, khub_error *err)
{
    struct model *m = user;
    khub_report *report = NULL;
    khub_mapping *parsed;
    khub_kernelize_options options;
    KHUB_INIT(&options);
    options.on_error = KHUB_ON_ERROR_STANDARD;
    int rc = khub_mapping_parse(&parsed, mapping(everything), NULL, err);
    if (rc != KHUB_OK) return rc;
    options.mapping = parsed;
    rc = khub_kernelize(m->layers, &options, &report, err);
    khub_report_free(report);
    float out[2];
    if (rc == KHUB_OK) rc = call(m->slot[RELU], out, err);
    khub_slot **found = NULL;
    size_t count;
    if (rc == KHUB_OK) rc = khub_layers_match(&found, &count, m->layers, "a.*", err);
    khub_free(found);
    khub_mapping_free(parsed);
    khub_standardize(m->layers);
    return rc;
}

START_TEST(every_allocation_fails_in_turn)
{
    struct model m;
    make(&m);
    khub_kernel_close(fake_get("weighed"));
    fm_fail_each_own(kernelize_often, &m);
    for (int i = 0; i < SLOTS; i++)
        ck_assert(khub_slot_filling(m.slot[i])->function.call == standard);
    khub_layers_free(m.layers);
}
END_TEST

UNIT("incremental", a_second_time_nothing_happens, a_second_time_costs_no_memory_per_slot,
     one_slot_that_cant_be_prepared, promises_and_modes, the_device_of_the_slots, candidates_are_reported,
     no_fallback, runs_and_their_parts, a_failing_kernel, the_first_call_opens_nothing,
     every_allocation_fails_in_turn)
