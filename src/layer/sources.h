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
    const khub_mapping *mapping;
    khub_mapping *own_mapping; /* the default one; NULL: the caller's is borrowed */
    khub__on on;               /* the device of slots that were added without one */
    khub__gets with;           /* what it points to is borrowed while kernelize runs */
    khub__asked **asked;
    size_t count, capacity, done; /* the first `done` of them are got */
    struct khub__of_device {
        int32_t capability;  /* of devices whose own nobody says */
        const char *backend; /* whose builds are got; NULL: the platform's own */
        int known;           /* 1: the above is */
        khub__index by_name; /* what was asked for, for this device */
    } of_device[KHUB__DEVICES];
} khub__sources;

/* KHUB_E_INVAL (the options), KHUB_E_NOMEM. */
int khub__sources_new(khub__sources **out, khub_layers *layers, const khub_kernelize_options *options,
                      khub_error *err);
void khub__sources_free(khub__sources *sources); /* NULL is a no-op */

/* The device that a slot is on, with its capability as far as somebody knows it: the slot's own, else what
 * the options say of that device, else that of the platform's. KHUB_E_NOMEM. */
int khub__sources_on(khub__on *on, khub__sources *sources, const khub_slot *slot, khub_error *err);

/* The kernel of that name for a device; not got yet, unless it was asked for before khub__sources_get.
 * Borrowed. KHUB_E_NOMEM. */
int khub__sources_ask(khub__asked **out, khub__sources *sources, const char *name, khub__device device,
                      khub_error *err);

/* Gets all that were asked for and weren't got yet, those of the Hub at the same time. That one can't be had
 * is its own matter: KHUB_E_NOMEM and KHUB_E_CANCELED only. */
int khub__sources_get(khub__sources *sources, khub_error *err);

#endif
