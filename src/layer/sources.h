/* Where fillings come from: a mapping, and each kernel that it names, got at most once. */
#ifndef LAYER_SOURCES_H
#define LAYER_SOURCES_H

#include "layer/gets.h"
#include "layer/mapping.h"
#include "layer/recipe.h"

/* One kernel of a mapping, asked for once however many slots want it. */
typedef struct khub__asked {
    khub__get get;
    khub__source *source; /* counted; NULL: it couldn't be had, as get.why says */
} khub__asked;

typedef struct khub__sources {
    khub_layers *layers;
    khub_mapping *mapping;
    khub__on on;     /* the device of the slots */
    khub__gets with; /* what it points to is borrowed while kernelize runs */
    khub__asked **asked;
    size_t count, capacity, done; /* the first `done` of them are got */
    khub__index by_name;
} khub__sources;

/* KHUB_E_INVAL (the options) and what reading the mapping fails with. */
int khub__sources_new(khub__sources **out, khub_layers *layers, const khub_kernelize_options *options,
                      khub_error *err);
void khub__sources_free(khub__sources *sources); /* NULL is a no-op */

/* The kernel of that name (borrowed); not got yet, unless it was asked for before khub__sources_get. NULL: no
 * memory. */
khub__asked *khub__sources_ask(khub__sources *sources, const char *name);

/* Gets all that were asked for and weren't got yet, those of the Hub at the same time. That one can't be had
 * is its own matter: KHUB_E_NOMEM and KHUB_E_CANCELED only. */
int khub__sources_get(khub__sources *sources, khub_error *err);

#endif
