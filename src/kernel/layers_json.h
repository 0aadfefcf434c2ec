/* layers.json: how the functions of a build serve layers (docs/layers.md). */
#ifndef KERNEL_LAYERS_JSON_H
#define KERNEL_LAYERS_JSON_H

#include <khub/kernel.h>

#include <jansson.h>

#define KHUB__LAYERS_MAX_BYTES ((size_t)1 << 20)

/* The limits of one entry, and so of what a caller has to hold. */
enum { KHUB__LAYER_MAX_ARGS = 32, KHUB__LAYER_MAX_AXES = 8, KHUB__LAYER_MAX_PARTS = 8 };

/* Reads the entry of one layer, an object with the keys of docs/layers.md: from layers.json, or inline from a
 * mapping. `where` names it in messages ("PATH: Linear"). `ignored` (may be NULL) is a key that is somebody
 * else's
 * ("kernel"); any other unknown key is a notice in the log. Names are checked against each other, not against
 * what the layer has: that is src/layer's.
 * *out is one allocation that keeps nothing of the arguments; khub_free. KHUB_E_FORMAT, KHUB_E_UNSUPPORTED
 * (more than one argument to prepare), KHUB_E_NOMEM. */
int khub__layer_spec_parse(khub_layer_spec **out, const char *layer, const json_t *entry, const char *where,
                           const char *ignored, khub_error *err);

/* All entries of one file, in the order of the file. */
typedef struct khub__layers {
    khub_layer_spec **specs;
    size_t count;
} khub__layers;

/* `file` stands for the text in messages. A failure leaves *out zeroed. */
int khub__layers_parse(khub__layers *out, const char *text, size_t length, const char *file, khub_error *err);
int khub__layers_read(khub__layers *out, const char *path, khub_error *err);

/* NULL: the file has no such layer. */
const khub_layer_spec *khub__layers_find(const khub__layers *layers, const char *layer);

/* The layer of docs/layers.md that an entry is for. */
static inline const char *khub__layer_served(const khub_layer_spec *spec)
{
    return spec->serves ? spec->serves : spec->layer;
}

/* Frees what it holds and zeroes it. */
void khub__layers_free(khub__layers *layers);

#endif
