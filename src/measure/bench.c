#include <khub/bench.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "kernel/kernel.h"
#include "gpu/bound.h"
#include "measure/calls.h"
#include "measure/device.h"
#include "measure/fill.h"
#include "measure/peaks.h"
#include "measure/shapes.h"
#include "tensor/array.h"
#include "torch/torch.h"

#include <stdio.h>

enum { MOST_CASES = 4096, CACHE_BYTES = 256 << 10 };
#define USUAL_SECONDS 0.5  /* for a case */
#define REST_SECONDS  1e-3 /* threads that look for work a while have gone to sleep after that */

/* A case and what its strings are. */
struct entry {
    khub_bench_case shown;
    khub__case plan; /* of a layer */
    char *layer, *function, *shape, *reason;
};

struct khub_bench {
    khub_bench_machine machine;
    struct entry *entries;
    size_t count, capacity;
    char *kernel, *variant, *isa, *device;
    khub_platform *platform; /* has the words of `machine` */
};

/* One measuring: what the cases share. */
struct session {
    khub_bench *bench;
    khub_bench_options options;
    khub_kernel *kernel; /* borrowed */
    khub_gpu *gpu;       /* options.gpu, or own_gpu; NULL: the host */
    khub_gpu *own_gpu;
    khub__threads *pool;
    khub__peaks *peaks;
    double deadline; /* 0: nothing was measured yet */
};

void khub_bench_free(khub_bench *bench)
{
    if (!bench) return;
    for (size_t i = 0; i < bench->count; i++) {
        khub__free(bench->entries[i].layer);
        khub__free(bench->entries[i].function);
        khub__free(bench->entries[i].shape);
        khub__free(bench->entries[i].reason);
    }
    khub__free(bench->entries);
    khub__free(bench->kernel);
    khub__free(bench->variant);
    khub__free(bench->isa);
    khub__free(bench->device);
    khub_platform_free(bench->platform);
    khub__free(bench);
}

const khub_bench_machine *khub_bench_machine_of(const khub_bench *bench)
{
    return &bench->machine;
}

size_t khub_bench_count(const khub_bench *bench)
{
    return bench->count;
}

const khub_bench_case *khub_bench_at(const khub_bench *bench, size_t i)
{
    return i < bench->count ? &bench->entries[i].shown : NULL;
}

int khub_bench_fill(const khub_tensor *tensor, khub_error *err)
{
    int rc = khub__given("khub_bench_fill", tensor != NULL, err);
    if (rc != KHUB_OK) return rc;
    if (tensor->device.type != KHUB_DEVICE_CPU || !khub_tensor_is_compact(tensor))
        return khub__fail(err, KHUB_E_INVAL, "khub_bench_fill: the tensor isn't a compact one on the CPU");
    khub__fill(tensor);
    return KHUB_OK;
}

static int add_entry(struct entry **out, khub_bench *bench, khub_error *err)
{
    if (bench->count == MOST_CASES)
        return khub__fail(err, KHUB_E_INVAL, "%s: more than %d cases", bench->kernel, MOST_CASES);
    if (khub__grow((void **)&bench->entries, &bench->capacity, bench->count + 1, sizeof(struct entry),
                   MOST_CASES) != 0)
        return khub__fail_memory(err, "measuring");
    *out = &bench->entries[bench->count++];
    memset(*out, 0, sizeof(**out));
    return KHUB_OK;
}

/* What the kernel says of itself: a function `kernel_isa` without arguments that returns text. *out stays
 * NULL when it can't tell. */
static int isa_of(char **out, const khub_kernel *kernel, khub_error *err)
{
    khub_function f;
    khub_value value = khub_arg_none();
    khub_error why = {0};
    size_t length = 0;
    int rc = khub_kernel_function(&f, kernel, "kernel_isa", &why);
    if (rc == KHUB_OK) rc = khub_function_call(&f, NULL, 0, &value, &why);
    const char *text = rc == KHUB_OK ? khub_value_text(&value, &length) : NULL;
    if (text) *out = khub__strndup(text, length);
    khub_value_release(&value);
    return rc == KHUB_E_NOMEM || (text && !*out) ? khub__fail_memory(err, "measuring") : KHUB_OK;
}

static int describe_kernel(khub_bench *bench, const khub_kernel *kernel, khub_error *err)
{
    bench->kernel = khub__strdup(khub_kernel_name(kernel));
    bench->variant = khub__strdup(khub_kernel_variant(kernel));
    int rc = isa_of(&bench->isa, kernel, err);
    bench->machine.kernel = bench->kernel;
    bench->machine.variant = bench->variant;
    bench->machine.kernel_isa = bench->isa;
    return bench->kernel && bench->variant ? rc : khub__fail_memory(err, "measuring");
}

static int describe_device(struct session *s, khub_error *err)
{
    khub__text text = {0};
    const char *model = khub_gpu_model(s->gpu);
    khub__text_addf(&text, *model ? "%s (%s)" : "%s%s", model, khub_gpu_name(s->gpu));
    s->bench->machine.device = s->bench->device = khub__text_take(&text);
    return s->bench->device ? KHUB_OK : khub__fail_memory(err, "measuring");
}

/* What doesn't take time. */
static int begin(struct session *s, khub_error *err)
{
    khub_platform_options processor_only;
    khub_bench_machine *shown = &s->bench->machine;
    uint64_t last_cache = 0;
    KHUB_INIT(&processor_only);
    processor_only.no_accelerators = 1;
    int rc = khub_platform_detect(&s->bench->platform, &processor_only, err);
    if (rc != KHUB_OK) return rc;
    const khub_platform *machine = s->bench->platform;
    for (int level = 1; level <= 3; level++)
        if (khub_platform_cache_bytes(machine, level)) last_cache = khub_platform_cache_bytes(machine, level);
    rc = khub__threads_new(&s->pool, s->options.threads && !s->gpu ? s->options.threads : 1, err);
    if (rc == KHUB_OK) rc = khub__peaks_new(&s->peaks, s->pool, s->gpu, last_cache, err);
    if (rc == KHUB_OK && s->gpu) rc = describe_device(s, err);
    if (rc != KHUB_OK) return rc;
    shown->cpu = khub_platform_cpu_model(machine);
    shown->threads = khub__threads_count(s->pool);
    khub__torch_set_threads((int)shown->threads);
    shown->fma_isa = khub__peaks_fma_isa(s->peaks);
    shown->memory_bytes = khub__peaks_most(s->peaks);
    return KHUB_OK;
}

static double copy_of(struct session *s, const struct entry *entry)
{
    return khub__peaks_copy(s->peaks,
                            s->options.cold ? (double)khub__peaks_most(s->peaks) : entry->shown.bytes);
}

/* Once there is something to compare the machine with; then the time for the cases begins. */
static void look_at_machine(struct session *s)
{
    const khub_bench_machine *shown = &s->bench->machine;
    if (s->deadline > 0) return;
    khub__peaks_fma(s->peaks);
    khub__peaks_copy(s->peaks, (double)shown->memory_bytes);
    khub__peaks_copy(s->peaks, (double)CACHE_BYTES * shown->threads);
    s->deadline = khub__seconds() + s->options.seconds;
}

/* Looks at the machine once more, since it may have been busy before, and holds the cases against it. */
static void compare_with_machine(struct session *s)
{
    khub_bench_machine *shown = &s->bench->machine;
    khub__peaks_again(s->peaks);
    shown->fma_flops = khub__peaks_fma(s->peaks);
    shown->copy_memory = khub__peaks_copy(s->peaks, (double)shown->memory_bytes);
    shown->copy_cache = khub__peaks_copy(s->peaks, (double)CACHE_BYTES * shown->threads);
    for (size_t i = 0; i < s->bench->count; i++) {
        khub_bench_case *c = &s->bench->entries[i].shown;
        if (c->reason) continue;
        c->copy = copy_of(s, &s->bench->entries[i]);
        if (c->kernel.median <= 0) continue;
        if (c->copy > 0) c->share = c->bytes / c->kernel.median / c->copy;
        if (shown->fma_flops > 0) c->peak_share = c->flops / c->kernel.median / shown->fma_flops;
    }
}

/* Seconds for each of `count` cases; 0 or less: the time that was given is over. */
static double time_left(const struct session *s, size_t count)
{
    double given = s->options.seconds;
    if (!(given > 0)) return USUAL_SECONDS;
    return (s->deadline > 0 ? s->deadline - khub__seconds() : given) / (double)count;
}

static void end(struct session *s)
{
    khub__peaks_free(s->peaks);
    khub__threads_free(s->pool);
    khub_gpu_close(s->own_gpu);
}

static int give_reason(struct entry *entry, const khub_error *why, khub_error *err)
{
    entry->reason = khub__strdup(why->message[0] ? why->message : khub_status_name(why->code));
    entry->shown.reason = entry->reason;
    return entry->reason ? KHUB_OK : khub__fail_memory(err, "measuring");
}

static void conclude(struct entry *entry, const khub__race_result *race, khub__work work)
{
    khub_bench_case *c = &entry->shown;
    c->bytes = work.bytes;
    c->flops = work.flops;
    c->kernel = race->a;
    c->standard = race->b;
    c->ratio_q1 = race->ratio_q1;
    c->ratio = race->ratio;
    c->ratio_q3 = race->ratio_q3;
}

/* Before and after what a kernel could end the process with: a host that wants to know who it was listens. */
static void say_at_work(const struct session *s, const struct entry *entry, int begins)
{
    char object[600];
    snprintf(object, sizeof(object), "%s:%s", s->bench->kernel, entry->function);
    khub__log(KHUB_LOG_DEBUG, begins ? "call" : "called", object, "%s", entry->shape);
}

static int race_layer(struct session *s, struct entry *entry, khub__timed_calls *calls, double seconds,
                      khub_error *err)
{
    khub__contender kernel = {khub__timed_calls_run, &calls->kernel,
                              calls->gpu ? khub__timed_calls_time : NULL},
                    standard = {khub__timed_calls_run, &calls->standard};
    khub__race_options race = {.seconds = seconds, .cold = s->options.cold};
    khub__race_result result;
    if (calls->standards && s->bench->machine.threads > 1) race.rest = REST_SECONDS;
    say_at_work(s, entry, 1);
    int rc = khub__race(&result, &kernel, calls->standards ? &standard : NULL, &race, err);
    say_at_work(s, entry, 0);
    if (rc == KHUB_OK) conclude(entry, &result, calls->work);
    if (rc == KHUB_OK) copy_of(s, entry); /* in the same moments as the case */
    return rc;
}

/* What the kernel, or for a function the options say of a layer. `own` has room for the latter. */
static int spec_of(const khub_layer_spec **out, khub_layer_spec *own, struct session *s, const char *layer,
                   khub_error *err)
{
    *own = (khub_layer_spec){.layer = layer, .function = s->options.function};
    *out = own;
    return own->function ? KHUB_OK : khub_kernel_layer(out, s->kernel, layer, err);
}

static int measure_calls(struct session *s, struct entry *entry, double seconds, khub_error *err)
{
    khub__timed_calls calls = {0};
    khub_layer_spec own;
    khub__calls_options how = {.kernel = s->kernel,
                               .standard = !s->options.no_standard && !s->gpu,
                               .whose = khub__whose_with(s->options.standard, s->options.get),
                               .fill = s->options.cold ? khub__peaks_most(s->peaks) : 0,
                               .pool = s->pool,
                               .gpu = s->gpu};
    double before = khub__seconds();
    int rc = spec_of(&how.spec, &own, s, entry->shown.layer, err);
    if (rc != KHUB_OK) return rc;
    entry->function = khub__strdup(how.spec->function);
    entry->shown.function = entry->function;
    rc = entry->function ? khub__timed_calls_new(&calls, &entry->plan, &how, err)
                         : khub__fail_memory(err, "measuring");
    seconds -= khub__seconds() - before;
    if (rc == KHUB_OK) look_at_machine(s);
    if (rc == KHUB_OK) rc = race_layer(s, entry, &calls, seconds, err);
    khub__timed_calls_free(&calls);
    return rc;
}

/* Measures a case of a layer; a failure of it becomes its reason. */
static int measure_layer(struct session *s, struct entry *entry, double seconds, khub_error *err)
{
    khub_error why = {0};
    int rc = measure_calls(s, entry, seconds, &why);
    return rc == KHUB_OK ? rc : give_reason(entry, &why, err);
}

/* All entries, each its share of the time that is left. */
static int measure_all(struct session *s, khub_error *err)
{
    size_t count = s->bench->count, measured = 0;
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = &s->bench->entries[i];
        if (s->options.progress && s->options.progress(s->options.user, i, count))
            return khub__fail(err, KHUB_E_CANCELED, "measuring %s was canceled", s->bench->kernel);
        double seconds = time_left(s, count - i);
        const khub_error over = {.message = "the time was over"};
        int rc = seconds > 0 ? measure_layer(s, entry, seconds, err) : give_reason(entry, &over, err);
        if (rc != KHUB_OK) return rc;
        measured += !entry->reason;
    }
    if (!measured)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: nothing could be measured: %s", s->bench->kernel,
                          count ? s->bench->entries[0].reason : "there is no case");
    compare_with_machine(s);
    return KHUB_OK;
}

/* The cases of one layer: its shapes, each in every dtype. `name` is that of the kernel's entry for it. */
static int plan_layer(struct session *s, const khub__layer_def *layer, const char *name, khub_error *err)
{
    static const char *const usual[] = {"float32", "bfloat16", NULL};
    const char *const *dtypes = s->options.dtypes ? s->options.dtypes : usual;
    for (size_t i = 0;
         s->options.shapes ? s->options.shapes[i] != NULL : khub_bench_shape(layer->name, i) != NULL; i++) {
        const char *shape = s->options.shapes ? s->options.shapes[i] : khub_bench_shape(layer->name, i);
        for (size_t k = 0; dtypes[k]; k++) {
            struct entry *entry = NULL;
            char text[KHUB__SHAPE_TEXT];
            int rc = add_entry(&entry, s->bench, err);
            if (rc == KHUB_OK) rc = khub_dtype_parse(&entry->shown.dtype, dtypes[k], err);
            if (rc == KHUB_OK) rc = khub__shape_parse(&entry->plan, layer, entry->shown.dtype, shape, err);
            if (rc != KHUB_OK) return rc;
            entry->shape = khub__strdup(khub__shape_text_of(text, &entry->plan));
            entry->layer = khub__strdup(name);
            if (!entry->shape || !entry->layer) return khub__fail_memory(err, "measuring");
            entry->shown.shape = entry->shape;
            entry->shown.layer = entry->layer;
        }
    }
    return KHUB_OK;
}

static int plan_entry(struct session *s, const khub_layer_spec *spec, khub_error *err)
{
    const khub__layer_def *layer = khub__layer_find(khub__layer_served(spec));
    return layer ? plan_layer(s, layer, spec->layer, err) : KHUB_OK;
}

/* The one that is named, of docs/layers.md or of the kernel's layers.json, or all that are there. */
static int plan(struct session *s, const char *name, khub_error *err)
{
    const khub__layer_def *layer = name ? khub__layer_find(name) : NULL;
    const khub_layer_spec *spec;
    const khub__layers *all;
    if (layer) return plan_layer(s, layer, name, err);
    if (name) {
        khub_error why = {0};
        int rc = khub_kernel_layer(&spec, s->kernel, name, &why);
        if (rc == KHUB_OK) return plan_entry(s, spec, err);
        return khub__fail(err, rc, "%s; a function is measured with arguments, or as a layer", why.message);
    }
    int rc = khub__kernel_layers(&all, s->kernel, err);
    for (size_t i = 0; rc == KHUB_OK && i < all->count; i++)
        rc = plan_entry(s, all->specs[i], err);
    if (rc != KHUB_OK || s->bench->count) return rc;
    return khub__fail(err, KHUB_E_NOTFOUND, "%s serves no layer of docs/layers.md",
                      khub_kernel_name(s->kernel));
}

static int start(struct session *s, const khub_bench_options *options, khub_error *err)
{
    memset(s, 0, sizeof(*s));
    s->options.struct_size = sizeof(s->options);
    int rc = options ? khub__options(&s->options, sizeof(s->options), options, "khub_bench_options", err)
                     : KHUB_OK;
    if (rc != KHUB_OK) return rc;
    if (!(s->options.seconds >= 0))
        return khub__fail(err, KHUB_E_INVAL, "khub_bench_options: seconds is below 0");
    s->gpu = s->options.gpu;
    s->bench = khub__calloc(1, sizeof(*s->bench));
    return s->bench ? KHUB_OK : khub__fail_memory(err, "measuring");
}

/* Hands over or gives up what was made. */
static int finish(struct session *s, khub_bench **out, int rc)
{
    end(s);
    if (rc == KHUB_OK)
        *out = s->bench;
    else
        khub_bench_free(s->bench);
    return rc;
}

static int get_kernel(struct session *s, const char *name, khub_error *err)
{
    khub_get_options get;
    int rc = khub__get_on(&get, s->options.get, s->gpu ? khub_gpu_name(s->gpu) : NULL, err);
    if (rc == KHUB_OK && s->gpu) return khub_get(&s->kernel, name, &get, err);
    if (rc == KHUB_OK) rc = khub__get_with_device(&s->kernel, &s->own_gpu, name, &get, err);
    s->gpu = s->own_gpu;
    return rc;
}

int khub_bench_layer(khub_bench **out, const char *kernel, const char *layer,
                     const khub_bench_options *options, khub_error *err)
{
    struct session s;
    if (out) *out = NULL;
    int rc = khub__given("khub_bench_layer", out && kernel, err);
    if (rc == KHUB_OK) rc = start(&s, options, err);
    if (rc != KHUB_OK) return rc;
    if (s.options.function && !layer)
        rc = khub__fail(err, KHUB_E_INVAL, "%s:%s: as which layer?", kernel, s.options.function);
    if (rc == KHUB_OK) rc = get_kernel(&s, kernel, err);
    if (rc == KHUB_OK) rc = describe_kernel(s.bench, s.kernel, err);
    if (rc == KHUB_OK) rc = plan(&s, layer, err);
    if (rc == KHUB_OK) rc = begin(&s, err);
    if (rc == KHUB_OK) rc = measure_all(&s, err);
    khub_kernel_close(s.kernel);
    return finish(&s, out, rc);
}

/* A call with given arguments. */
struct given {
    khub_function function;
    const khub_value *args;
    int32_t n;
    khub__gpu_bound bound;
    khub__stopwatch watch;
};

static int call_given(void *user, uint64_t calls, khub_error *err)
{
    const struct given *g = user;
    int rc = KHUB_OK;
    for (uint64_t i = 0; i < calls && rc == KHUB_OK; i++)
        rc = khub_function_call(&g->function, g->args, g->n, NULL, err);
    return rc;
}

static int time_given(double *seconds, void *user, uint64_t calls, khub_error *err)
{
    struct given *g = user;
    return khub__stopwatch_run(&g->watch, seconds, call_given, g, calls, err);
}

/* From now on called on the device. */
static int bind_given(struct given *g, struct session *s, const char *function, khub_error *err)
{
    if (!s->gpu) return KHUB_OK;
    g->bound.gpu = s->gpu;
    g->bound.function = g->function;
    snprintf(g->bound.what, sizeof(g->bound.what), "%s:%s", s->bench->kernel, function);
    g->function = khub__gpu_bound_function(&g->bound);
    int rc = khub__gpu_takes(s->gpu, s->kernel, err);
    return rc == KHUB_OK ? khub__stopwatch_new(&g->watch, s->gpu, err) : rc;
}

static void describe_argument(khub__text *to, const khub_value *arg)
{
    char dtype[32], shape[128];
    const khub_tensor *t = khub_value_tensor(arg);
    size_t length;
    if (t)
        khub__text_addf(to, "%s%s", khub_dtype_name(t->dtype, dtype),
                        khub__shape_text(shape, t->ndim, t->shape));
    else if (arg->type == KHUB_TYPE_INT)
        khub__text_addf(to, "%lld", (long long)arg->as.i64);
    else if (arg->type == KHUB_TYPE_FLOAT)
        khub__text_addf(to, "%g", arg->as.f64);
    else if (arg->type == KHUB_TYPE_BOOL)
        khub__text_add(to, arg->as.i64 ? "true" : "false");
    else if (khub_value_text(arg, &length))
        khub__text_addf(to, "\"%.*s\"", (int)(length < 64 ? length : 64), khub_value_text(arg, &length));
    else
        khub__text_add(to, "none");
}

static int describe_call(struct entry *entry, const char *function, const khub_value *args, int32_t n,
                         khub_error *err)
{
    khub__text text = {0};
    khub__text_add(&text, "");
    for (int32_t i = 0; i < n; i++) {
        const khub_tensor *t = khub_value_tensor(&args[i]);
        if (t && !entry->shown.dtype.lanes) entry->shown.dtype = t->dtype;
        if (i) khub__text_add(&text, " ");
        describe_argument(&text, &args[i]);
    }
    entry->shape = khub__text_take(&text);
    entry->function = khub__strdup(function);
    entry->shown.shape = entry->shape;
    entry->shown.function = entry->function;
    return entry->shape && entry->function ? KHUB_OK : khub__fail_memory(err, "measuring");
}

static int measure_given(struct session *s, struct given *given, khub_error *err)
{
    struct entry *entry = &s->bench->entries[0];
    khub__contender who = {call_given, given, s->gpu ? time_given : NULL};
    khub__race_options race = {.seconds = time_left(s, 1)};
    khub__race_result result;
    say_at_work(s, entry, 1);
    int rc = call_given(given, 1, err); /* what can't be called says so at once */
    if (rc == KHUB_OK && s->gpu) rc = khub_gpu_synchronize(s->gpu, err);
    if (rc == KHUB_OK) look_at_machine(s);
    if (rc == KHUB_OK) rc = khub__race(&result, &who, NULL, &race, err);
    say_at_work(s, entry, 0);
    if (rc == KHUB_OK) conclude(entry, &result, (khub__work){khub__bytes_of(given->args, given->n), 0});
    if (rc == KHUB_OK) compare_with_machine(s);
    return rc;
}

int khub_bench_function(khub_bench **out, khub_kernel *kernel, const char *function, const khub_value *args,
                        int32_t n, const khub_bench_options *options, khub_error *err)
{
    struct session s;
    struct given given = {.args = args, .n = n};
    if (out) *out = NULL;
    int rc = khub__given("khub_bench_function", out && kernel && function && n >= 0 && (args || !n), err);
    if (rc == KHUB_OK) rc = start(&s, options, err);
    if (rc != KHUB_OK) return rc;
    s.options.threads = 1;
    s.options.cold = 0;
    s.kernel = kernel;
    rc = khub_kernel_function(&given.function, kernel, function, err);
    if (rc == KHUB_OK) rc = describe_kernel(s.bench, kernel, err);
    struct entry *entry = NULL;
    if (rc == KHUB_OK) rc = add_entry(&entry, s.bench, err);
    if (rc == KHUB_OK) rc = describe_call(entry, function, args, n, err);
    if (rc == KHUB_OK) rc = bind_given(&given, &s, function, err);
    if (rc == KHUB_OK) rc = begin(&s, err);
    if (rc == KHUB_OK) rc = measure_given(&s, &given, err);
    khub__stopwatch_free(&given.watch);
    return finish(&s, out, rc);
}
