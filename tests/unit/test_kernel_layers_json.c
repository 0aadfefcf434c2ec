/* layers.json: docs/layers.md is the oracle. */
#include "failing_memory.h"

#include "kernel/layers_json.h"

#include <khub/log.h>

#define FILE_OF(entry) "{\"layers\": {\"Linear\": " entry "}}"

static const char whole[] =
    FILE_OF("{\"layer\": \"Linear\", \"function\": \"linear_packed\", \"args\": [\"out\", \"x\", \"weight\", "
            "\"bias\"],"
            " \"dtypes\": [\"float32\"], \"backward\": false, \"deterministic\": true,"
            " \"slices\": {\"rows\": [\"out:0\", \"x:0\"],"
            "              \"columns\": [\"out:1\", \"weight:0/16\", \"bias:0\"]},"
            " \"prepare\": {\"weight\": \"linear_pack\"},"
            " \"tolerance\": {\"float32\": {\"ulp\": 0.5}, \"bfloat16\": {\"relative\": 0.25}},"
            " \"shapes\": {\"x:-1\": [64, 128], \"weight:0\": {\"max\": 8, \"multiple\": 2}, \"out:1\": 7}}");

START_TEST(the_example_of_the_documentation)
{
    khub__layers layers;
    khub_error err = {0};
    ck_khub_ok(khub__layers_parse(&layers, whole, strlen(whole), "layers.json", &err), &err);
    ck_assert_uint_eq(layers.count, 1);
    ck_assert_ptr_null(khub__layers_find(&layers, "linear"));
    const khub_layer_spec *spec = khub__layers_find(&layers, "Linear");
    ck_assert_str_eq(spec->layer, "Linear");
    ck_assert_str_eq(spec->serves, "Linear");
    ck_assert_str_eq(spec->function, "linear_packed");
    ck_assert_uint_eq(spec->arg_count, 4);
    static const char *const args[] = {"out", "x", "weight", "bias"};
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(spec->args[i], args[i]);
    ck_assert_str_eq(spec->dtypes[0], "float32");
    ck_assert_ptr_null(spec->dtypes[1]);
    ck_assert_int_eq(spec->backward, 0);
    ck_assert_int_eq(spec->deterministic, 1);
    ck_assert_uint_eq(spec->slice_count, 2);
    const khub_slice_axis *rows = &spec->slices[0], *columns = &spec->slices[1];
    ck_assert_str_eq(rows->axis, "rows");
    ck_assert_uint_eq(rows->part_count, 2);
    ck_assert_str_eq(rows->parts[0].arg, "out");
    ck_assert_int_eq(rows->parts[0].dim, 0);
    ck_assert_int_eq(rows->parts[0].unit, 1);
    ck_assert_str_eq(columns->axis, "columns");
    ck_assert_uint_eq(columns->part_count, 3);
    ck_assert_str_eq(columns->parts[1].arg, "weight");
    ck_assert_int_eq(columns->parts[1].dim, 0);
    ck_assert_int_eq(columns->parts[1].unit, 16);
    ck_assert_str_eq(spec->prepare_arg, "weight");
    ck_assert_str_eq(spec->prepare_function, "linear_pack");
    ck_assert_uint_eq(spec->tolerance_count, 2);
    ck_assert_str_eq(spec->tolerances[0].dtype, "float32");
    ck_assert_double_eq(spec->tolerances[0].ulp, 0.5);
    ck_assert_double_lt(spec->tolerances[0].relative, 0);
    ck_assert_str_eq(spec->tolerances[1].dtype, "bfloat16");
    ck_assert_double_lt(spec->tolerances[1].ulp, 0);
    ck_assert_double_eq(spec->tolerances[1].relative, 0.25);
    ck_assert_uint_eq(spec->shape_count, 3);
    const khub_shape_rule *rules = spec->shapes;
    ck_assert_str_eq(rules[0].arg, "x");
    ck_assert_int_eq(rules[0].dim, -1);
    ck_assert(rules[0].value_count == 2 && rules[0].values[0] == 64 && rules[0].values[1] == 128);
    ck_assert_str_eq(rules[1].arg, "weight");
    ck_assert(rules[1].dim == 0 && !rules[1].values && rules[1].min == 0 && rules[1].max == 8 &&
              rules[1].multiple == 2);
    ck_assert(rules[2].dim == 1 && rules[2].min == 7 && rules[2].max == 7 && rules[2].multiple == 1);
    khub__layers_free(&layers);
}
END_TEST

START_TEST(the_shortest_entry)
{
    static const char text[] =
        FILE_OF("{\"function\": \"f\", \"args\": null, \"slices\": {\"rows\": [\"anything:7\"]}}");
    khub__layers layers;
    khub_error err = {0};
    ck_khub_ok(khub__layers_parse(&layers, text, strlen(text), "layers.json", &err), &err);
    const khub_layer_spec *spec = layers.specs[0];
    ck_assert_ptr_null(spec->serves);
    ck_assert_ptr_null(spec->args);
    ck_assert_uint_eq(spec->arg_count, 0);
    ck_assert_ptr_null(spec->dtypes);
    ck_assert_ptr_null(spec->prepare_arg);
    ck_assert_int_eq(spec->deterministic, 0);
    ck_assert_str_eq(spec->slices[0].parts[0].arg, "anything");
    ck_assert_int_eq(spec->slices[0].parts[0].dim, 7);
    khub__layers_free(&layers);
}
END_TEST

START_TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *text, *words;
        int status;
    } table[] = {
        {"{}", "\"layers\" is missing", KHUB_E_FORMAT},
        {"{\"layers\": []}", "\"layers\" is an array, an object is expected", KHUB_E_FORMAT},
        {FILE_OF("[]"), "f.json: Linear: is an array, an object is expected", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"tolerance\": 4}"), "\"tolerance\" is", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"tolerance\": {\"float33\": {\"ulp\": 4}}}"),
         "\"tolerance\" has \"float33\", which is no dtype", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"tolerance\": {\"float32\": {\"ulp\": -1}}}"),
         "f.json: Linear: \"tolerance\": \"float32\" isn't {\"ulp\": NUMBER}", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"tolerance\": {\"float32\": 4}}"), "isn't {\"ulp\": NUMBER}",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"tolerance\": {\"float32\": {\"ulp\": 4, \"relative\": 1}}}"),
         "isn't {\"ulp\": NUMBER} or {\"relative\": NUMBER}", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"tolerance\": {\"float32\": {\"relative\": -1}}}"),
         "isn't {\"ulp\": NUMBER} or {\"relative\": NUMBER}", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"layer\": 1}"), "\"layer\" is an integer, a string is expected",
         KHUB_E_FORMAT},
        {FILE_OF("{}"), "f.json: Linear: \"function\" is missing", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"\"}"), "\"function\" is missing", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": 1}"), "\"function\" is an integer, a string is expected", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"args\": \"x\"}"), "\"args\" is a string, an array is expected",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"args\": []}"), "\"args\" is empty", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"args\": [\"x\", 1]}"), "\"args\" holds something that isn't a name",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"args\": [\"x\", \"y\", \"x\"]}"), "\"args\" has \"x\" twice",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"dtypes\": []}"), "\"dtypes\" is empty", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"deterministic\": 1}"),
         "\"deterministic\" is an integer, true or false is expected", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": []}"), "\"slices\" is an array", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": \"x:0\"}}"), "\"r\" is a string, a list",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": []}}"), "too short", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [0]}}"), "isn't text", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\"x\"]}}"), "has \"x\", ARG:AXIS",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\":0\"]}}"), "has \":0\", ARG:AXIS",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\"x:\"]}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\"x:8\"]}}"), "axes 0 to 7", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\"x:-1\"]}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\"x:0/0\"]}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\"x:0/99999999999\"]}}"), "ARG:AXIS",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\"x:0/4x\"]}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\"x:0/\"]}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"args\": [\"x\"], \"slices\": {\"r\": [\"y:0\"]}}"),
         "\"y\" isn't in \"args\"", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"slices\": {\"r\": [\"x:0\"], \"c\": [\"y:0\", \"x:0/2\"]}}"),
         "names axis 0 of \"x\" twice", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": []}"), "\"shapes\" is an array", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x\": 1}}"), "has \"x\", ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:\": 1}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\":0\": 1}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:8\": 1}}"), "axes 0 to 7, or -1 to -8",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:-0\": 1}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:-9\": 1}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0/2\": 1}}"), "ARG:AXIS", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": -1}}"), "is an extent, a list", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": 1.5}}"), "is an extent", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": []}}"), "is an extent", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": [1, \"2\"]}}"), "is an extent", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": {}}}"), "is an extent", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": {\"most\": 2}}}"), "is an extent",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": {\"min\": 3, \"max\": 2}}}"), "is an extent",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": {\"multiple\": 0}}}"), "is an extent",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": {\"min\": 1, \"other\": 2}}}"), "is an extent",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"shapes\": {\"x:0\": null}}"), "is an extent", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"args\": [\"x\"], \"shapes\": {\"y:0\": 1}}"),
         "\"y\" isn't in \"args\"", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"prepare\": \"x\"}"), "\"prepare\" is a string", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"prepare\": {}}"), "names 0 arguments", KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"prepare\": {\"a\": \"p\", \"b\": \"q\"}}"), "names 2 arguments",
         KHUB_E_UNSUPPORTED},
        {FILE_OF("{\"function\": \"f\", \"prepare\": {\"a\": 1}}"), "must give a function's name",
         KHUB_E_FORMAT},
        {FILE_OF("{\"function\": \"f\", \"args\": [\"x\"], \"prepare\": {\"a\": \"p\"}}"),
         "\"a\", which isn't in \"args\"", KHUB_E_FORMAT},
        {"{\"layers\": {\"A\": {\"function\": \"f\"}, \"A\": {\"function\": \"f\"}}}", "duplicate",
         KHUB_E_FORMAT},
    };
    khub_error err = {0};
    khub__layers layers;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        ck_khub_fails(khub__layers_parse(&layers, table[i].text, strlen(table[i].text), "f.json", &err), &err,
                      table[i].status, table[i].words);
        ck_assert_ptr_null(layers.specs);
    }
}
END_TEST

static void collect(void *user, const khub_log_record *record)
{
    char *all = user;
    strncat(all, record->text, 900 - strlen(all));
    ck_assert_int_eq(record->level, KHUB_LOG_NOTICE);
    ck_assert_str_eq(record->object, "inline");
}

START_TEST(unknown_keys_are_noticed)
{
    khub_error err = {0};
    json_t *entry = json_loads("{\"kernel\": \"./x\", \"function\": \"f\", \"colour\": 1}", 0, NULL);
    khub_layer_spec *spec;
    char said[1000] = "";
    khub_set_log(collect, said);
    ck_khub_ok(khub__layer_spec_parse(&spec, "GeLU", entry, "inline", "kernel", &err), &err);
    khub_set_log(NULL, NULL);
    json_decref(entry);
    ck_assert_str_eq(said, "unknown key \"colour\" is ignored");
    ck_assert_str_eq(spec->function, "f"); /* a copy: the JSON is gone */
    ck_assert_str_eq(spec->layer, "GeLU");
    khub_free(spec);
}
END_TEST

static int parse(void *user, khub_error *err)
{
    (void)user;
    khub__layers layers;
    int rc = khub__layers_parse(&layers, whole, strlen(whole), "layers.json", err);
    khub__layers_free(&layers);
    return rc;
}

START_TEST(every_allocation_fails)
{
    fm_fail_each(parse, NULL);
}
END_TEST

UNIT("kernel_layers_json", the_example_of_the_documentation, the_shortest_entry, what_is_wrong_is_named,
     unknown_keys_are_noticed, every_allocation_fails)
