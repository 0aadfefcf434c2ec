/* Which entries of a mapping a slot may be filled from, in the order in which they are tried. */
#ifndef LAYER_CANDIDATES_H
#define LAYER_CANDIDATES_H

#include "layer/mapping.h"

/* A slot as a mapping sees it: its layer and path, and of one that stands for a run of slots those, too. */
typedef struct khub__wanted_slot {
    const char *layer, *path;
    const struct khub__wanted_slot *parts;
    size_t part_count; /* 0: no run */
    uint32_t first;    /* khub__first_segment of the path; 0: not looked at */
} khub__wanted_slot;

/* Why there is no candidate. */
typedef enum khub__miss {
    KHUB__MISS_NONE,
    KHUB__MISS_FORBIDDEN,  /* by the environment */
    KHUB__MISS_LAYER,      /* no key takes the slot */
    KHUB__MISS_DEVICE,     /* none of them has an entry for the device */
    KHUB__MISS_CAPABILITY, /* ... for its capability */
    KHUB__MISS_MODE        /* ... for the mode */
} khub__miss;

enum { KHUB__CANDIDATES = KHUB_MAPPING_CANDIDATES }; /* five modes, and a fault */

typedef struct khub__candidates {
    const khub__entry *entry[KHUB__CANDIDATES];
    size_t count;
    khub__miss miss; /* when count is 0 */
} khub__candidates;

/* The key whose entries count for a slot. */
typedef struct khub__counting {
    const khub__mapped *mapped; /* NULL: none */
    int lost;                   /* 1: of what it says only a fault is to be told */
    khub__miss miss;            /* when there is none */
} khub__counting;

/* The keys of a mapping by the first segments of their patterns, so that many slots can be looked for. */
enum { KHUB__SHELVES = 64 };
typedef struct khub__shelves {
    const khub_mapping *mapping;
    uint32_t *next;                   /* of each key, the one before it on its shelf, + 1 */
    uint32_t last[KHUB__SHELVES + 1]; /* the last one of them those that may take any path */
} khub__shelves;

/* KHUB_E_NOMEM. Whatever it returns, khub__shelves_free. */
int khub__shelves_make(khub__shelves *out, const khub_mapping *mapping, khub_error *err);
void khub__shelves_free(khub__shelves *shelves);

/* Of the keys that take the slot, the most special one that has entries for the device and its capability. */
khub__counting khub__counting_find(const khub__shelves *shelves, const khub__wanted_slot *slot, khub__on on);

/* The candidates that it comes to. */
void khub__candidates_from(khub__candidates *out, const khub__counting *counting, khub__on on, int mode);

/* Of the keys that take the slot, the most special one that has entries for the device and its capability;
 * of these the smallest range of capabilities; of these the modes in order. An entry with a fault is a
 * candidate like another, with its fault as reason. No allocation; entries are the mapping's. */
void khub__candidates_find(khub__candidates *out, const khub_mapping *mapping, const khub__wanted_slot *slot,
                           khub__on on, int mode);

/* Of one key. */
void khub__candidates_of(khub__candidates *out, const khub__mapped *mapped, khub__on on, int mode);

/* "the mapping has no kernel for GeLU on cuda:75": the reason for a miss, into err. Returns KHUB_E_NOTFOUND.
 */
int khub__candidates_miss(khub_error *err, const khub__candidates *candidates, const khub_mapping *mapping,
                          const char *layer, khub__on on, int mode);

#endif
