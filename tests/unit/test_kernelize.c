/* kernelize with kernels from repositories: the fake kernel "good" in place of the standard function. Cases
 * L1, L2, L4, L5 and B1 of the user reports, as far as one mode and one device go. */
#include "unit.h"

#include "mappings.h"
#include "failing_memory.h"
#include "fakes.h"

#include <khub/khub.h>

#include <stdio.h>

static int standard_called;

static int standard(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)args, (void)n, (void)result;
    standard_called++;
    return 0;
}

static const khub_slot_options f32 = {sizeof(f32), {KHUB_DTYPE_FLOAT, 32, 1}, NULL, NULL, 0};

/* A mapping text with $ standing for the path of the fake repository. */
static const char *mapping(const char *pattern)
{
    static char text[4096];
    size_t at = 0;
    for (; *pattern; pattern++) {
        if (*pattern == '$')
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s/tests/fake/repos/good",
                                   getenv("KHUB_BINARY"));
        else
            text[at++] = *pattern;
        ck_assert_uint_lt(at, sizeof(text) - 1);
    }
    text[at] = 0;
    return text;
}

static khub_layers *slots(khub_slot **gelu, khub_slot **silu, khub_slot **relu)
{
    khub_error err = {0};
    khub_layers *layers;
    khub_function f = {standard, NULL};
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "m.gelu", "GeLU", f, &f32, gelu, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "m.silu", "SiLU", f, &f32, silu, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "m.relu", "ReLU", f, &f32, relu, &err), &err);
    return layers;
}

static khub_report *kernelize(khub_layers *layers, const char *text)
{
    khub_error err = {0};
    khub_report *report;
    khub_kernelize_options options;
    KHUB_INIT(&options);
    options.mapping = mapping_of(text);
    ck_khub_ok(khub_kernelize(layers, &options, &report, &err), &err);
    return report;
}

/* What the slot makes of 1 and 5: x and out after the call. */
static void call(const khub_slot *slot, float *x_after, float *out_after)
{
    khub_error err = {0};
    float x = 1, out = 5;
    const int64_t one[1] = {1};
    khub_tensor tx = khub_tensor_f32(&x, 1, one), tout = khub_tensor_f32(&out, 1, one);
    const khub_value args[2] = {khub_arg_tensor(&tout), khub_arg_tensor(&tx)};
    ck_khub_ok(khub_slot_call(slot, args, 2, &err), &err);
    *x_after = x;
    *out_after = out;
}

START_TEST(a_kernel_fills_a_slot_and_leaves_it)
{
    khub_slot *gelu, *silu, *relu;
    khub_layers *layers = slots(&gelu, &silu, &relu);
    float x, out;
    khub_report *report = kernelize(
        layers, mapping("{\"GeLU\": {\"kernel\": \"$\", \"function\": \"add_one\", "
                        "\"args\": [\"out\", \"x\"], \"slices\": {\"rows\": [\"out:0\", \"x:0\"]}}}"));
    ck_assert_msg(khub_report_filled(report) == 1, "%s", khub_report_at(report, 0)->reason);
    const khub_slot_report *line = khub_report_at(report, 0);
    ck_assert_str_eq(line->function, "add_one");
    ck_assert_ptr_nonnull(strstr(line->kernel, "fake/repos/good"));
    ck_assert_ptr_nonnull(strstr(line->variant, "tvm-ffi01-cpu-"));
    call(gelu, &x, &out);
    ck_assert_float_eq(out, 2);
    const khub_slot_axis *axes;
    ck_assert_uint_eq(khub_filling_axes(khub_slot_filling(gelu), &axes), 1);
    ck_assert_str_eq(axes[0].axis, "rows");
    ck_assert_int_eq(axes[0].part[1].arg, 1);
    call(silu, &x, &out);
    ck_assert_int_eq(standard_called, 1);
    khub_report_free(report);
    /* another mapping changes the slots; undoing brings back the standard function */
    report = kernelize(layers, "{}");
    ck_assert_uint_eq(khub_report_filled(report), 0);
    call(gelu, &x, &out);
    ck_assert_int_eq(standard_called, 2);
    khub_report_free(report);
    khub_standardize(layers);
    call(gelu, &x, &out);
    ck_assert_int_eq(standard_called, 3);
    khub_layers_free(layers);
}
END_TEST

/* L4: two arguments in another order, but named. */
START_TEST(named_arguments_find_their_places)
{
    khub_slot *gelu, *silu, *relu;
    khub_layers *layers = slots(&gelu, &silu, &relu);
    float x, out;
    khub_report_free(kernelize(
        layers,
        mapping("{\"GeLU\": {\"kernel\": \"$\", \"function\": \"add_one\", \"args\": [\"x\", \"out\"]}}")));
    call(gelu, &x, &out);
    ck_assert_float_eq(x, 6); /* the function's first argument is its output: x = out + 1 */
    ck_assert_float_eq(out, 5);
    khub_layers_free(layers);
}
END_TEST

/* L4, B1: one bad entry is a reason, with everything that tells whose fault it is; the others go on. */
START_TEST(a_bad_entry_stops_nobody_else)
{
    setenv("HF_HUB_OFFLINE", "1", 1);
    setenv("HF_HUB_CACHE", "/nowhere", 1);
    static const struct {
        const char *entry, *words;
    } table[] = {
        {"{\"kernel\": \"$\", \"function\": \"add_one\", \"args\": [\"out\"]}",
         "add_one for GeLU don't match"},
        {"{\"kernel\": \"$\", \"function\": \"add_one\", \"args\": [\"out\", \"x\", \"y\"]}",
         "found: out, x, y; the layer has: out, x"},
        {"{\"kernel\": \"$\", \"function\": \"add_one\", \"args\": [\"out\", \"input\"]}",
         "found: out, input"},
        {"{\"kernel\": \"$\", \"function\": \"add_two\"}", "add_two"},
        {"{\"kernel\": \"$\", \"function\": \"add_one\", \"dtypes\": [\"bfloat16\"]}",
         "in bfloat16, the slot is float32"},
        {"{\"kernel\": \"$\", \"function\": \"add_one\", \"slices\": {\"rows\": [\"weight:0\"]}}", "weight"},
        {"{\"kernel\": \"$\", \"function\": \"add_one\", \"prepare\": {\"x\": \"forty_two\"}}",
         "has not bound it"},
        {"\"$:Nope\"", "Nope"},
        {"\"org/name\"", "org/name"},
        {"\"\"", "leaves GeLU standard"},
        {"[]", "is an array"},
    };
    khub_slot *gelu, *silu, *relu;
    khub_layers *layers = slots(&gelu, &silu, &relu);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char pattern[1024];
        snprintf(pattern, sizeof(pattern),
                 "{\"SiLU\": {\"kernel\": \"$\", \"function\": \"add_one\"}, \"GeLU\": %s, "
                 "\"ReLU\": {\"kernel\": \"$\", \"function\": \"add_one\"}}",
                 table[i].entry);
        khub_report *report = kernelize(layers, mapping(pattern));
        ck_assert_uint_eq(khub_report_filled(report), 2);
        const char *reason = khub_report_at(report, 0)->reason;
        ck_assert_msg(reason && strstr(reason, table[i].words), "\"%s\" isn't in: %s", table[i].words,
                      reason ? reason : "(none)");
        khub_report_free(report);
    }
    khub_layers_free(layers);
}
END_TEST

static int notices;

static void count_notice(void *user, const khub_log_record *record)
{
    (void)user;
    notices += record->level == KHUB_LOG_NOTICE && !strcmp(record->stage, "layer");
}

/* L1: a fallback is told once per layer name, however many slots and calls. */
START_TEST(a_miss_is_told_once_per_layer)
{
    khub_error err = {0};
    khub_slot *gelu, *silu, *relu;
    khub_layers *layers = slots(&gelu, &silu, &relu);
    char path[32];
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof(path), "more.%d", i);
        ck_khub_ok(khub_layers_add(layers, path, "GeLU", (khub_function){standard, NULL}, &f32, NULL, &err),
                   &err);
    }
    khub_set_log(count_notice, NULL);
    khub_report_free(kernelize(layers, "{\"GeLU\": \"./nowhere\", \"ReLU\": \"./nowhere\", \"SiLU\": \"\"}"));
    ck_assert_int_eq(notices, 2); /* SiLU was left standard on purpose */
    float x, out;
    for (int i = 0; i < 100; i++)
        call(gelu, &x, &out);
    ck_assert_int_eq(notices, 2);
    khub_layers_free(layers);
}
END_TEST

/* What a mapping doesn't name isn't missed; what it names in vain is. */
START_TEST(only_what_is_named_is_noticed)
{
    static const struct {
        const char *mapping;
        int notices;
    } table[] = {{"{}", 0},
                 {"{\"GeLU\": {\"kernel\": \"$\", \"function\": \"add_one\"}}", 0},
                 {"{\"GeLU\": \"./nowhere\"}", 1},
                 {"{\"Softmax\": \"khub/softmax\"}", 1}};
    khub_slot *gelu, *silu, *relu;
    khub_layers *layers = slots(&gelu, &silu, &relu);
    khub_set_log(count_notice, NULL);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        notices = 0;
        khub_report_free(kernelize(layers, mapping(table[i].mapping)));
        ck_assert_int_eq(notices, table[i].notices);
    }
    setenv("USE_HUB_KERNELS", "0", 1);
    notices = 0;
    khub_report_free(kernelize(layers, NULL));
    unsetenv("USE_HUB_KERNELS");
    ck_assert_int_eq(notices, 1);
    khub_layers_free(layers);
}
END_TEST

/* Every allocation failed in turn. The kernel is open already: a library is opened once for a process. */
static int stop(void *user, const khub_progress *progress)
{
    (void)progress;
    ++*(int *)user;
    return 1;
}

/* Whoever stops the fetch of a kernel wants no slot filled, rather than the rest of them without it. */
START_TEST(a_fetch_that_is_canceled)
{
    khub_slot *gelu, *silu, *relu;
    khub_layers *layers = slots(&gelu, &silu, &relu);
    khub_report *report = (void *)&layers;
    khub_error err = {0};
    khub_hub_options hub;
    khub_kernelize_options options;
    int asked = 0;
    float x, out;
    char cache[] = "/tmp/khub-kernelize-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(cache));
    KHUB_INIT(&hub);
    hub.endpoint = "http://127.0.0.1:9"; /* nobody is there: discard isn't served any more */
    hub.cache_dir = cache;
    hub.progress = stop;
    hub.progress_user = &asked;
    KHUB_INIT(&options);
    options.mapping = mapping_of(mapping("{\"ReLU\": \"$\", \"GeLU\": \"org/other@v1\"}"));
    options.hub = &hub;
    ck_khub_fails(khub_kernelize(layers, &options, &report, &err), &err, KHUB_E_CANCELED, "");
    ck_assert_ptr_null(report);
    ck_assert_int_gt(asked, 0);
    standard_called = 0;
    call(relu, &x, &out);
    ck_assert_int_eq(standard_called, 1);
    hub.struct_size = 0;
    ck_khub_fails(khub_kernelize(layers, &options, &report, &err), &err, KHUB_E_INVAL, "khub_hub_options");
    khub_layers_free(layers);
    rmdir(cache);
}
END_TEST

static int kernelize_once(void *file, khub_error *err)
{
    khub_layers *layers = NULL;
    khub_report *report = NULL;
    khub_kernelize_options options;
    KHUB_INIT(&options);
    khub_mapping *mapping = NULL;
    int rc = khub_mapping_read(&mapping, file, err);
    options.mapping = mapping;
    if (rc == KHUB_OK) rc = khub_layers_new(&layers, err);
    if (rc == KHUB_OK)
        rc = khub_layers_add(layers, "a", "GeLU", (khub_function){standard, NULL}, &f32, NULL, err);
    if (rc == KHUB_OK)
        rc = khub_layers_add(layers, "b", "ReLU", (khub_function){standard, NULL}, &f32, NULL, err);
    if (rc == KHUB_OK) rc = khub_kernelize(layers, &options, &report, err);
    if (rc == KHUB_OK) rc = khub_kernelize(layers, &options, NULL, err);
    khub_report_free(report);
    khub_layers_free(layers);
    khub_mapping_free(mapping);
    return rc;
}

START_TEST(every_allocation_fails_in_turn)
{
    ck_assert_int_eq(chdir(fake_repository("good")), 0);
    char file[] = "/tmp/khub-mapping-XXXXXX";
    FILE *f = fdopen(mkstemp(file), "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "{\"GeLU\": {\"kernel\": \"%s\", \"function\": \"add_one\", \"args\": [\"x\", \"out\"]}}",
            fake_repository("good"));
    ck_assert_int_eq(fclose(f), 0);
    fm_fail_each_own(kernelize_once, file);
    remove(file);
}
END_TEST

UNIT("kernelize", a_kernel_fills_a_slot_and_leaves_it, named_arguments_find_their_places,
     a_bad_entry_stops_nobody_else, a_miss_is_told_once_per_layer, only_what_is_named_is_noticed,
     a_fetch_that_is_canceled, every_allocation_fails_in_turn)
