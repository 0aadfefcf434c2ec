/* Where fillings come from: a mapping, and each kernel that it names, opened at most once. */
#ifndef LAYER_SOURCES_H
#define LAYER_SOURCES_H

#include "layer/mapping.h"
#include "layer/recipe.h"

/* One kernel of a mapping, asked for once however many slots want it. */
typedef struct khub__asked {
    const char *name;     /* the mapping's */
    khub__source *source; /* NULL: it couldn't be had */
    khub_error why;       /* then */
} khub__asked;

typedef struct khub__sources {
    khub_layers *layers;
    khub_mapping *mapping;
    const khub_platform *platform; /* borrowed while kernelize runs; NULL: this machine */
    khub_hub_options hub;          /* what it points to is borrowed likewise */
    khub__asked *asked;
    size_t count, capacity;
} khub__sources;

/* KHUB_E_INVAL (the options) and what reading the mapping fails with. */
int khub__sources_new(khub__sources **out, khub_layers *layers, const khub_kernelize_options *options,
                      khub_error *err);

void khub__sources_free(khub__sources *sources); /* NULL is a no-op */

/* The kernel of that name; its failure is remembered. *out is valid until the next call. KHUB_E_NOMEM and
 * KHUB_E_CANCELED only. */
int khub__sources_get(const khub__asked **out, khub__sources *sources, const char *name, khub_error *err);

#endif
