#include "layer/slot.h"

#include "base/error.h"
#include "base/memory.h"

enum { MAX_SLOTS = 1 << 20 };

int khub_layers_new(khub_layers **out, khub_error *err)
{
    int missing = khub__given("khub_layers_new", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    *out = khub__calloc(1, sizeof(**out));
    return *out ? KHUB_OK : khub__fail_memory(err, "making the layers of a model");
}

void khub__filling_free(khub_filling *filling)
{
    if (!filling) return;
    khub_array_free(&filling->prepared);
    khub__free(filling->axes);
    khub__free(filling);
}

static void slot_free(khub_slot *slot)
{
    if (!slot) return;
    khub__filling_free(slot->kernel);
    khub__free(slot->standard.axes);
    khub__free(slot->path);
    khub__free(slot);
}

void khub_layers_free(khub_layers *layers)
{
    if (!layers) return;
    for (size_t i = 0; i < layers->count; i++)
        slot_free(layers->slots[i]);
    khub__sources_free(layers->sources);
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

int khub_layers_add(khub_layers *layers, const char *path, const char *layer, khub_function standard,
                    khub_dtype dtype, khub_slot **slot, khub_error *err)
{
    if (slot) *slot = NULL;
    int rc = khub__given("khub_layers_add", layers && path && layer, err);
    if (rc == KHUB_OK) rc = check_new(layers, path, layer, err);
    if (rc != KHUB_OK) return rc;
    khub_slot *added = khub__calloc(1, sizeof(*added));
    if (!added || !(added->path = khub__strdup(path)) ||
        khub__grow((void **)&layers->slots, &layers->capacity, layers->count + 1, sizeof(khub_slot *),
                   MAX_SLOTS) ||
        khub__index_add(&layers->by_path, added->path, (uint32_t)layers->count)) {
        slot_free(added);
        return khub__fail_memory(err, "adding a slot");
    }
    added->layer = khub__layer_find(layer);
    added->dtype = dtype;
    added->standard.function = standard;
    added->standard.in_order = 1;
    added->standard.prepared_arg = -1;
    khub__filling_complete(&added->standard, added->layer);
    added->now = &added->standard;
    layers->slots[layers->count++] = added;
    if (slot) *slot = added;
    return KHUB_OK;
}

int khub_slot_bind(khub_slot *slot, const char *arg, const khub_tensor *tensor, khub_error *err)
{
    int missing = khub__given("khub_slot_bind", slot && arg, err);
    if (missing != KHUB_OK) return missing;
    int32_t at = khub__layer_position(slot->layer, arg);
    if (at < 0)
        return khub__fail(err, KHUB_E_INVAL, "%s: the layer %s has no argument \"%s\"", slot->path,
                          slot->layer->name, arg);
    slot->bound[at] = tensor;
    return KHUB_OK;
}

void khub__slot_fill(khub_slot *slot, khub_filling *filling)
{
    khub_filling *old = slot->kernel;
    slot->kernel = filling;
    slot->now = filling ? filling : &slot->standard;
    khub__filling_free(old);
}

void khub_standardize(khub_layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        khub__slot_fill(layers->slots[i], NULL);
}

void khub__filling_complete(khub_filling *filling, const khub__layer_def *layer)
{
    filling->arg_count = layer->arg_count;
    filling->plain = filling->in_order && filling->prepared_arg < 0 && !filling->run;
}

/* A failed call, told with the slot and the kernel it happened in. */
static int call_failed(const khub_slot *slot, const khub_filling *filling, const khub_error *why,
                       khub_error *err)
{
    return khub__fail(err, KHUB_E_KERNEL, "%s (%s): %s", slot->path,
                      filling->kernel ? filling->kernel : "standard", why->message);
}

static int wrong_count(const khub_slot *slot, int32_t n, khub_error *err)
{
    return khub__fail(err, KHUB_E_INVAL, "%s: %s takes %d arguments, %d were given", slot->path,
                      slot->layer->name, (int)slot->layer->arg_count, (int)n);
}

static int call_function(const khub_slot *slot, const khub_filling *filling, const khub_value *args,
                         int32_t n, khub_error *err)
{
    khub_error why; /* 1 KiB: emptied only by its first bytes */
    why.code = KHUB_OK, why.message[0] = 0;
    if (khub_function_call(&filling->function, args, n, NULL, &why) == KHUB_OK) return KHUB_OK;
    return call_failed(slot, filling, &why, err);
}

int khub_filling_call(const khub_slot *slot, const khub_filling *filling, const khub_value *args, int32_t n,
                      khub_error *err)
{
    khub_value own[KHUB__MAX_ARGS];
    if (n != filling->arg_count) return wrong_count(slot, n, err);
    if (filling->run) return filling->run(slot, filling, args, n, err);
    if (!filling->in_order) {
        for (int32_t i = 0; i < n; i++)
            own[i] = args[filling->order[i]];
        args = own;
    }
    return call_function(slot, filling, args, n, err);
}

void khub_filling_prepare_args(const khub_filling *filling, khub_value *args, int32_t n)
{
    int32_t at = filling->prepared_arg;
    if (at >= 0 && at < n) args[at] = khub_arg_tensor(&filling->prepared.tensor);
}

static int call_adapted(const khub_slot *slot, const khub_filling *filling, const khub_value *args, int32_t n,
                        khub_error *err)
{
    khub_value own[KHUB__MAX_ARGS];
    if (n != filling->arg_count) return wrong_count(slot, n, err);
    memcpy(own, args, (size_t)n * sizeof(*own));
    khub_filling_prepare_args(filling, own, n);
    return khub_filling_call(slot, filling, own, n, err);
}

int khub_slot_call(const khub_slot *slot, const khub_value *args, int32_t n, khub_error *err)
{
    khub_layers_enter();
    const khub_filling *now = slot->now;
    int rc = now->plain && n == now->arg_count ? call_function(slot, now, args, n, err)
                                               : call_adapted(slot, now, args, n, err);
    khub_layers_leave();
    return rc;
}

void khub_layers_enter(void)
{
}

void khub_layers_leave(void)
{
}

const khub_filling *khub_slot_filling(const khub_slot *slot)
{
    return slot->now;
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
    khub__free(slot->standard.axes);
    slot->standard.axes = own;
    slot->standard.axis_count = count;
    return KHUB_OK;
}

const char *khub_slot_path(const khub_slot *slot)
{
    return slot->path;
}

const char *khub_slot_layer(const khub_slot *slot)
{
    return slot->layer->name;
}
