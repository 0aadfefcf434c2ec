#include "layer/slot.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/readers.h"
#include "layer/key.h"
#include "layer/recipe.h"
#include "layer/shadow.h"
#include "layer/shapes.h"
#include "tensor/copy.h"

#include <stddef.h>

enum { MAX_SLOTS = 1 << 20 };

int khub_layers_new(khub_layers **out, khub_error *err)
{
    int missing = khub__given("khub_layers_new", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    *out = khub__calloc(1, sizeof(**out));
    return *out ? KHUB_OK : khub__fail_memory(err, "making the layers of a model");
}

static void filling_free(khub_filling *filling)
{
    khub__prepared_free(&filling->prepared);
    khub__recipe_give_up(filling->recipe);
    khub__free(filling);
}

void khub__filling_give_up(khub_layers *layers, khub_filling *filling)
{
    if (!filling || --filling->uses) return;
    if (filling->recipe && filling->recipe->shared == filling) filling->recipe->shared = NULL;
    filling->moment = 0;
    filling->after = layers->replaced;
    layers->replaced = filling;
}

/* One moment serves all that was replaced since the last time. */
static void note_moment(khub_layers *layers)
{
    uint64_t moment = 0;
    for (khub_filling *f = layers->replaced; f; f = f->after) {
        if (f->moment) continue;
        if (!moment) moment = khub__readers_replaced();
        if (!moment) return; /* nobody can know: it stays until the slots go */
        f->moment = moment;
    }
}

/* The list starts with what was replaced last: once nobody holds one of them, nobody holds those behind it.
 */
void khub__layers_settle(khub_layers *layers)
{
    uint64_t asked = 0;
    note_moment(layers);
    khub_filling **at = &layers->replaced, *next;
    for (; *at; at = &(*at)->after) {
        if ((*at)->moment == asked) continue;
        asked = (*at)->moment;
        if (khub__readers_passed(asked)) break;
    }
    for (khub_filling *filling = *at; filling; filling = next) {
        next = filling->after;
        filling_free(filling);
    }
    *at = NULL;
}

static void slot_free(khub_layers *layers, khub_slot *slot)
{
    if (!slot) return;
    khub__filling_give_up(layers, slot->kernel);
    khub__free((void *)(uintptr_t)slot->standard.axes);
    khub__free(slot->shadow);
    khub__free(slot->parts);
    khub__free(slot->shapes);
    khub__free(slot->path);
    khub__free(slot);
}

void khub_layers_free(khub_layers *layers)
{
    if (!layers) return;
    for (size_t i = 0; i < layers->count; i++)
        slot_free(layers, layers->slots[i]);
    for (khub_filling *next, *filling = layers->replaced; filling; filling = next) {
        next = filling->after;
        filling_free(filling);
    }
    khub__index_free(&layers->by_path);
    khub__free(layers->slots);
    khub__free(layers);
}

static int check_new(const khub_layers *layers, const char *path, const char *layer, khub_error *err)
{
    if (!khub__layer_find(layer))
        return khub__fail(err, KHUB_E_INVAL, "%s: there is no layer \"%s\"; docs/layers.md lists them", path,
                          layer);
    if (khub__index_find(&layers->by_path, path) >= 0)
        return khub__fail(err, KHUB_E_INVAL, "%s: there is a slot of this path already", path);
    return KHUB_OK;
}

static int take_device(khub_slot *slot, const khub_slot_options *options, khub_error *err)
{
    khub_error why = {0};
    int rc = khub__on_take(&slot->on, options->device, options->gpu, &why);
    return rc == KHUB_OK ? rc : khub__fail(err, rc, "%s: %s", slot->path, why.message);
}

static int make(khub_slot **out, const char *path, const char *layer, khub_function standard,
                const khub_slot_options *options, khub_error *err)
{
    khub_slot *slot = *out = khub__calloc(1, sizeof(*slot));
    if (!slot || !(slot->path = khub__strdup(path))) return khub__fail_memory(err, "adding a slot");
    slot->first = khub__first_segment(path);
    slot->layer = khub__layer_find(layer);
    slot->dtype = options->dtype;
    slot->standard.function = standard;
    slot->standard.in_order = 1;
    slot->standard.prepared_arg = slot->standard.returned_arg = -1;
    khub__filling_complete(&slot->standard, slot->layer);
    atomic_init(&slot->now, &slot->standard);
    int rc = take_device(slot, options, err);
    return rc == KHUB_OK ? khub__shapes_take(slot, options, err) : rc;
}

static int keep(khub_layers *layers, khub_slot *slot, khub_error *err)
{
    if (khub__grow((void **)&layers->slots, &layers->capacity, layers->count + 1, sizeof(khub_slot *),
                   MAX_SLOTS) ||
        khub__index_add(&layers->by_path, slot->path, (uint32_t)layers->count))
        return khub__fail_memory(err, "adding a slot");
    layers->slots[layers->count++] = slot;
    return KHUB_OK;
}

int khub_layers_add(khub_layers *layers, const char *path, const char *layer, khub_function standard,
                    const khub_slot_options *given, khub_slot **slot, khub_error *err)
{
    khub_slot_options options;
    khub_slot *added = NULL;
    if (slot) *slot = NULL;
    int rc = khub__given("khub_layers_add", layers && path && layer, err);
    if (rc == KHUB_OK) rc = check_new(layers, path, layer, err);
    if (rc == KHUB_OK) rc = khub__options(&options, sizeof(options), given, "khub_slot_options", err);
    if (rc == KHUB_OK) rc = make(&added, path, layer, standard, &options, err);
    if (rc == KHUB_OK) rc = keep(layers, added, err);
    if (rc != KHUB_OK)
        slot_free(layers, added);
    else if (slot)
        *slot = added;
    return rc;
}

int khub_slot_bind(khub_slot *slot, const char *arg, const khub_tensor *tensor, khub_error *err)
{
    int missing = khub__given("khub_slot_bind", slot && arg, err);
    if (missing != KHUB_OK) return missing;
    int32_t at = khub__layer_position(slot->layer, arg);
    if (at < 0)
        return khub__fail(err, KHUB_E_INVAL, "%s: the layer %s has no argument \"%s\"", slot->path,
                          slot->layer->name, arg);
    int rc = khub__shapes_agree(slot, at, tensor, err);
    if (rc == KHUB_OK) slot->bound[at] = tensor;
    return rc;
}

/* A run with any of its parts. */
static int is_disabled(const khub_slot *slot)
{
    int disabled = slot->disabled;
    for (size_t i = 0; !disabled && i < slot->part_count; i++)
        disabled = slot->parts[i]->disabled;
    return disabled;
}

/* The one place that says what a slot calls. */
void khub__slot_settle(khub_slot *slot)
{
    const khub_filling *kernel = slot->kernel, *now = kernel;
    if (kernel && slot->shadow) now = khub__shadow_filling(slot->shadow, kernel);
    if (!kernel || is_disabled(slot)) now = &slot->standard;
    if (atomic_load_explicit(&slot->now, memory_order_relaxed) != now)
        atomic_store_explicit(&slot->now, now, memory_order_release);
}

void khub__slot_fill(khub_layers *layers, khub_slot *slot, khub_filling *filling)
{
    khub_filling *old = slot->kernel;
    slot->kernel = filling;
    khub__slot_settle(slot);
    khub__filling_give_up(layers, old);
}

void khub_standardize(khub_layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        khub__slot_fill(layers, layers->slots[i], NULL);
    khub__layers_settle(layers);
}

void khub__filling_complete(khub_filling *filling, const khub__layer_def *layer)
{
    filling->arg_count = layer->arg_count;
    filling->plain_count =
        filling->in_order && filling->prepared_arg < 0 && !filling->run ? layer->arg_count : -1;
}

static int wrong_count(const khub_slot *slot, int32_t n, khub_error *err)
{
    return khub__fail(err, KHUB_E_INVAL, "%s: %s takes %d arguments, %d were given", slot->path,
                      slot->layer->name, (int)slot->layer->arg_count, (int)n);
}

_Static_assert(offsetof(khub_slot, now) == offsetof(struct khub__slot_head, now) &&
                   offsetof(khub_slot, retries) == offsetof(struct khub__slot_head, retries) &&
                   sizeof(atomic_int) == sizeof(int32_t) &&
                   offsetof(khub_filling, function) == offsetof(struct khub__filling_head, function) &&
                   offsetof(khub_filling, plain_count) == offsetof(struct khub__filling_head, plain_count),
               "as <khub/layer.h> has it");

/* What follows a call that failed, or that left a result nobody wants. */
int khub__slot_settle_call(const khub_slot *slot, const void *filling, int rc, khub_value result,
                           khub_error *err)
{
    const khub_filling *called = filling;
    khub_error why = {0};
    if (khub__function_settle(rc, &result, 0, &why) == KHUB_OK) return KHUB_OK;
    return khub__fail(err, KHUB_E_KERNEL, "%s (%s): %s", slot->path,
                      called->kernel ? called->kernel : "standard", why.message);
}

/* What this thread calls, for khub_slot_running. */
static __thread struct {
    const khub_slot *slot;
    const khub_filling *filling;
} running;

const khub_slot *khub_slot_running(const char **kernel)
{
    if (kernel) *kernel = running.slot ? running.filling->kernel : NULL;
    return running.slot;
}

static inline int call_function(const khub_slot *slot, const khub_filling *filling, const khub_value *args,
                                int32_t n, khub_error *err)
{
    khub_value result = khub_arg_none();
    int rc = filling->function.call(filling->function.self, args, n, &result);
    if (rc == 0 && result.type < KHUB_TYPE_OBJECT) return KHUB_OK;
    return khub__slot_settle_call(slot, filling, rc, result, err);
}

/* What a function gives back, a tensor or a list of one, is written over the output that it stands for. */
static int take_returned(const khub_slot *slot, const khub_filling *filling, const khub_value *result,
                         const khub_tensor *output, khub_error *err)
{
    char buffer[200];
    size_t count;
    const khub_value *items = khub_value_items(result, &count);
    const khub_tensor *given = khub_value_tensor(items && count == 1 ? items : result);
    const char *wrong = !given ? "isn't a tensor" : khub__copy_refusal(buffer, sizeof(buffer), output, given);
    if (wrong)
        return khub__fail(err, KHUB_E_KERNEL, "%s (%s): what comes back for %s %s", slot->path,
                          filling->kernel, slot->layer->args[filling->returned_arg].name, wrong);
    khub__tensor_write(output, given);
    return KHUB_OK;
}

static int call_returning(const khub_slot *slot, const khub_filling *filling, const khub_value *args,
                          int32_t n, const khub_value *output, khub_error *err)
{
    khub_value result = khub_arg_none();
    int rc = filling->function.call(filling->function.self, args, n, &result);
    if (rc != 0) return khub__slot_settle_call(slot, filling, rc, result, err);
    const khub_tensor *to = khub_value_tensor(output);
    rc = to ? take_returned(slot, filling, &result, to, err) : KHUB_OK; /* an output that nobody wants */
    khub_value_release(&result);
    return rc;
}

int khub_filling_call(const khub_slot *slot, const khub_filling *filling, const khub_value *args, int32_t n,
                      khub_error *err)
{
    khub_value own[KHUB__MAX_ARGS];
    if (n != filling->arg_count) return wrong_count(slot, n, err);
    if (filling->run) return filling->run(slot, filling, args, n, err);
    const khub_value *given = args;
    int32_t returned = filling->returned_arg;
    n -= returned >= 0;
    if (!filling->in_order) {
        for (int32_t i = 0; i < n; i++)
            own[i] = args[filling->order[i]];
        args = own;
    }
    const khub_slot *outer = running.slot; /* of a function that calls slots itself */
    const khub_filling *outer_filling = running.filling;
    running.slot = slot, running.filling = filling;
    int rc = returned >= 0 ? call_returning(slot, filling, args, n, &given[returned], err)
                           : call_function(slot, filling, args, n, err);
    running.slot = outer, running.filling = outer_filling;
    return rc;
}

void khub_filling_prepare_args(const khub_filling *filling, khub_value *args, int32_t n)
{
    int32_t at = filling->prepared_arg;
    if (at >= 0 && at < n) args[at] = khub_arg_tensor(&filling->prepared.array.tensor);
}

int khub__call_adapted(const khub_slot *slot, const khub_filling *filling, const khub_value *args, int32_t n,
                       khub_error *err)
{
    khub_value own[KHUB__MAX_ARGS];
    if (filling->prepared_arg >= 0 && n == filling->arg_count) {
        memcpy(own, args, (size_t)n * sizeof(*own));
        khub_filling_prepare_args(filling, own, n);
        args = own;
    }
    return khub_filling_call(slot, filling, args, n, err);
}

int khub__slot_call(const khub_slot *slot, const khub_value *args, int32_t n, khub_error *err)
{
    uint64_t was = khub__reader_hop_in();
    if (was == KHUB__READER_UNLISTED) khub__reader_enter();
    const khub_filling *now = khub_slot_filling(slot);
    int is_plain = now->plain_count == n && !atomic_load_explicit(&slot->retries, memory_order_relaxed);
    int rc = is_plain ? call_function(slot, now, args, n, err) : khub__call_kept(slot, now, args, n, err);
    if (was == KHUB__READER_UNLISTED)
        khub__reader_leave();
    else
        khub__reader_hop_out(was);
    return rc;
}

void khub_layers_enter(void)
{
    khub__reader_enter();
}

void khub_layers_leave(void)
{
    khub__reader_leave();
}

const khub_filling *khub_slot_filling(const khub_slot *slot)
{
    return atomic_load_explicit(&slot->now, memory_order_acquire);
}

size_t khub_filling_axes(const khub_filling *filling, const khub_slot_axis **axes)
{
    *axes = filling->axes;
    return filling->axis_count;
}

void khub__axis_complete(khub_slot_axis *axis, const khub__layer_def *layer)
{
    for (size_t i = 0; i < axis->part_count; i++)
        axis->part[i].min_ndim = axis->part[i].dim + 1 + layer->args[axis->part[i].arg].inner;
}

static int check_axis(const khub_slot *slot, const khub_slot_axis *axis, khub_error *err)
{
    int fits = axis->part_count <= sizeof(axis->part) / sizeof(*axis->part) && axis->step >= 0;
    for (size_t i = 0; fits && i < axis->part_count; i++)
        fits = axis->part[i].arg >= 0 && axis->part[i].arg < slot->layer->arg_count &&
               axis->part[i].dim >= 0 && axis->part[i].dim < KHUB_MAX_NDIM && axis->part[i].unit > 0;
    return fits ? KHUB_OK
                : khub__fail(err, KHUB_E_INVAL, "%s: the axis \"%s\" has a part that %s can't have",
                             slot->path, axis->axis, slot->layer->name);
}

int khub_slot_slice(khub_slot *slot, const khub_slot_axis *axes, size_t count, khub_error *err)
{
    if (count > KHUB__MAX_AXES)
        return khub__fail(err, KHUB_E_INVAL, "%s: %zu axes, at most %d are kept", slot->path, count,
                          KHUB__MAX_AXES);
    for (size_t i = 0; i < count; i++) {
        int rc = check_axis(slot, &axes[i], err);
        if (rc != KHUB_OK) return rc;
    }
    khub_slot_axis *own = khub__malloc(count * sizeof(*own));
    if (!own) return khub__fail_memory(err, "slicing a slot");
    for (size_t i = 0; i < count; i++) {
        own[i] = axes[i];
        khub__axis_complete(&own[i], slot->layer);
    }
    khub__free((void *)(uintptr_t)slot->standard.axes);
    slot->standard.axes = own;
    slot->standard.axis_count = count;
    return KHUB_OK;
}

uint64_t khub_slot_retried(const khub_slot *slot)
{
    return atomic_load(&slot->retried);
}

const char *khub_slot_path(const khub_slot *slot)
{
    return slot->path;
}

const char *khub_slot_layer(const khub_slot *slot)
{
    return slot->layer->name;
}
