#include "kernel/layers_json.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"

#include <stdio.h>

enum { MAX_UNIT = 4096 }; /* of the axis; packed panels are 8 to 64 wide */

/* A spec under construction: the struct first, then room for everything it points at. */
typedef struct builder {
    khub_layer_spec *spec;
    char *next; /* free room, suitably aligned for what is placed: structs, pointers, then text */
    const char *where;
    khub_error *err;
} builder;

static void *place(builder *b, size_t bytes)
{
    void *at = b->next;
    b->next += bytes;
    return at;
}

static const char *place_text(builder *b, const char *text, size_t length)
{
    char *copy = place(b, length + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

/* An upper bound of what an entry needs beyond the struct: a pointer, a part and its text for each string. */
static size_t room_for(const json_t *value)
{
    const size_t each = sizeof(khub_slice_axis) + sizeof(khub_shape_rule) + 2 * sizeof(char *) + 1;
    _Static_assert(sizeof(khub_slice_part) <= sizeof(khub_shape_rule), "the larger one");
    size_t room = each + json_string_length(value), i;
    const char *key;
    json_t *item;
    json_object_foreach ((json_t *)(uintptr_t)value, key, item)
        room += strlen(key) + room_for(item);
    json_array_foreach (value, i, item)
        room += room_for(item);
    return room;
}

static int wrong(builder *b, const char *key, const char *fact)
{
    return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"%s\" %s", b->where, key, fact);
}

/* A list of at least one name, each a string that isn't empty and stands once, at most `max`. */
static int check_names(builder *b, const json_t *list, const char *key, size_t max)
{
    size_t count = json_array_size(list);
    if (count == 0) return wrong(b, key, "is empty");
    if (count > max)
        return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"%s\" has %zu entries, at most %zu are read", b->where,
                          key, count, max);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name || !name[0]) return wrong(b, key, "holds something that isn't a name");
        for (size_t j = 0; j < i; j++)
            if (!strcmp(name, json_string_value(json_array_get(list, j))))
                return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"%s\" has \"%s\" twice", b->where, key, name);
    }
    return KHUB_OK;
}

/* "args" and "dtypes": pointers now, text later, since text would spoil the alignment. NULL-terminated. */
static int take_names(builder *b, const char *const **out, const json_t *entry, const char *key, size_t max)
{
    khub__json_source source = {b->where, b->err};
    const json_t *list = NULL;
    int rc = khub__json_array(&list, entry, key, &source);
    if (rc != KHUB_OK || !list) return rc;
    rc = check_names(b, list, key, max);
    if (rc != KHUB_OK) return rc;
    size_t count = json_array_size(list);
    const char **names = place(b, (count + 1) * sizeof(*names));
    for (size_t i = 0; i < count; i++)
        names[i] = json_string_value(json_array_get(list, i));
    names[count] = NULL;
    *out = names;
    return KHUB_OK;
}

static int is_name(const char *name, const char *arg, size_t length)
{
    return name && strlen(name) == length && !memcmp(name, arg, length);
}

static int has_arg(const khub_layer_spec *spec, const char *arg, size_t length)
{
    if (is_name(spec->returns, arg, length)) return 1;
    for (size_t i = 0; i < spec->arg_count; i++)
        if (is_name(spec->args[i], arg, length)) return 1;
    return !spec->args; /* the layer's own names, which src/layer knows */
}

/* Digits at *at up to `max`; moves *at behind them. -1: there are none, or the number is larger. */
static int32_t take_number(const char **at, int32_t max)
{
    int32_t number = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if ((number = number * 10 + (**at - '0')) > max) return -1;
    return *at == start ? -1 : number;
}

/* "ARG:AXIS" or "ARG:AXIS/UNIT". The name in `part` is the text with the rest behind it until texts are
 * placed. */
static int take_part(builder *b, khub_slice_part *part, const char *text)
{
    const char *colon = strrchr(text, ':'), *at = colon ? colon + 1 : text;
    int32_t dim = colon && colon != text ? take_number(&at, KHUB_MAX_NDIM - 1) : -1, unit = 1;
    if (dim >= 0 && *at == '/') {
        at++;
        unit = take_number(&at, MAX_UNIT);
    }
    if (dim < 0 || unit < 1 || *at)
        return khub__fail(
            b->err, KHUB_E_FORMAT,
            "%s: \"slices\" has \"%s\", ARG:AXIS or ARG:AXIS/UNIT is expected (axes 0 to %d, units 1 to %d)",
            b->where, text, KHUB_MAX_NDIM - 1, MAX_UNIT);
    if (!has_arg(b->spec, text, (size_t)(colon - text)))
        return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"slices\" has \"%s\", but \"%.*s\" isn't in \"args\"",
                          b->where, text, (int)(colon - text), text);
    *part = (khub_slice_part){text, dim, unit};
    return KHUB_OK;
}

static size_t name_length(const char *text)
{
    return (size_t)(strrchr(text, ':') - text);
}

static int same_place(const khub_slice_part *a, const khub_slice_part *b)
{
    size_t n = name_length(a->arg);
    return a->dim == b->dim && n == name_length(b->arg) && !memcmp(a->arg, b->arg, n);
}

/* An axis of an argument can be cut in one way only. */
static int check_once(builder *b, const khub_slice_axis *axes, const khub_slice_part *part)
{
    for (const khub_slice_axis *axis = axes;; axis++)
        for (size_t i = 0; i < axis->part_count; i++) {
            if (&axis->parts[i] == part) return KHUB_OK;
            if (same_place(&axis->parts[i], part))
                return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"slices\" names axis %d of \"%.*s\" twice",
                                  b->where, (int)part->dim, (int)name_length(part->arg), part->arg);
        }
}

static int take_axis(builder *b, khub_slice_axis *axes, khub_slice_axis *axis, const json_t *list)
{
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count == 0 || count > KHUB__LAYER_MAX_PARTS)
        return khub__fail(
            b->err, KHUB_E_FORMAT, "%s: \"slices\": \"%s\" is %s, a list of 1 to %d texts is expected",
            b->where, axis->axis, json_is_array(list) ? "too short or too long" : khub__json_type_name(list),
            KHUB__LAYER_MAX_PARTS);
    khub_slice_part *parts = place(b, count * sizeof(*parts));
    axis->parts = parts;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text) return wrong(b, "slices", "holds something that isn't text");
        int rc = take_part(b, &parts[i], text);
        axis->part_count = i + 1;
        if (rc == KHUB_OK) rc = check_once(b, axes, &parts[i]);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

static int take_slices(builder *b, const json_t *entry)
{
    khub__json_source source = {b->where, b->err};
    const json_t *slices = NULL;
    int rc = khub__json_object(&slices, entry, "slices", &source);
    if (rc != KHUB_OK || !slices) return rc;
    size_t count = json_object_size(slices);
    if (count > KHUB__LAYER_MAX_AXES)
        return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"slices\" has %zu axes, at most %d are read", b->where,
                          count, KHUB__LAYER_MAX_AXES);
    khub_slice_axis *axes = place(b, count * sizeof(*axes));
    memset(axes, 0, count * sizeof(*axes));
    b->spec->slices = axes;
    const char *key;
    json_t *list;
    json_object_foreach ((json_t *)(uintptr_t)slices, key, list) {
        khub_slice_axis *axis = &axes[b->spec->slice_count++];
        axis->axis = key;
        rc = take_axis(b, axes, axis, list);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* "ARG:AXIS", the axis counted from the last when it is below 0. */
static int take_axis_of(builder *b, khub_shape_rule *rule, const char *text)
{
    const char *colon = strrchr(text, ':'), *at = colon ? colon + 1 : text;
    int from_last = colon && *at == '-';
    at += from_last;
    int32_t dim = colon && colon != text ? take_number(&at, KHUB_MAX_NDIM) : -1;
    if (dim < 0 || *at || dim == (from_last ? 0 : KHUB_MAX_NDIM))
        return khub__fail(b->err, KHUB_E_FORMAT,
                          "%s: \"shapes\" has \"%s\", ARG:AXIS is expected (axes 0 to %d, or -1 to -%d from "
                          "the last)",
                          b->where, text, KHUB_MAX_NDIM - 1, KHUB_MAX_NDIM);
    if (!has_arg(b->spec, text, (size_t)(colon - text)))
        return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"shapes\" has \"%s\", but \"%.*s\" isn't in \"args\"",
                          b->where, text, (int)(colon - text), text);
    rule->arg = text;
    rule->dim = from_last ? -dim : dim;
    return KHUB_OK;
}

static int is_extent(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

/* {"min": N, "max": N, "multiple": N}: one of them at least, and nothing else. */
static int take_range(khub_shape_rule *rule, const json_t *value)
{
    const struct {
        const char *key;
        int64_t *to;
    } keys[] = {{"min", &rule->min}, {"max", &rule->max}, {"multiple", &rule->multiple}};
    size_t taken = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const json_t *number = json_object_get(value, keys[i].key);
        if (!number) continue;
        if (!is_extent(number)) return 0;
        *keys[i].to = json_integer_value(number);
        taken++;
    }
    return taken && taken == json_object_size(value) && rule->multiple > 0 && rule->min <= rule->max;
}

static int take_values(builder *b, khub_shape_rule *rule, const json_t *list)
{
    size_t count = json_array_size(list);
    int64_t *values = place(b, count * sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        if (!is_extent(json_array_get(list, i))) return 0;
        values[i] = json_integer_value(json_array_get(list, i));
    }
    rule->values = values;
    rule->value_count = count;
    return count > 0;
}

static int take_rule(builder *b, khub_shape_rule *rule, const char *text, const json_t *value)
{
    *rule = (khub_shape_rule){.max = INT64_MAX, .multiple = 1};
    int rc = take_axis_of(b, rule, text), good = is_extent(value);
    if (rc != KHUB_OK) return rc;
    if (good)
        rule->min = rule->max = json_integer_value(value);
    else
        good = json_is_array(value) ? take_values(b, rule, value) : take_range(rule, value);
    return good ? KHUB_OK
                : khub__fail(b->err, KHUB_E_FORMAT,
                             "%s: \"shapes\": \"%s\" is an extent, a list of them, or {\"min\", \"max\", "
                             "\"multiple\"}, from 0 on",
                             b->where, text);
}

static int take_shapes(builder *b, const json_t *entry)
{
    khub__json_source source = {b->where, b->err};
    const json_t *shapes = NULL;
    int rc = khub__json_object(&shapes, entry, "shapes", &source);
    if (rc != KHUB_OK || !shapes) return rc;
    khub_shape_rule *rules = place(b, json_object_size(shapes) * sizeof(*rules));
    b->spec->shapes = rules;
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)shapes, key, value) {
        rc = take_rule(b, &rules[b->spec->shape_count++], key, value);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* The argument that the function gives back instead of writing to it. */
static int take_returns(builder *b, const json_t *entry)
{
    khub_layer_spec *spec = b->spec;
    khub__json_source source = {b->where, b->err};
    int rc = khub__json_string(&spec->returns, entry, "returns", &source);
    if (rc != KHUB_OK || !spec->returns) return rc;
    if (!spec->returns[0]) return wrong(b, "returns", "is empty");
    for (size_t i = 0; i < spec->arg_count; i++)
        if (!strcmp(spec->args[i], spec->returns))
            return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"returns\" names \"%s\", which is in \"args\" too",
                              b->where, spec->returns);
    return KHUB_OK;
}

static int take_prepare(builder *b, const json_t *entry)
{
    khub__json_source source = {b->where, b->err};
    const json_t *prepare = NULL;
    int rc = khub__json_object(&prepare, entry, "prepare", &source);
    if (rc != KHUB_OK || !prepare) return rc;
    if (json_object_size(prepare) != 1)
        return khub__fail(b->err, json_object_size(prepare) ? KHUB_E_UNSUPPORTED : KHUB_E_FORMAT,
                          "%s: \"prepare\" names %zu arguments, this version prepares one", b->where,
                          json_object_size(prepare));
    const char *key;
    json_t *function;
    json_object_foreach ((json_t *)(uintptr_t)prepare, key, function) {
        b->spec->prepare_arg = key;
        b->spec->prepare_function = json_string_value(function);
    }
    if (!b->spec->prepare_function || !b->spec->prepare_function[0])
        return wrong(b, "prepare", "must give a function's name");
    if (has_arg(b->spec, b->spec->prepare_arg, strlen(b->spec->prepare_arg))) return KHUB_OK;
    return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"prepare\" names \"%s\", which isn't in \"args\"",
                      b->where, b->spec->prepare_arg);
}

/* {"ulp": 4} or {"relative": 0.01} */
static int take_one_tolerance(builder *b, khub_layer_tolerance *out, const char *dtype, const json_t *value)
{
    const json_t *ulp = json_object_get(value, "ulp"), *relative = json_object_get(value, "relative");
    const json_t *number = ulp ? ulp : relative;
    *out = (khub_layer_tolerance){dtype, ulp ? json_number_value(ulp) : -1, json_number_value(relative)};
    if (ulp) out->relative = -1;
    if (json_is_number(number) && json_number_value(number) >= 0 && json_object_size(value) == 1)
        return KHUB_OK;
    return khub__fail(b->err, KHUB_E_FORMAT,
                      "%s: \"tolerance\": \"%s\" isn't {\"ulp\": NUMBER} or {\"relative\": NUMBER}, a number "
                      "from 0 on",
                      b->where, dtype);
}

static int take_tolerances(builder *b, const json_t *entry)
{
    khub__json_source source = {b->where, b->err};
    const json_t *all = NULL;
    int rc = khub__json_object(&all, entry, "tolerance", &source);
    if (rc != KHUB_OK || !all) return rc;
    khub_layer_tolerance *list = place(b, json_object_size(all) * sizeof(*list));
    b->spec->tolerances = list;
    const char *dtype;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)all, dtype, value) {
        khub_dtype parsed;
        if (khub_dtype_parse(&parsed, dtype, NULL) != KHUB_OK)
            return khub__fail(b->err, KHUB_E_FORMAT, "%s: \"tolerance\" has \"%s\", which is no dtype",
                              b->where, dtype);
        rc = take_one_tolerance(b, &list[b->spec->tolerance_count++], dtype, value);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

static int take_entry(builder *b, const json_t *entry)
{
    khub_layer_spec *spec = b->spec;
    khub__json_source source = {b->where, b->err};
    int rc = khub__json_string(&spec->serves, entry, "layer", &source);
    if (rc == KHUB_OK) rc = khub__json_string(&spec->function, entry, "function", &source);
    if (rc == KHUB_OK && (!spec->function || !spec->function[0])) rc = wrong(b, "function", "is missing");
    if (rc == KHUB_OK) rc = take_names(b, &spec->args, entry, "args", KHUB__LAYER_MAX_ARGS);
    while (rc == KHUB_OK && spec->args && spec->args[spec->arg_count])
        spec->arg_count++;
    if (rc == KHUB_OK) rc = take_returns(b, entry);
    if (rc == KHUB_OK) rc = take_names(b, &spec->dtypes, entry, "dtypes", 64);
    if (rc == KHUB_OK) rc = khub__json_bool(&spec->backward, entry, "backward", &source);
    if (rc == KHUB_OK) rc = khub__json_bool(&spec->deterministic, entry, "deterministic", &source);
    if (rc == KHUB_OK) rc = take_slices(b, entry);
    if (rc == KHUB_OK) rc = take_tolerances(b, entry);
    if (rc == KHUB_OK) rc = take_shapes(b, entry);
    return rc == KHUB_OK ? take_prepare(b, entry) : rc;
}

/* Replaces every borrowed text by a copy in the block, after which the JSON may go. */
static void place_texts(builder *b, const char *layer)
{
    khub_layer_spec *spec = b->spec;
    spec->layer = place_text(b, layer, strlen(layer));
    const char **single[] = {&spec->serves, &spec->function, &spec->prepare_arg, &spec->prepare_function,
                             &spec->returns};
    for (size_t i = 0; i < sizeof(single) / sizeof(*single); i++)
        if (*single[i]) *single[i] = place_text(b, *single[i], strlen(*single[i]));
    const char **lists[] = {(const char **)(uintptr_t)spec->args, (const char **)(uintptr_t)spec->dtypes};
    for (size_t i = 0; i < 2; i++)
        for (const char **name = lists[i]; name && *name; name++)
            *name = place_text(b, *name, strlen(*name));
    khub_layer_tolerance *tolerances = (khub_layer_tolerance *)(uintptr_t)spec->tolerances;
    for (size_t i = 0; i < spec->tolerance_count; i++)
        tolerances[i].dtype = place_text(b, tolerances[i].dtype, strlen(tolerances[i].dtype));
    khub_slice_axis *axes = (khub_slice_axis *)(uintptr_t)spec->slices;
    for (size_t i = 0; i < spec->slice_count; i++) {
        axes[i].axis = place_text(b, axes[i].axis, strlen(axes[i].axis));
        khub_slice_part *parts = (khub_slice_part *)(uintptr_t)axes[i].parts;
        for (size_t j = 0; j < axes[i].part_count; j++)
            parts[j].arg = place_text(b, parts[j].arg, name_length(parts[j].arg));
    }
    khub_shape_rule *rules = (khub_shape_rule *)(uintptr_t)spec->shapes;
    for (size_t i = 0; i < spec->shape_count; i++)
        rules[i].arg = place_text(b, rules[i].arg, name_length(rules[i].arg));
}

static void note_unknown_keys(const json_t *entry, const char *where, const char *ignored)
{
    static const char *const known[] = {"layer",     "function",      "args",   "dtypes",
                                        "backward",  "deterministic", "slices", "prepare",
                                        "tolerance", "shapes",        "returns"};
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)entry, key, value) {
        int is_known = ignored && !strcmp(key, ignored);
        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
            is_known |= !strcmp(key, known[i]);
        if (!is_known) khub__log(KHUB_LOG_NOTICE, "layer", where, "unknown key \"%s\" is ignored", key);
    }
}

int khub__layer_spec_parse(khub_layer_spec **out, const char *layer, const json_t *entry, const char *where,
                           const char *ignored, khub_error *err)
{
    *out = NULL;
    if (!json_is_object(entry))
        return khub__fail(err, KHUB_E_FORMAT, "%s: is %s, an object is expected", where,
                          khub__json_type_name(entry));
    khub_layer_spec *spec = khub__calloc(1, sizeof(*spec) + room_for(entry) + strlen(layer) + 1);
    if (!spec) return khub__fail_memory(err, "reading a layer's entry");
    builder b = {spec, (char *)(spec + 1), where, err};
    int rc = take_entry(&b, entry);
    if (rc != KHUB_OK) {
        khub__free(spec);
        return rc;
    }
    place_texts(&b, layer);
    note_unknown_keys(entry, where, ignored);
    *out = spec;
    return KHUB_OK;
}

static int parse_all(khub__layers *out, const json_t *root, const char *file, khub_error *err)
{
    khub__json_source source = {file, err};
    const json_t *layers = NULL;
    int rc = khub__json_object(&layers, root, "layers", &source);
    if (rc != KHUB_OK) return rc;
    if (!layers) return khub__fail(err, KHUB_E_FORMAT, "%s: \"layers\" is missing", file);
    out->specs = khub__calloc(json_object_size(layers), sizeof(*out->specs));
    if (!out->specs) return khub__fail_memory(err, "reading layers.json");
    const char *layer;
    json_t *entry;
    json_object_foreach ((json_t *)(uintptr_t)layers, layer, entry) {
        char where[1000];
        snprintf(where, sizeof(where), "%s: %s", file, layer);
        rc = khub__layer_spec_parse(&out->specs[out->count], layer, entry, where, NULL, err);
        if (rc != KHUB_OK) return rc;
        out->count++;
    }
    return KHUB_OK;
}

int khub__layers_parse(khub__layers *out, const char *text, size_t length, const char *file, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    json_t *root;
    int rc = khub__json_parse(&root, text, length, file, err);
    if (rc != KHUB_OK) return rc;
    rc = parse_all(out, root, file, err);
    json_decref(root);
    if (rc != KHUB_OK) khub__layers_free(out);
    return rc;
}

int khub__layers_read(khub__layers *out, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    khub__bytes bytes;
    int rc = khub__file_read(&bytes, path, KHUB__LAYERS_MAX_BYTES, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__layers_parse(out, bytes.data, bytes.length, path, err);
    khub__bytes_free(&bytes);
    return rc;
}

const khub_layer_spec *khub__layers_find(const khub__layers *layers, const char *layer)
{
    for (size_t i = 0; i < layers->count; i++)
        if (!strcmp(layers->specs[i]->layer, layer)) return layers->specs[i];
    return NULL;
}

void khub__layers_free(khub__layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        khub__free(layers->specs[i]);
    khub__free(layers->specs);
    memset(layers, 0, sizeof(*layers));
}
