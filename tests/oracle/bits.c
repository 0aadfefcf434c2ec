/* bits KERNEL...: calls every function of the kernels with every case of `khub compare` (src/measure/cases.h)
 * and prints "KERNEL FUNCTION CASE HASH" for each call, the hash of all its outputs; "refused" where the
 * function raises an error. The environment's KHUB_KERNEL_ISA says which path is called. What it prints must
 * be the same for every path of every processor. */
#include "base/memory.h"
#include "kernel/kernel.h"
#include "layer/prepare.h"
#include "measure/cases.h"
#include "measure/element.h"

#include <khub/kernel.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What serves a layer without standing in layers.json, as it would there. */
#define ARGS(...)                                                                                            \
    .args = (const char *const[]){__VA_ARGS__},                                                              \
    .arg_count = sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)
#define PLAIN(l, f)                                                                                          \
    {                                                                                                        \
        .layer = l, .function = f, ARGS("out", "x", "weight", "bias")                                        \
    }
static const khub_layer_spec more[] = {
    PLAIN("Linear", "linear"),
    PLAIN("LinearGeLU", "linear_gelu"),
    PLAIN("LinearGeluTanh", "linear_gelu_tanh"),
    PLAIN("LinearSiLU", "linear_silu"),
    PLAIN("LinearReLU", "linear_relu"),
    {.layer = "LinearAdd", .function = "linear_add", ARGS("out", "x", "weight", "bias", "residual")},
    {.layer = "RMSNormLinear",
     .function = "rms_norm_linear",
     ARGS("out", "x", "norm_weight", "eps", "weight", "bias")},
    {.layer = "rotary_pos_emb", .function = "rotary", ARGS("q_out", "q", "cos", "sin")},
};

static void need(int rc, const khub_error *err)
{
    if (rc == KHUB_OK) return;
    fprintf(stderr, "bits: %s\n", err->message);
    exit(1);
}

/* FNV-1a of the numbers; every NaN counts as the same. */
static uint64_t hash_of(uint64_t hash, const khub_tensor *t)
{
    int64_t count = khub_tensor_count(t);
    for (int64_t i = 0; i < count; i++) {
        double x = khub__element_get(t->dtype, t->data, i);
        uint64_t bits = x != x ? UINT64_C(0x7ff8000000000000) : khub__bits_of(x);
        for (int k = 0; k < 64; k += 8)
            hash = (hash ^ (bits >> k & 255)) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static khub_value value_of(khub_array *array, const khub__case *c, int32_t at)
{
    const khub__case_arg *arg = &c->args[at];
    khub_error err = {0};
    if (arg->is_none) return khub_arg_none();
    if (arg->kind == KHUB__ARG_FLOAT) return khub_arg_float(arg->number);
    if (arg->kind == KHUB__ARG_BOOL) return khub_arg_bool(arg->number != 0);
    if (arg->kind == KHUB__ARG_MAYBE_COUNT) return khub_arg_int((int64_t)arg->number);
    need(khub_array_new(array, arg->dtype, arg->ndim, arg->shape, &err), &err);
    if (!arg->is_output) khub__case_fill(c, at, array->tensor.data);
    return khub_arg_tensor(&array->tensor);
}

/* Which of the layer's arguments is the function's k-th. */
static int32_t position(const khub_layer_spec *spec, const khub__layer_def *layer, int32_t k)
{
    return spec->args ? khub__layer_position(layer, spec->args[k]) : k;
}

/* What the kernel makes of the weight. */
static khub_value prepared(khub__prepared *out, const khub_array *weight, khub_kernel *kernel,
                           const khub_layer_spec *spec)
{
    khub_error err = {0};
    khub_function prepare;
    khub__shelf *last = NULL;
    need(khub_kernel_function(&prepare, kernel, spec->prepare_function, &err), &err);
    need(khub__prepare(out, &last, NULL, &prepare, spec->prepare_function, &weight->tensor, &err), &err);
    khub__shelf_give_up(last);
    return khub_arg_tensor(&out->array.tensor);
}

static void call(khub_kernel *kernel, const khub_layer_spec *spec, const khub__case *c)
{
    char name[KHUB__CASE_NAME];
    khub_error err = {0};
    khub_function f;
    khub_array arrays[KHUB__MAX_ARGS] = {0};
    khub__prepared weight = {0};
    khub_value args[KHUB__MAX_ARGS], result = khub_arg_none();
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    int32_t count = spec->args ? (int32_t)spec->arg_count : c->layer->arg_count;
    need(khub_kernel_function(&f, kernel, spec->function, &err), &err);
    for (int32_t k = 0; k < count; k++) {
        int32_t at = position(spec, c->layer, k);
        args[k] = value_of(&arrays[at], c, at);
        if (spec->prepare_arg && !strcmp(spec->prepare_arg, c->layer->args[at].name))
            args[k] = prepared(&weight, &arrays[at], kernel, spec);
    }
    int rc = khub_function_call(&f, args, count, &result, &err);
    for (int32_t k = 0; k < count; k++) {
        int32_t at = position(spec, c->layer, k);
        if (c->args[at].is_output && arrays[at].tensor.data) hash = hash_of(hash, &arrays[at].tensor);
    }
    printf("%s %s %s ", khub_kernel_name(kernel), spec->function, khub__case_name(name, c));
    printf(rc == KHUB_OK ? "%016" PRIx64 "\n" : "refused\n", hash);
    khub__prepared_free(&weight);
    for (int32_t i = 0; i < KHUB__MAX_ARGS; i++)
        khub_array_free(&arrays[i]);
}

/* What an emulator comes to an end with: of all the float32 one in 2^18, and no case of much work. 0: the
 * case is left out. */
static int shorten(khub__case *c)
{
    enum { MOST = 2200000 };
    khub_error err = {0};
    int64_t work = 1;
    if (c->values == KHUB__BITS && c->dtype.bits == 32) {
        c->extents[0] = 16;
        need(khub__case_complete(c, &err), &err);
    }
    for (int32_t i = 0; i < c->ndim; i++)
        work *= c->extents[i];
    return c->part == 0 && work <= MOST;
}

static void call_all(khub_kernel *kernel, const khub_layer_spec *spec)
{
    static const char *const floats[] = {"float32", "bfloat16", NULL};
    const khub__layer_def *layer = khub__layer_find(spec->serves ? spec->serves : spec->layer);
    for (const char *const *name = spec->dtypes ? spec->dtypes : floats; *name; name++) {
        khub_error err = {0};
        khub_dtype dtype;
        khub__case c;
        need(khub_dtype_parse(&dtype, *name, &err), &err);
        for (size_t i = 0; i < khub__case_count(layer, dtype); i++) {
            khub__case_at(&c, layer, dtype, i, 0);
            if (shorten(&c)) call(kernel, spec, &c);
        }
    }
}

/* Calls what is called `function`; 0: nothing says how. */
static int call_function(khub_kernel *kernel, const char *function)
{
    int known = !strcmp(function, "kernel_isa"); /* it has no numbers */
    const khub_layer_spec *none;
    khub_kernel_layer(&none, kernel, "", NULL); /* reads layers.json */
    for (size_t i = 0; i < kernel->layers->count; i++) {
        const khub_layer_spec *spec = kernel->layers->specs[i];
        if (spec->prepare_function && !strcmp(spec->prepare_function, function)) known = 1;
        if (strcmp(spec->function, function) != 0) continue;
        call_all(kernel, spec);
        known = 1;
    }
    for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++) {
        if (strcmp(more[i].function, function) != 0) continue;
        call_all(kernel, &more[i]);
        known = 1;
    }
    return known;
}

int main(int argc, char **argv)
{
    int unknown = 0;
    for (int i = 1; i < argc; i++) {
        khub_error err = {0};
        khub_kernel *kernel;
        const khub_function_info *info;
        need(khub_get(&kernel, argv[i], NULL, &err), &err);
        for (size_t k = 0; (info = khub_kernel_function_info(kernel, k)) != NULL; k++)
            if (!call_function(kernel, info->name)) {
                fprintf(stderr, "bits: %s: nothing says how %s is called\n", argv[i], info->name);
                unknown = 1;
            }
        khub_kernel_close(kernel);
    }
    return unknown;
}
