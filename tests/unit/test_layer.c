/* Slots and kernelize. What a kernel from a repository does in a slot is in tests/cli/test_embed.py and
 * test_kernelize.c. */
#include "unit.h"

#include "mappings.h"
#include "base/memory.h"
#include "layer/slot.h"

#include <khub/khub.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static khub_value seen[KHUB__MAX_ARGS];
static int calls;

static int record(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)result;
    memcpy(seen, args, (size_t)n * sizeof(*args));
    calls++;
    return self ? khub_raise("ValueError", "%s", (const char *)self) : 0;
}

static const khub_slot_options f32 = {sizeof(f32), {KHUB_DTYPE_FLOAT, 32, 1}, NULL, NULL, 0};

static khub_layers *two_slots(khub_slot **norm, khub_slot **act, khub_error *err)
{
    khub_layers *layers;
    khub_function f = {record, NULL};
    ck_khub_ok(khub_layers_new(&layers, err), err);
    ck_khub_ok(khub_layers_add(layers, "a.norm", "RMSNorm", f, &f32, norm, err), err);
    ck_khub_ok(khub_layers_add(layers, "a.act", "GeLU", f, &f32, act, err), err);
    return layers;
}

START_TEST(slots_call_what_is_in_them)
{
    khub_error err = {0};
    khub_slot *norm, *act;
    khub_layers *layers = two_slots(&norm, &act, &err);
    const khub_value args[4] = {khub_arg_int(1), khub_arg_int(2), khub_arg_int(3), khub_arg_float(4)};
    ck_khub_ok(khub_slot_call(norm, args, 4, &err), &err);
    ck_assert_int_eq(seen[2].as.i64, 3);
    ck_khub_fails(khub_slot_call(norm, args, 3, &err), &err, KHUB_E_INVAL,
                  "a.norm: RMSNorm takes 4 arguments, 3");
    ck_khub_fails(khub_layers_add(layers, "a.norm", "GeLU", (khub_function){record, NULL}, &f32, NULL, &err),
                  &err, KHUB_E_INVAL, "a slot of this path");
    ck_khub_fails(khub_layers_add(layers, "b", "Gelu", (khub_function){record, NULL}, &f32, NULL, &err), &err,
                  KHUB_E_INVAL, "no layer \"Gelu\"");
    ck_khub_fails(khub_slot_bind(norm, "bias", NULL, &err), &err, KHUB_E_INVAL, "no argument \"bias\"");
    khub_layers_free(layers);
    khub_layers_free(NULL);
}
END_TEST

START_TEST(a_failing_function_is_told_with_its_slot)
{
    khub_error err = {0};
    khub_layers *layers;
    khub_slot *slot;
    char words[] = "x is too long";
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    ck_khub_ok(khub_layers_add(layers, "enc.0", "GeLU", (khub_function){record, words}, &f32, &slot, &err),
               &err);
    const khub_value args[2] = {khub_arg_none(), khub_arg_none()};
    ck_khub_fails(khub_slot_call(slot, args, 2, &err), &err, KHUB_E_KERNEL, "enc.0 (standard): ");
    ck_assert_int_eq(calls, 1);
    khub_slot_call(slot, args, 2, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "x is too long"));
    khub_layers_free(layers);
}
END_TEST

START_TEST(a_filling_reorders_and_replaces)
{
    khub_error err = {0};
    khub_slot *norm, *act;
    khub_layers *layers = two_slots(&norm, &act, &err);
    khub_filling *filling = khub__calloc(1, sizeof(*filling));
    filling->function = (khub_function){record, NULL};
    const int32_t order[4] = {3, 2, 1, 0};
    memcpy(filling->order, order, sizeof(order));
    filling->uses = 1;
    filling->prepared_arg = 2;
    filling->returned_arg = -1;
    khub__filling_complete(filling, khub__layer_find("RMSNorm"));
    khub__slot_fill(layers, norm, filling);
    const khub_value args[4] = {khub_arg_int(10), khub_arg_int(11), khub_arg_int(12), khub_arg_float(13)};
    ck_khub_ok(khub_slot_call(norm, args, 4, &err), &err);
    ck_assert_double_eq(seen[0].as.f64, 13);
    ck_assert_ptr_eq(seen[1].as.tensor, &filling->prepared.array.tensor);
    ck_assert_int_eq(seen[3].as.i64, 10);
    khub_standardize(layers);
    ck_khub_ok(khub_slot_call(norm, args, 4, &err), &err);
    ck_assert_int_eq(seen[0].as.i64, 10);
    khub_layers_free(layers);
}
END_TEST

START_TEST(misses_are_reasons)
{
    khub_error err = {0};
    khub_slot *norm, *act;
    khub_layers *layers = two_slots(&norm, &act, &err);
    khub_report *report;
    khub_kernelize_options options;
    KHUB_INIT(&options);
    options.mapping = mapping_of("{\"GeLU\": \"/nowhere/at-all\"}");
    ck_khub_ok(khub_kernelize(layers, &options, &report, &err), &err);
    ck_assert_uint_eq(khub_report_count(report), 2);
    ck_assert_uint_eq(khub_report_filled(report), 0);
    ck_assert_str_eq(khub_report_at(report, 0)->reason, "the mapping has no kernel for RMSNorm");
    ck_assert_ptr_nonnull(strstr(khub_report_at(report, 1)->reason, "/nowhere/at-all"));
    ck_assert_ptr_null(khub_report_at(report, 2));
    ck_assert_int_eq(khub_report_at(report, 0)->mapped, 0);
    ck_assert_int_eq(khub_report_at(report, 1)->mapped, 1);
    khub_report_free(report);
    khub_layers_free(layers);
}
END_TEST

/* Required is what the mapping names, and that somebody wants it. */
START_TEST(required_is_what_is_named)
{
    static const struct {
        const char *mapping, *words, *unsaid;
    } table[] = {
        {"{\"GeLU\": \"/nowhere/at-all\"}", "GeLU (1 of 1 slots, the first a.act): /nowhere/at-all",
         "RMSNorm"},
        {"{\"GeLU\": 1}", "mapping: GeLU: is an integer", "RMSNorm"},
        {"{\"Softmax\": \"khub/softmax\"}", "Softmax: no slot is of this layer", "GeLU"},
        {"{\"Gelu\": \"khub/activation\"}", "Gelu: no slot is of this layer", "RMSNorm"},
        {"{\"GeLU(a.act.x)\": \"khub/activation\"}",
         "GeLU(a.act.x): none of the 1 slots of GeLU has such a path, as a.act has", "RMSNorm"},
        {"{\"Softmax(a.**)\": \"khub/softmax\"}", "Softmax(a.**): no slot is of this layer", "GeLU"},
        {"{\"RMSNorm(a.*) + GeLU(a.*)\": \"khub/norm\"}", "RMSNorm(a.*) + GeLU(a.*): no slots are such a run",
         "path"},
        {"{\"RMSNorm(a.*) + GeLU(a.b)\": \"khub/norm\"}",
         "RMSNorm(a.*) + GeLU(a.b): none of the 1 slots of GeLU has such a path, as a.act has",
         "RMSNorm has"},
        {"{\"GeLU(a.act.x)\": \"\"}", NULL, NULL},
        {"{\"GeLU\": \"\"}", NULL, NULL},
        {"{}", NULL, NULL},
    };
    khub_error err = {0};
    khub_slot *norm, *act;
    khub_layers *layers = two_slots(&norm, &act, &err);
    khub_kernelize_options options;
    KHUB_INIT(&options);
    options.fallback = KHUB_FALLBACK_NAMED;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        options.mapping = mapping_of(table[i].mapping);
        if (!table[i].words) {
            ck_khub_ok(khub_kernelize(layers, &options, NULL, &err), &err);
            continue;
        }
        int rc = khub_kernelize(layers, &options, NULL, &err);
        ck_assert_int_eq(rc, KHUB_E_NOBUILD);
        ck_assert_msg(strstr(err.message, table[i].words) && !strstr(err.message, table[i].unsaid), "%s",
                      err.message);
        khub_error_clear(&err);
    }
    khub_layers_free(layers);
}
END_TEST

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(mapping_files_are_named)
{
    char file[] = "/tmp/khub-mapping-XXXXXX", words[100];
    khub_error err = {0};
    khub_slot *norm, *act;
    khub_report *report;
    khub_layers *layers = two_slots(&norm, &act, &err);
    khub_kernelize_options options;
    KHUB_INIT(&options);
    khub_mapping *mapping;
    close(mkstemp(file));
    write_text(file, "{\n\"GeLU\": \n}");
    snprintf(words, sizeof(words), "%s:3: not valid JSON", file);
    ck_khub_fails(khub_mapping_read(&mapping, file, &err), &err, KHUB_E_FORMAT, words);
    write_text(file, "{\"GeLU\": {}}");
    ck_khub_ok(khub_mapping_read(&mapping, file, &err), &err);
    options.mapping = mapping;
    ck_khub_ok(khub_kernelize(layers, &options, &report, &err), &err);
    snprintf(words, sizeof(words), "%s: GeLU: \"kernel\" is missing", file);
    ck_assert_str_eq(khub_report_at(report, 1)->reason, words);
    khub_report_free(report);
    khub_mapping_free(mapping);
    remove(file);
    ck_khub_fails(khub_mapping_read(&mapping, file, &err), &err, KHUB_E_NOTFOUND, file);
    khub_layers_free(layers);
}
END_TEST

START_TEST(the_environment_forbids)
{
    static const char *const sets[][2] = {{"USE_HUB_KERNELS", "0"},
                                          {"USE_HUB_KERNELS", "off"},
                                          {"USE_HUB_KERNELS", "NO"},
                                          {"DISABLE_KERNEL_MAPPING", "1"}};
    khub_error err = {0};
    khub_slot *norm, *act;
    khub_layers *layers = two_slots(&norm, &act, &err);
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
        khub_report *report;
        setenv(sets[i][0], sets[i][1], 1);
        ck_khub_ok(khub_kernelize(layers, NULL, &report, &err), &err);
        ck_assert_ptr_nonnull(strstr(khub_report_at(report, 0)->reason, sets[i][0]));
        khub_report_free(report);
        unsetenv(sets[i][0]);
    }
    khub_layers_free(layers);
}
END_TEST

START_TEST(layer_arguments)
{
    ck_assert_str_eq(khub_layer_arg("AddLayerNorm", 6), "eps");
    ck_assert_ptr_null(khub_layer_arg("AddLayerNorm", 7));
    ck_assert_ptr_null(khub_layer_arg("Nope", 0));
    const khub__layer_def *norm = khub__layer_find("AddLayerNorm");
    ck_assert_int_eq(norm->args[0].is_output && norm->args[1].is_output, 1);
    for (int32_t i = 2; i < norm->arg_count; i++)
        ck_assert_int_eq(norm->args[i].is_output, 0);
    /* what a layer makes stands first and is called out or …_out */
    for (size_t i = 0; i < KHUB__LAYERS; i++) {
        const khub__layer_def *layer = khub__layer_at(i);
        ck_assert_msg(layer->args[0].is_output, "%s", layer->name);
        for (int32_t k = 0; k < layer->arg_count; k++)
            ck_assert_msg(!strstr(layer->args[k].name, "out") || layer->args[k].is_output, "%s", layer->name);
    }
}
END_TEST

START_TEST(slots_by_pattern)
{
    static const char *const paths[] = {"e.0.a.dense", "e.0.b", "e.1.a.dense", "e.1.b", "pool"};
    static const struct {
        const char *pattern, *taken; /* as bits of the paths, the first one first */
    } table[] = {{NULL, "11111"},       {"**", "11111"},          {"e.*.b", "01010"}, {"e.**", "11110"},
                 {"**.dense", "10100"}, {"e.1.a.dense", "00100"}, {"e.*", "00000"},   {"*", "00001"},
                 {"E.*.b", "00000"},    {"pool", "00001"}};
    khub_error err = {0};
    khub_layers *layers;
    khub_slot **found;
    size_t count;
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    for (size_t i = 0; i < 5; i++)
        ck_khub_ok(khub_layers_add(layers, paths[i], "GeLU", (khub_function){record, NULL}, &f32, NULL, &err),
                   &err);
    ck_assert_uint_eq(khub_layers_count(layers), 5);
    ck_assert_str_eq(khub_slot_path(khub_layers_at(layers, 4)), "pool");
    ck_assert_ptr_null(khub_layers_at(layers, 5));
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char taken[6] = "00000";
        ck_khub_ok(khub_layers_match(&found, &count, layers, table[i].pattern, &err), &err);
        for (size_t k = 0; k < count; k++)
            for (int at = 0; at < 5; at++)
                if (!strcmp(khub_slot_path(found[k]), paths[at])) taken[at] = '1';
        ck_assert_ptr_null(found[count]);
        ck_assert_str_eq(taken, table[i].taken);
        khub_free(found);
    }
    static const char *const broken[] = {"", "e..b", ".e", "e.", "e.a*", "e)+Linear(e"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
        ck_khub_fails(khub_layers_match(&found, &count, layers, broken[i], &err), &err, KHUB_E_INVAL,
                      broken[i]);
        ck_assert_ptr_null(found);
    }
    ck_khub_fails(khub_layers_disable(layers, "e.*", 1, &err), &err, KHUB_E_NOTFOUND,
                  "e.*: none of the 5 slots has such a path; the first is e.0.a.dense");
    khub_layers_free(layers);
}
END_TEST

static int kernel_calls;
static int kernel(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)args, (void)n, (void)result;
    kernel_calls++;
    return 0;
}

START_TEST(a_disabled_slot_keeps_its_kernel)
{
    khub_error err = {0};
    khub_slot *norm, *act;
    khub_layers *layers = two_slots(&norm, &act, &err);
    const khub_value args[2] = {khub_arg_none(), khub_arg_none()};
    khub_filling *filling = khub__calloc(1, sizeof(*filling));
    *filling = (khub_filling){
        .function = {kernel, NULL}, .uses = 1, .in_order = 1, .prepared_arg = -1, .returned_arg = -1};
    khub__filling_complete(filling, khub__layer_find("GeLU"));
    khub__slot_fill(layers, act, filling);
    ck_khub_ok(khub_layers_disable(layers, "*.act", 1, &err), &err);
    ck_khub_ok(khub_slot_call(act, args, 2, &err), &err);
    ck_assert_int_eq(calls * 10 + kernel_calls, 10);
    ck_khub_ok(khub_layers_disable(layers, NULL, 0, &err), &err);
    ck_khub_ok(khub_slot_call(act, args, 2, &err), &err);
    ck_assert_int_eq(calls * 10 + kernel_calls, 11);
    ck_assert_ptr_eq(khub_slot_filling(act), filling);
    khub_layers_free(layers);
}
END_TEST

UNIT("layer", slots_call_what_is_in_them, a_failing_function_is_told_with_its_slot,
     a_filling_reorders_and_replaces, misses_are_reasons, required_is_what_is_named, mapping_files_are_named,
     the_environment_forbids, layer_arguments, slots_by_pattern, a_disabled_slot_keeps_its_kernel)
