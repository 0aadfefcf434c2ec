#include "layer/recipe.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "layer/prepare.h"

#include <stdio.h>

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* The same build, of the same commit where it has one: nothing about it can differ. */
static int is_same_kernel(const khub_kernel *a, const khub_kernel *b)
{
    return !strcmp(khub_kernel_library(a), khub_kernel_library(b)) &&
           !strcmp(khub_kernel_build(a), khub_kernel_build(b)) &&
           !strcmp(khub_kernel_name(a), khub_kernel_name(b)) &&
           same_text(khub_kernel_commit(a), khub_kernel_commit(b)) &&
           khub_kernel_version(a) == khub_kernel_version(b);
}

khub__source *khub__source_of(khub_layers *layers, khub_kernel *kernel)
{
    for (khub__source *there = layers->sources; there; there = there->next)
        if (is_same_kernel(there->kernel, kernel)) {
            khub_kernel_close(kernel);
            there->uses++;
            return there;
        }
    khub__source *source = khub__calloc(1, sizeof(*source));
    if (!source) {
        khub_kernel_close(kernel);
        return NULL;
    }
    *source = (khub__source){.uses = 1, .next = layers->sources, .at = &layers->sources, .kernel = kernel};
    if (source->next) source->next->at = &source->next;
    return layers->sources = source;
}

void khub__source_give_up(khub__source *source)
{
    if (!source || --source->uses) return;
    *source->at = source->next;
    if (source->next) source->next->at = source->at;
    khub_kernel_close(source->kernel);
    khub__free(source);
}

/* What a recipe is made of. */
typedef struct maker {
    khub__recipe *recipe; /* with its layer and source */
    const char *kernel;   /* its name, for messages */
    const khub_layer_spec *spec;
    khub_error *err;
} maker;

static int check_dtype(const maker *m, khub_dtype slot)
{
    char own[32];
    const char *dtype = khub_dtype_name(slot, own);
    const khub_layer_spec *spec = m->spec;
    if (!spec->dtypes || !slot.bits) return KHUB_OK;
    khub__text served = {0};
    for (size_t i = 0; spec->dtypes[i]; i++) {
        if (!strcmp(spec->dtypes[i], dtype)) {
            khub__text_free(&served);
            return KHUB_OK;
        }
        khub__text_addf(&served, "%s%s", i ? ", " : "", spec->dtypes[i]);
    }
    int rc = khub__fail(m->err, KHUB_E_UNSUPPORTED, "%s: %s serves %s in %s, the slot is %s", m->kernel,
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

static int wrong_args(const maker *m)
{
    const khub_layer_spec *spec = m->spec;
    const char *commit = khub_kernel_commit(m->recipe->source->kernel);
    khub__text text = {0};
    for (size_t i = 0; i < spec->arg_count; i++)
        khub__text_addf(&text, "%s%s", i ? ", " : "", spec->args[i]);
    khub__text_add(&text, "; the layer has: ");
    add_expected(&text, m->recipe->layer);
    int rc = khub__fail(m->err, KHUB_E_FORMAT,
                        "%s%s%s%s: arguments of %s for %s don't match the layer's, each once: found: %s",
                        m->kernel, commit ? " (commit " : "", commit ? commit : "", commit ? ")" : "",
                        spec->function, m->recipe->layer->name, text.data ? text.data : "?");
    khub__text_free(&text);
    return rc;
}

/* Where each argument of the function stands among the layer's. */
static int take_listed(const maker *m, int32_t count)
{
    khub__recipe *recipe = m->recipe;
    const khub_layer_spec *spec = m->spec;
    unsigned seen = recipe->returned_arg >= 0 ? 1u << recipe->returned_arg : 0;
    if (spec->arg_count != (size_t)count) return wrong_args(m);
    for (int32_t i = 0; i < count; i++) {
        int32_t at = khub__layer_position(recipe->layer, spec->args[i]);
        if (at < 0 || seen & 1u << at) return wrong_args(m);
        seen |= 1u << at;
        recipe->order[i] = at;
        if (at != i) recipe->in_order = 0;
    }
    return KHUB_OK;
}

static int take_returned(const maker *m)
{
    khub__recipe *recipe = m->recipe;
    const char *returns = m->spec->returns;
    recipe->returned_arg = returns ? khub__layer_position(recipe->layer, returns) : -1;
    if (!returns || (recipe->returned_arg >= 0 && recipe->layer->args[recipe->returned_arg].is_output))
        return KHUB_OK;
    return khub__fail(m->err, KHUB_E_FORMAT, "%s: \"returns\" of %s names \"%s\", which is no output of %s",
                      m->kernel, m->spec->function, returns, recipe->layer->name);
}

static int take_args(const maker *m)
{
    khub__recipe *recipe = m->recipe;
    int rc = take_returned(m);
    if (rc != KHUB_OK) return rc;
    int32_t count = recipe->layer->arg_count - (recipe->returned_arg >= 0);
    recipe->in_order = recipe->returned_arg < 0;
    if (m->spec->args) return take_listed(m, count);
    for (int32_t i = 0; i < count; i++) /* the layer's own order, without the one that comes back */
        recipe->order[i] = i + (recipe->returned_arg >= 0 && i >= recipe->returned_arg);
    return KHUB_OK;
}

static int take_axis(khub_slot_axis *axis, const maker *m, const khub_slice_axis *given)
{
    const khub__layer_def *layer = m->recipe->layer;
    if (given->part_count > sizeof(axis->part) / sizeof(*axis->part))
        return khub__fail(m->err, KHUB_E_FORMAT, "%s: slices of %s: \"%s\" has more than 8 parts", m->kernel,
                          m->spec->function, given->axis);
    axis->axis = given->axis;
    axis->part_count = given->part_count;
    for (size_t p = 0; p < given->part_count; p++) {
        int32_t at = khub__layer_position(layer, given->parts[p].arg);
        if (at < 0)
            return khub__fail(m->err, KHUB_E_FORMAT, "%s: slices of %s name \"%s\", which %s doesn't have",
                              m->kernel, m->spec->function, given->parts[p].arg, layer->name);
        axis->part[p].arg = at;
        axis->part[p].dim = given->parts[p].dim;
        axis->part[p].unit = given->parts[p].unit;
    }
    khub__axis_complete(axis, layer);
    return KHUB_OK;
}

static int take_axes(const maker *m)
{
    khub__recipe *recipe = m->recipe;
    size_t count = m->spec->slice_count < KHUB__MAX_AXES ? m->spec->slice_count : KHUB__MAX_AXES;
    if (!count) return KHUB_OK;
    recipe->axes = khub__calloc(count, sizeof(*recipe->axes));
    if (!recipe->axes) return khub__fail_memory(m->err, "filling a slot");
    for (size_t i = 0; i < count; i++) {
        int rc = take_axis(&recipe->axes[i], m, &m->spec->slices[i]);
        if (rc != KHUB_OK) return rc;
        recipe->axis_count++;
    }
    return KHUB_OK;
}

static int take_prepared(const maker *m)
{
    khub__recipe *recipe = m->recipe;
    const khub_layer_spec *spec = m->spec;
    recipe->prepared_arg = -1;
    if (!spec->prepare_arg) return KHUB_OK;
    int32_t at = khub__layer_position(recipe->layer, spec->prepare_arg);
    if (at < 0)
        return khub__fail(m->err, KHUB_E_FORMAT, "%s: \"prepare\" of %s names \"%s\", which %s doesn't have",
                          m->kernel, spec->function, spec->prepare_arg, recipe->layer->name);
    int rc = khub_kernel_function(&recipe->prepare, recipe->source->kernel, spec->prepare_function, m->err);
    if (rc == KHUB_OK) recipe->prepared_arg = at;
    return rc;
}

/* The texts of the spec are the kernel's or a mapping's, which may go: the recipe has its own. */
static int own_texts(const maker *m)
{
    khub__recipe *recipe = m->recipe;
    khub__text text = {0};
    size_t at[2 + KHUB__MAX_AXES];
    const char **texts[2 + KHUB__MAX_AXES] = {&recipe->name, &recipe->prepare_name};
    size_t count = 2;
    recipe->name = m->spec->function;
    recipe->prepare_name = m->spec->prepare_arg ? m->spec->prepare_function : NULL;
    for (size_t i = 0; i < recipe->axis_count; i++)
        texts[count++] = &recipe->axes[i].axis;
    for (size_t i = 0; i < count; i++) {
        at[i] = text.length;
        if (*texts[i]) khub__text_add_bytes(&text, *texts[i], strlen(*texts[i]) + 1);
    }
    recipe->texts = khub__text_take(&text);
    if (!recipe->texts) return khub__fail_memory(m->err, "filling a slot");
    for (size_t i = 0; i < count; i++)
        if (*texts[i]) *texts[i] = recipe->texts + at[i];
    return KHUB_OK;
}

static int make(const maker *m, khub_dtype dtype)
{
    khub_gpu *gpu = m->recipe->gpu;
    int rc = gpu ? khub__gpu_takes(gpu, m->recipe->source->kernel, m->err) : KHUB_OK;
    if (rc == KHUB_OK) rc = check_dtype(m, dtype);
    if (rc == KHUB_OK) rc = take_args(m);
    if (rc == KHUB_OK) rc = take_axes(m);
    if (rc == KHUB_OK)
        rc = khub_kernel_function(&m->recipe->function, m->recipe->source->kernel, m->spec->function, m->err);
    if (rc == KHUB_OK) rc = take_prepared(m);
    m->recipe->deterministic = m->spec->deterministic;
    return rc == KHUB_OK ? own_texts(m) : rc;
}

static int same_axis(const khub_slot_axis *a, const khub_slot_axis *b)
{
    int same = !strcmp(a->axis, b->axis) && a->part_count == b->part_count;
    for (size_t i = 0; same && i < a->part_count; i++)
        same = a->part[i].arg == b->part[i].arg && a->part[i].dim == b->part[i].dim &&
               a->part[i].unit == b->part[i].unit;
    return same;
}

static int same_function(khub_function a, khub_function b)
{
    return a.call == b.call && a.self == b.self;
}

/* What a slot's filling depends on. */
static int same_recipe(const khub__recipe *a, const khub__recipe *b)
{
    int same = a->source == b->source && a->gpu == b->gpu && a->layer == b->layer &&
               same_function(a->function, b->function) && same_function(a->prepare, b->prepare) &&
               a->returned_arg == b->returned_arg && !strcmp(a->name, b->name) &&
               a->in_order == b->in_order && !memcmp(a->order, b->order, sizeof(a->order)) &&
               a->prepared_arg == b->prepared_arg && a->deterministic == b->deterministic &&
               a->axis_count == b->axis_count;
    for (size_t i = 0; same && i < a->axis_count; i++)
        same = same_axis(&a->axes[i], &b->axes[i]);
    return same;
}

static void recipe_free(khub__recipe *recipe)
{
    khub__source_give_up(recipe->source);
    khub__shelf_give_up(recipe->last);
    khub__free(recipe->axes);
    khub__free(recipe->texts);
    khub__free(recipe);
}

int khub__recipe_of(khub__recipe **out, khub_layers *layers, khub__source *source,
                    const khub__layer_def *layer, khub_dtype dtype, khub_gpu *gpu,
                    const khub_layer_spec *spec, khub_error *err)
{
    *out = NULL;
    khub__recipe *recipe = khub__calloc(1, sizeof(*recipe));
    if (!recipe) return khub__fail_memory(err, "filling a slot");
    *recipe = (khub__recipe){.uses = 1, .layer = layer, .source = source, .gpu = gpu};
    source->uses++;
    const maker m = {recipe, khub_kernel_name(source->kernel), spec, err};
    int rc = make(&m, dtype);
    khub__recipe *there = layers->recipes;
    while (rc == KHUB_OK && there && !same_recipe(there, recipe))
        there = there->next;
    if (rc != KHUB_OK || there) {
        recipe_free(recipe);
        if (rc != KHUB_OK) return rc;
        there->uses++;
        *out = there;
        return KHUB_OK;
    }
    recipe->next = layers->recipes;
    recipe->at = &layers->recipes;
    if (recipe->next) recipe->next->at = &recipe->next;
    *out = layers->recipes = recipe;
    return KHUB_OK;
}

void khub__recipe_give_up(khub__recipe *recipe)
{
    if (!recipe || --recipe->uses) return;
    *recipe->at = recipe->next;
    if (recipe->next) recipe->next->at = recipe->at;
    recipe_free(recipe);
}

/* As slots call it. */
static khub_function as_called(khub__recipe *recipe, khub_function function, const char *name, int which)
{
    khub__gpu_bound *bound = &recipe->on_gpu[which];
    if (!recipe->gpu) return function;
    if (bound->gpu) return khub__gpu_bound_function(bound); /* calls may be in it */
    bound->gpu = recipe->gpu;
    bound->function = function;
    snprintf(bound->what, sizeof(bound->what), "%s:%s", khub_kernel_name(recipe->source->kernel), name);
    return khub__gpu_bound_function(bound);
}

static int fill_prepared(khub_filling *filling, khub__recipe *recipe, const khub_slot *slot, khub_error *err)
{
    const khub_tensor *from = slot->bound[recipe->prepared_arg];
    const char *name = khub_kernel_name(recipe->source->kernel);
    char what[512];
    if (!from)
        return khub__fail(err, KHUB_E_UNSUPPORTED,
                          "%s: %s wants \"%s\" prepared, and the slot has not bound it", name, recipe->name,
                          slot->layer->args[recipe->prepared_arg].name);
    snprintf(what, sizeof(what), "%s:%s", name, recipe->prepare_name);
    filling->from = from;
    filling->from_was = *from;
    const khub_function prepare = as_called(recipe, recipe->prepare, recipe->prepare_name, 1);
    return khub__prepare(&filling->prepared, &recipe->last, recipe->gpu, &prepare, what, from, err);
}

static int fill_anew(khub_filling **out, khub__recipe *recipe, const khub_slot *slot, khub_error *err)
{
    khub_filling *filling = khub__calloc(1, sizeof(*filling));
    if (!filling) return khub__fail_memory(err, "filling a slot");
    int rc = recipe->prepared_arg >= 0 ? fill_prepared(filling, recipe, slot, err) : KHUB_OK;
    if (rc != KHUB_OK) {
        khub__free(filling);
        return rc;
    }
    filling->function = as_called(recipe, recipe->function, recipe->name, 0);
    memcpy(filling->order, recipe->order, sizeof(recipe->order));
    filling->in_order = recipe->in_order;
    filling->prepared_arg = recipe->prepared_arg;
    filling->returned_arg = recipe->returned_arg;
    filling->axes = recipe->axes;
    filling->axis_count = recipe->axis_count;
    filling->kernel = khub_kernel_name(recipe->source->kernel);
    filling->recipe = recipe;
    filling->uses = 1;
    recipe->uses++;
    khub__filling_complete(filling, recipe->layer);
    *out = filling;
    return KHUB_OK;
}

/* Made after this recipe of the weight that is bound, in the form that it has now. */
static int is_made(const khub_filling *filling, const khub__recipe *recipe, const khub_slot *slot)
{
    if (!filling || filling->recipe != recipe) return 0;
    if (recipe->prepared_arg < 0) return 1;
    const khub_tensor *now = slot->bound[recipe->prepared_arg], *was = &filling->from_was;
    return now == filling->from && now->data == was->data && now->ndim == was->ndim &&
           now->shape == was->shape && now->strides == was->strides && now->byte_offset == was->byte_offset &&
           !memcmp(&now->dtype, &was->dtype, sizeof(now->dtype));
}

int khub__recipe_fill(khub_filling **out, khub__recipe *recipe, const khub_slot *slot, khub_error *err)
{
    *out = is_made(slot->kernel, recipe, slot) ? slot->kernel : recipe->shared;
    if (*out) {
        (*out)->uses++;
        return KHUB_OK;
    }
    int rc = fill_anew(out, recipe, slot, err);
    if (rc == KHUB_OK && recipe->prepared_arg < 0) recipe->shared = *out;
    return rc;
}
