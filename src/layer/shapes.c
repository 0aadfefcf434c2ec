#include "layer/shapes.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/array.h"

#include <stdio.h>

static int check_one(const khub_slot *slot, const khub_slot_shape *shapes, size_t i, khub_error *err)
{
    const khub_slot_shape *s = &shapes[i];
    int32_t at = s->arg ? khub__layer_position(slot->layer, s->arg) : -1;
    if (at < 0 || khub__arg_is_number(slot->layer->args[at].kind))
        return khub__fail(err, KHUB_E_INVAL, "%s: a shape is given for \"%.60s\", and %s has no such tensor",
                          slot->path, s->arg ? s->arg : "NULL", slot->layer->name);
    for (size_t k = 0; k < i; k++)
        if (!strcmp(shapes[k].arg, s->arg))
            return khub__fail(err, KHUB_E_INVAL, "%s: a shape is given for \"%s\" twice", slot->path, s->arg);
    int fits = s->ndim >= 0 && s->ndim <= KHUB_MAX_NDIM && (s->shape || !s->ndim);
    for (int32_t d = 0; fits && d < s->ndim; d++)
        fits = s->shape[d] >= -1;
    return fits ? KHUB_OK
                : khub__fail(err, KHUB_E_INVAL, "%s: the shape given for \"%s\" can't be one", slot->path,
                             s->arg);
}

int khub__shapes_take(khub_slot *slot, const khub_slot_options *options, khub_error *err)
{
    size_t count = options->shape_count, extents = 0;
    if (count && !options->shapes)
        return khub__fail(err, KHUB_E_INVAL, "%s: shape_count is %zu, and shapes is NULL", slot->path, count);
    for (size_t i = 0; i < count; i++) {
        int rc = check_one(slot, options->shapes, i, err);
        if (rc != KHUB_OK) return rc;
        extents += (size_t)options->shapes[i].ndim;
    }
    if (!count) return KHUB_OK;
    slot->shapes = khub__malloc(count * sizeof(*slot->shapes) + extents * sizeof(int64_t));
    if (!slot->shapes) return khub__fail_memory(err, "adding a slot");
    int64_t *next = (int64_t *)(void *)(slot->shapes + count);
    slot->shape_count = count;
    for (size_t i = 0; i < count; i++) {
        const khub_slot_shape *s = &options->shapes[i];
        int32_t at = khub__layer_position(slot->layer, s->arg);
        slot->shapes[i] = (khub_slot_shape){slot->layer->args[at].name, s->ndim, next};
        if (s->ndim) memcpy(next, s->shape, (size_t)s->ndim * sizeof(*next));
        next += s->ndim;
    }
    return KHUB_OK;
}

static const khub_slot_shape *find(const khub_slot *slot, const char *arg)
{
    for (size_t i = 0; i < slot->shape_count; i++)
        if (!strcmp(slot->shapes[i].arg, arg)) return &slot->shapes[i];
    return NULL;
}

int khub__shapes_agree(const khub_slot *slot, int32_t arg, const khub_tensor *tensor, khub_error *err)
{
    const khub_slot_shape *said = find(slot, slot->layer->args[arg].name);
    if (!said || !tensor) return KHUB_OK;
    int same = said->ndim == tensor->ndim;
    for (int32_t i = 0; same && i < said->ndim; i++)
        same = said->shape[i] < 0 || said->shape[i] == tensor->shape[i];
    if (same) return KHUB_OK;
    char was[128], is[128];
    return khub__fail(err, KHUB_E_INVAL, "%s: \"%s\" is bound to a tensor %s, and the slot was added with %s",
                      slot->path, said->arg, khub__shape_text(is, tensor->ndim, tensor->shape),
                      khub__shape_text(was, said->ndim, said->shape));
}

/* An extent of an argument, -1: not known; -2: it has no such axis. */
static int64_t extent_of(const khub_slot *slot, int32_t arg, int32_t dim)
{
    const khub_slot_shape *said = find(slot, slot->layer->args[arg].name);
    const khub_tensor *bound = slot->bound[arg];
    if (!said && !bound) return -1;
    int32_t ndim = bound ? bound->ndim : said->ndim;
    if (dim < 0) dim += ndim;
    if (dim < 0 || dim >= ndim) return -2;
    return bound ? bound->shape[dim] : said->shape[dim];
}

static int takes(const khub_shape_rule *rule, int64_t extent)
{
    for (size_t i = 0; i < rule->value_count; i++)
        if (rule->values[i] == extent) return 1;
    return !rule->values && extent >= rule->min && extent <= rule->max && extent % rule->multiple == 0;
}

/* "64, 128" or "at least 16, a multiple of 8". */
static void say(khub__text *text, const khub_shape_rule *rule)
{
    for (size_t i = 0; i < rule->value_count; i++)
        khub__text_addf(text, "%s%lld", i ? ", " : "", (long long)rule->values[i]);
    if (rule->values) return;
    const char *before = "";
    if (rule->min == rule->max) {
        khub__text_addf(text, "%lld", (long long)rule->min);
        return;
    }
    if (rule->min > 0) khub__text_addf(text, "%lld and more", (long long)rule->min), before = ", ";
    if (rule->max < INT64_MAX)
        khub__text_addf(text, "%sat most %lld", before, (long long)rule->max), before = ", ";
    if (rule->multiple > 1) khub__text_addf(text, "%smultiples of %lld", before, (long long)rule->multiple);
}

static int misfit(const khub_layer_spec *spec, const char *kernel, const khub_shape_rule *rule,
                  int64_t extent, khub_error *err)
{
    khub__text text = {0};
    char has[40];
    say(&text, rule);
    snprintf(has, sizeof(has), "%lld", (long long)extent);
    int rc = khub__fail(err, KHUB_E_UNSUPPORTED, "%s: %s takes %s with an axis %d of %s; the slot's %s%s",
                        kernel, spec->function, rule->arg, (int)rule->dim, text.data ? text.data : "another",
                        extent < 0 ? "has no such axis" : "is ", extent < 0 ? "" : has);
    khub__text_free(&text);
    return rc;
}

int khub__shapes_fit(const khub_layer_spec *spec, const char *kernel, const khub_slot *slot, khub_error *err)
{
    for (size_t i = 0; i < spec->shape_count; i++) {
        const khub_shape_rule *rule = &spec->shapes[i];
        int32_t at = khub__layer_position(slot->layer, rule->arg);
        if (at < 0 || khub__arg_is_number(slot->layer->args[at].kind))
            return khub__fail(err, KHUB_E_FORMAT,
                              "%s: \"shapes\" of %s names \"%s\", which is no tensor of %s", kernel,
                              spec->function, rule->arg, slot->layer->name);
        int64_t extent = extent_of(slot, at, rule->dim);
        if (extent != -1 && !takes(rule, extent)) return misfit(spec, kernel, rule, extent, err);
    }
    return KHUB_OK;
}
