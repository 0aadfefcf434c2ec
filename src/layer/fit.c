#include "layer/fit.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "layer/prepare.h"

#include <stdio.h>

static int check_dtype(const khub_slot *slot, const khub_layer_spec *spec, const char *name, khub_error *err)
{
    char own[32];
    const char *dtype = khub_dtype_name(slot->dtype, own);
    if (!spec->dtypes) return KHUB_OK;
    khub__text served = {0};
    for (size_t i = 0; spec->dtypes[i]; i++) {
        if (!strcmp(spec->dtypes[i], dtype)) {
            khub__text_free(&served);
            return KHUB_OK;
        }
        khub__text_addf(&served, "%s%s", i ? ", " : "", spec->dtypes[i]);
    }
    int rc = khub__fail(err, KHUB_E_UNSUPPORTED, "%s: %s serves %s in %s, the slot is %s", name,
                        spec->function, spec->layer, served.data ? served.data : "no dtype", dtype);
    khub__text_free(&served);
    return rc;
}

/* "out, x, weight" of the layer's own arguments. */
static void add_expected(khub__text *text, const khub__layer_def *layer)
{
    for (int32_t i = 0; i < layer->arg_count; i++)
        khub__text_addf(text, "%s%s", i ? ", " : "", layer->args[i].name);
}

static int wrong_args(const khub_slot *slot, const khub_layer_spec *spec, const char *name, khub_error *err)
{
    khub__text text = {0};
    for (size_t i = 0; i < spec->arg_count; i++)
        khub__text_addf(&text, "%s%s", i ? ", " : "", spec->args[i]);
    khub__text_add(&text, "; the layer has: ");
    add_expected(&text, slot->layer);
    int rc = khub__fail(err, KHUB_E_FORMAT,
                        "%s: arguments of %s for %s don't match the layer's, each once: found: %s", name,
                        spec->function, slot->layer->name, text.data ? text.data : "?");
    khub__text_free(&text);
    return rc;
}

/* Where each argument of the function stands among the layer's. */
static int fit_args(khub_filling *filling, const khub_slot *slot, const khub_layer_spec *spec,
                    const char *name, khub_error *err)
{
    const khub__layer_def *layer = slot->layer;
    unsigned seen = 0;
    filling->in_order = 1;
    if (!spec->args) return KHUB_OK;
    if (spec->arg_count != (size_t)layer->arg_count) return wrong_args(slot, spec, name, err);
    for (int32_t i = 0; i < layer->arg_count; i++) {
        int32_t at = khub__layer_position(layer, spec->args[i]);
        if (at < 0 || seen & 1u << at) return wrong_args(slot, spec, name, err);
        seen |= 1u << at;
        filling->order[i] = at;
        if (at != i) filling->in_order = 0;
    }
    return KHUB_OK;
}

static int fit_axes(khub_filling *filling, const khub_slot *slot, const khub_layer_spec *spec,
                    const char *name, khub_error *err)
{
    size_t count = spec->slice_count < KHUB__MAX_AXES ? spec->slice_count : KHUB__MAX_AXES;
    if (!count) return KHUB_OK;
    filling->axes = khub__calloc(count, sizeof(*filling->axes));
    if (!filling->axes) return khub__fail_memory(err, "filling a slot");
    for (size_t i = 0; i < count; i++) {
        const khub_slice_axis *given = &spec->slices[i];
        khub_slot_axis *axis = &filling->axes[filling->axis_count];
        if (given->part_count > sizeof(axis->part) / sizeof(*axis->part))
            return khub__fail(err, KHUB_E_FORMAT, "%s: slices of %s: \"%s\" has more than 8 parts", name,
                              spec->function, given->axis);
        axis->axis = given->axis;
        axis->part_count = given->part_count;
        for (size_t p = 0; p < given->part_count; p++) {
            int32_t at = khub__layer_position(slot->layer, given->parts[p].arg);
            if (at < 0)
                return khub__fail(err, KHUB_E_FORMAT, "%s: slices of %s name \"%s\", which %s doesn't have",
                                  name, spec->function, given->parts[p].arg, slot->layer->name);
            axis->part[p].arg = at;
            axis->part[p].dim = given->parts[p].dim;
            axis->part[p].unit = given->parts[p].unit;
        }
        khub__axis_complete(axis, slot->layer);
        filling->axis_count++;
    }
    return KHUB_OK;
}

static int fit_prepared(khub_filling *filling, const khub_slot *slot, const khub_layer_spec *spec,
                        const khub_kernel *kernel, const char *name, khub_error *err)
{
    filling->prepared_arg = -1;
    if (!spec->prepare_arg) return KHUB_OK;
    int32_t at = khub__layer_position(slot->layer, spec->prepare_arg);
    if (at < 0)
        return khub__fail(err, KHUB_E_FORMAT, "%s: \"prepare\" of %s names \"%s\", which %s doesn't have",
                          name, spec->function, spec->prepare_arg, slot->layer->name);
    if (!slot->bound[at])
        return khub__fail(err, KHUB_E_UNSUPPORTED,
                          "%s: %s wants \"%s\" prepared, and the slot has not bound it", name, spec->function,
                          spec->prepare_arg);
    khub_function prepare;
    int rc = khub_kernel_function(&prepare, kernel, spec->prepare_function, err);
    char what[512];
    snprintf(what, sizeof(what), "%s:%s", name, spec->prepare_function);
    if (rc == KHUB_OK) rc = khub__prepare(&filling->prepared, &prepare, what, slot->bound[at], err);
    if (rc == KHUB_OK) filling->prepared_arg = at;
    return rc;
}

int khub__fit(khub_filling **out, const khub_slot *slot, const khub_layer_spec *spec,
              const khub_kernel *kernel, const char *name, khub_error *err)
{
    *out = NULL;
    khub_filling *filling = khub__calloc(1, sizeof(*filling));
    if (!filling) return khub__fail_memory(err, "filling a slot");
    filling->kernel = name;
    int rc = check_dtype(slot, spec, name, err);
    if (rc == KHUB_OK) rc = fit_args(filling, slot, spec, name, err);
    if (rc == KHUB_OK) rc = fit_axes(filling, slot, spec, name, err);
    if (rc == KHUB_OK) rc = khub_kernel_function(&filling->function, kernel, spec->function, err);
    if (rc == KHUB_OK) rc = fit_prepared(filling, slot, spec, kernel, name, err);
    khub__filling_complete(filling, slot->layer);
    if (rc == KHUB_OK)
        *out = filling;
    else
        khub__filling_free(filling);
    return rc;
}
