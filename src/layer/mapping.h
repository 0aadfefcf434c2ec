/* A mapping from layer names to kernels, as docs/layers.md describes it. */
#ifndef LAYER_MAPPING_H
#define LAYER_MAPPING_H

#include <khub/layer.h>

#include <jansson.h>

/* One entry. A fault of one entry is its own; the others go on. */
typedef struct khub__mapping_entry {
    char *layer;           /* the slots it is for */
    char *kernel;          /* as for khub_get; "": stays standard on purpose */
    char *served;          /* the layer of the kernel's layers.json; NULL: `layer` */
    khub_layer_spec *spec; /* written in the mapping itself; NULL: the kernel's layers.json */
    char *fault;           /* why the entry can't be used; NULL: it can */
} khub__mapping_entry;

typedef struct khub__mapping {
    char *name;   /* its file, or what it is called in messages */
    int built_in; /* 1: khub's own, nobody wrote it */
    khub__mapping_entry *entries;
    size_t count;
} khub__mapping;

#define KHUB__MAPPING_MAX_BYTES ((size_t)1 << 20)

/* Reads a mapping; NULL text: the built-in kernels. KHUB_E_FORMAT when it isn't a JSON object, KHUB_E_NOMEM.
 */
int khub__mapping_parse(khub__mapping *out, const char *text, khub_error *err);
/* The same from a file: its name stands in messages, and its paths start from its folder. */
int khub__mapping_read(khub__mapping *out, const char *file, khub_error *err);
void khub__mapping_free(khub__mapping *mapping);

/* The entry for a layer; NULL when there is none. */
const khub__mapping_entry *khub__mapping_find(const khub__mapping *mapping, const char *layer);

#endif
