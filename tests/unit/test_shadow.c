/* Shadow mode and runs: the fake kernel's add_one (x + 1) beside a standard function that doubles. */
#include "unit.h"

#include "failing_memory.h"
#include "fakes.h"

#include <khub/khub.h>

#include <fenv.h>

static const khub_slot_options f32 = {sizeof(f32), {KHUB_DTYPE_FLOAT, 32, 1}, NULL, NULL, 0};

static int twice(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    const khub_tensor *out = khub_value_tensor(&args[0]), *x = khub_value_tensor(&args[1]);
    (void)self, (void)n, (void)result;
    for (int64_t i = 0; i < khub_tensor_count(x); i++)
        ((float *)out->data)[i] = 2 * ((const float *)x->data)[i];
    return 0;
}

static const khub_function doubling = {twice, NULL};

static khub_platform *platform; /* of all tests */
static khub_report *report;     /* of the last kernelize */

static int kernelize_from(khub_layers *layers, const char *repository, const char *function, khub_error *err)
{
    char mapping[5000];
    khub_kernelize_options options;
    KHUB_INIT(&options);
    snprintf(mapping, sizeof(mapping), "{\"ReLU\": {\"kernel\": \"%s\", \"function\": \"%s\"}}",
             fake_repository(repository), function);
    khub_mapping *parsed;
    khub_report_free(report);
    report = NULL;
    int rc = khub_mapping_parse(&parsed, mapping, NULL, err);
    if (rc != KHUB_OK) return rc;
    options.mapping = parsed;
    options.platform = platform;
    rc = khub_kernelize(layers, &options, &report, err);
    khub_mapping_free(parsed);
    return rc;
}

static int kernelize(khub_layers *layers, const char *function, khub_error *err)
{
    return kernelize_from(layers, "good", function, err);
}

/* Slots of ReLU: "m.a" and "m.b", then "r.x" and "r.y", and a run of the latter, "r", a ReLU to its caller.
 */
typedef struct model {
    khub_layers *layers;
    khub_slot *a, *b, *x, *y, *run;
} model;

static int model_open(model *m, khub_error *err)
{
    const struct {
        const char *path;
        khub_slot **slot;
    } slots[] = {{"m.a", &m->a}, {"m.b", &m->b}, {"r.x", &m->x}, {"r.y", &m->y}};
    int rc = khub_layers_new(&m->layers, err);
    for (int i = 0; rc == KHUB_OK && i < 4; i++)
        rc = khub_layers_add(m->layers, slots[i].path, "ReLU", doubling, &f32, slots[i].slot, err);
    khub_slot *const parts[] = {m->x, m->y};
    if (rc == KHUB_OK)
        rc = khub_layers_add_run(m->layers, "r", "ReLU", doubling, &f32, parts, 2, &m->run, err);
    return rc;
}

static model opened(void)
{
    model m;
    khub_error err = {0};
    if (!platform) platform = fake_platform();
    ck_khub_ok(model_open(&m, &err), &err);
    ck_khub_ok(kernelize(m.layers, "add_one", &err), &err);
    return m;
}

/* Calls a slot on `count` numbers; `out` may be `x`. */
static int call(const khub_slot *slot, float *out, float *x, int64_t count, khub_error *err)
{
    khub_tensor tout = khub_tensor_f32(out, 1, &count), tx = khub_tensor_f32(x, 1, &count);
    const khub_value args[] = {khub_arg_tensor(&tout), khub_arg_tensor(&tx)};
    return khub_slot_call(slot, args, 2, err);
}

static float result_of(const khub_slot *slot, float x)
{
    khub_error err = {0};
    ck_khub_ok(call(slot, &x, &x, 1, &err), &err);
    return x;
}

START_TEST(both_run_and_the_standard_result_stays)
{
    model m = opened();
    khub_error err = {0};
    khub_shadow shadow;
    ck_assert_int_eq(khub_slot_shadow(&shadow, m.a), 0);
    ck_assert_float_eq(result_of(m.a, 10), 11);
    ck_khub_ok(khub_layers_shadow(m.layers, "m.a", 1, &err), &err);
    const float doubled[4] = {2, 6, 0, -4};
    float x[4] = {1, 3, 0, -2}, out[4];
    for (int again = 0; again < 2; again++) { /* the second time in place: the kernel must see the input */
        ck_khub_ok(call(m.a, again ? x : out, x, 4, &err), &err);
        for (int i = 0; i < 4; i++)
            ck_assert_float_eq(again ? x[i] : out[i], doubled[i]);
    }
    ck_assert_int_eq(khub_slot_shadow(&shadow, m.a), 1);
    ck_assert_uint_eq(shadow.calls, 2);
    ck_assert_uint_eq(shadow.failed, 0);
    ck_assert_uint_eq(shadow.outputs, 1);
    ck_assert_str_eq(shadow.output[0], "out");
    /* the kernel's 2 4 1 -1 beside 2 6 0 -4, twice */
    const khub_comparison *c = &shadow.difference[0];
    ck_assert_uint_eq(c->count, 8);
    ck_assert_uint_eq(c->identical, 2);
    ck_assert_double_eq(c->absolute.value, 3);
    ck_assert_double_eq(c->absolute.a, -1);
    ck_assert_double_eq(c->absolute.b, -4);
    /* 1 is 127 steps of the exponent, 2^23 numbers each, above 0 */
    ck_assert_double_eq(c->ulp.value, 127 * 8388608.0);
    khub_layers_free(m.layers);
}
END_TEST

START_TEST(shadows_come_and_go)
{
    model m = opened();
    khub_error err = {0};
    khub_shadow shadow;
    ck_khub_fails(khub_layers_shadow(m.layers, "m.c", 1, &err), &err, KHUB_E_NOTFOUND, "m.c");
    ck_khub_ok(khub_layers_shadow(m.layers, NULL, 1, &err), &err);
    ck_assert_float_eq(result_of(m.b, 10), 20);
    ck_khub_ok(khub_layers_shadow(m.layers, "m.*", 0, &err), &err);
    ck_assert_float_eq(result_of(m.b, 10), 11);
    ck_assert_int_eq(khub_slot_shadow(&shadow, m.b), 1);
    ck_assert_uint_eq(shadow.calls, 1);
    /* of a slot that no kernel serves there is nothing to shadow, until one does */
    khub_standardize(m.layers);
    ck_khub_ok(khub_layers_shadow(m.layers, "m.b", 1, &err), &err);
    ck_assert_int_eq(khub_slot_is_served(m.b), 0);
    result_of(m.b, 10);
    ck_khub_ok(kernelize(m.layers, "add_one", &err), &err);
    ck_assert_float_eq(result_of(m.b, 10), 20);
    ck_khub_ok(khub_layers_disable(m.layers, "m.b", 1, &err), &err);
    result_of(m.b, 10);
    khub_slot_shadow(&shadow, m.b);
    ck_assert_uint_eq(shadow.calls, 2);
    khub_layers_free(m.layers);
}
END_TEST

START_TEST(a_kernel_that_fails_is_counted)
{
    model m = opened();
    khub_error err = {0};
    khub_shadow shadow;
    ck_khub_ok(kernelize(m.layers, "fail_silently", &err), &err);
    ck_khub_fails(call(m.a, (float[1]){0}, (float[1]){1}, 1, &err), &err, KHUB_E_KERNEL, "m.a");
    ck_khub_ok(khub_layers_shadow(m.layers, "m.a", 1, &err), &err);
    ck_assert_float_eq(result_of(m.a, 10), 20);
    ck_assert_float_eq(result_of(m.a, 11), 22);
    khub_slot_shadow(&shadow, m.a);
    ck_assert_uint_eq(shadow.calls, 2);
    ck_assert_uint_eq(shadow.failed, 2);
    ck_assert_uint_eq(shadow.outputs, 0);
    ck_assert_ptr_nonnull(strstr(shadow.first_failure, "failed without a message"));
    khub_layers_free(m.layers);
}
END_TEST

START_TEST(a_shape_that_makes_no_sense)
{
    model m = opened();
    khub_error err = {0};
    ck_khub_ok(khub_layers_shadow(m.layers, "m.a", 1, &err), &err);
    ck_khub_fails(call(m.a, (float[1]){0}, (float[1]){1}, -1, &err), &err, KHUB_E_INVAL, "\"out\"");
    khub_layers_free(m.layers);
}
END_TEST

START_TEST(a_run_goes_with_its_parts)
{
    model m = opened();
    khub_error err = {0};
    ck_assert_int_eq(khub_slot_is_served(m.run), 1);
    ck_assert_int_eq(khub_slot_is_served(m.x), 0); /* nobody calls it */
    ck_khub_ok(khub_layers_disable(m.layers, "r.x", 1, &err), &err);
    ck_assert_int_eq(khub_slot_is_served(m.run), 0);
    ck_khub_ok(khub_layers_disable(m.layers, "r.y", 1, &err), &err);
    ck_khub_ok(khub_layers_disable(m.layers, "r.y", 0, &err), &err);
    ck_assert_int_eq(khub_slot_is_served(m.run), 0); /* r.x is off still */
    ck_khub_ok(khub_layers_disable(m.layers, "r.x", 0, &err), &err);
    ck_assert_int_eq(khub_slot_is_served(m.run), 1);
    ck_khub_ok(khub_layers_shadow(m.layers, "r.y", 1, &err), &err);
    ck_assert_float_eq(result_of(m.run, 10), 20);
    ck_assert_float_eq(result_of(m.a, 10), 11);
    khub_layers_free(m.layers);
}
END_TEST

/* The line of a path. */
static khub_slot_report line_of(const char *path)
{
    const khub_slot_report *line;
    for (size_t i = 0; (line = khub_report_at(report, i)) != NULL; i++)
        if (!strcmp(line->path, path)) return *line;
    ck_abort_msg("there is no line of %s", path);
    return (khub_slot_report){0};
}

START_TEST(parts_are_told_by_their_run)
{
    model m = opened();
    khub_error err = {0};
    ck_khub_ok(kernelize(m.layers, "add_one", &err), &err);
    ck_assert_uint_eq(khub_report_count(report), 5);
    ck_assert_uint_eq(khub_report_slots(report), 4);
    ck_assert_uint_eq(khub_report_filled(report), 4);
    khub_slot_report x = line_of("r.x"), run = line_of("r"), a = line_of("m.a");
    ck_assert_str_eq(x.run, "r");
    ck_assert_str_eq(x.function, "add_one");
    ck_assert_ptr_null(x.reason);
    ck_assert_uint_eq(run.parts, 2);
    ck_assert_ptr_null(a.run);
    /* a part that is off: the other one is served on its own */
    ck_khub_ok(khub_layers_disable(m.layers, "r.x", 1, &err), &err);
    ck_khub_ok(kernelize(m.layers, "add_one", &err), &err);
    ck_assert_int_eq(khub_slot_is_served(m.y), 1);
    ck_assert_ptr_nonnull(strstr(line_of("r").reason, "its parts are called"));
    ck_assert_ptr_null(line_of("r.y").run);
    /* a kernel that isn't there serves neither the run nor its parts */
    ck_khub_ok(khub_layers_disable(m.layers, "r.x", 0, &err), &err);
    ck_khub_ok(kernelize(m.layers, "no_such", &err), &err);
    ck_assert_uint_eq(khub_report_filled(report), 0);
    ck_assert_ptr_nonnull(strstr(line_of("r").reason, "no_such"));
    ck_assert_ptr_nonnull(strstr(line_of("r.y").reason, "no_such"));
    khub_layers_free(m.layers);
}
END_TEST

/* Of two runs that share a slot the first one is served, and the rest of the other on its own. */
START_TEST(runs_that_overlap)
{
    model m;
    khub_error err = {0};
    khub_slot *z, *other;
    platform = fake_platform();
    ck_khub_ok(model_open(&m, &err), &err);
    ck_khub_ok(khub_layers_add(m.layers, "r.z", "ReLU", doubling, &f32, &z, &err), &err);
    khub_slot *const parts[] = {m.y, z};
    ck_khub_ok(khub_layers_add_run(m.layers, "r2", "ReLU", doubling, &f32, parts, 2, &other, &err), &err);
    ck_khub_ok(kernelize(m.layers, "add_one", &err), &err);
    ck_assert_int_eq(khub_slot_is_served(m.run), 1);
    ck_assert_int_eq(khub_slot_is_served(other), 0);
    ck_assert_int_eq(khub_slot_is_served(m.y), 0);
    ck_assert_int_eq(khub_slot_is_served(z), 1);
    ck_assert_uint_eq(khub_report_filled(report), 5);
    khub_layers_free(m.layers);
}
END_TEST

START_TEST(what_is_no_run)
{
    model m = opened(), other = opened();
    khub_error err = {0};
    khub_slot *deep, *run;
    ck_khub_ok(khub_layers_add(m.layers, "m.c.d", "ReLU", doubling, &f32, &deep, &err), &err);
    khub_slot *const alone[] = {m.a}, *const apart[] = {m.a, deep}, *const foreign[] = {m.a, other.b},
                     *const hole[] = {m.a, NULL}, *const good[] = {m.a, m.b};
    const struct {
        khub_slot *const *parts;
        size_t count;
        const char *path, *layer, *words;
    } table[] = {{alone, 1, "r", "ReLU", "r: a run has 2 to"},
                 {apart, 2, "r", "ReLU", "r: m.a and m.c.d have no common parent"},
                 {foreign, 2, "r", "ReLU", "r: the slot m.b is of other layers"},
                 {hole, 2, "r", "ReLU", "r: part 1 is NULL"},
                 {good, 2, "r", "Nope", "there is no layer \"Nope\""},
                 {good, 2, "m.a", "ReLU", "there is a slot of this path already"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        ck_khub_fails(khub_layers_add_run(m.layers, table[i].path, table[i].layer, doubling, &f32,
                                          table[i].parts, table[i].count, &run, &err),
                      &err, KHUB_E_INVAL, table[i].words);
        ck_assert_ptr_null(run);
    }
    khub_layers_free(m.layers);
    khub_layers_free(other.layers);
}
END_TEST

/* A kernel that leaves the thread flushing subnormal numbers to zero (elsewhere: rounding down) changes no
 * standard result. */
START_TEST(the_thread_computes_as_before)
{
    model m = opened();
    khub_error err = {0};
    ck_khub_ok(kernelize_from(m.layers, "liar_flushes", "relu", &err), &err);
    ck_khub_ok(khub_layers_shadow(m.layers, "**", 1, &err), &err);
    int rounding = fegetround();
    const float doubled = 0x1p-139F, got = result_of(m.a, 0x1p-140F);
    ck_assert_mem_eq(&got, &doubled, sizeof(got)); /* flushing, == takes both for 0 */
    ck_assert_int_eq(fegetround(), rounding);
    khub_layers_free(m.layers);
}
END_TEST

static int shadow_once(void *user, khub_error *err)
{
    model m = {0};
    (void)user;
    int rc = model_open(&m, err);
    if (rc == KHUB_OK) rc = kernelize(m.layers, "add_one", err);
    if (rc == KHUB_OK) rc = khub_layers_shadow(m.layers, "**", 1, err);
    float x = 1;
    if (rc == KHUB_OK) rc = call(m.a, &x, &x, 1, err);
    khub_layers_free(m.layers);
    khub_report_free(report);
    report = NULL;
    return rc;
}

START_TEST(failing_memory)
{
    platform = fake_platform();
    fm_fail_each_own(shadow_once, NULL);
}
END_TEST

UNIT("shadow", both_run_and_the_standard_result_stays, shadows_come_and_go, a_kernel_that_fails_is_counted,
     a_shape_that_makes_no_sense, a_run_goes_with_its_parts, parts_are_told_by_their_run, runs_that_overlap,
     what_is_no_run, the_thread_computes_as_before, failing_memory)
