/* Which kernel each slot of a model gets: the first candidate of its mapping that serves, and why the others
 * don't. */
#ifndef LAYER_DECISION_H
#define LAYER_DECISION_H

#include "layer/candidates.h"
#include "layer/sources.h"

/* One candidate of a group of slots. */
typedef struct khub__offer {
    const khub__entry *entry;
    khub__asked *asked;          /* NULL: not yet, or it names no kernel */
    khub__recipe *recipe;        /* counted; NULL: it doesn't serve */
    const khub_layer_spec *spec; /* how, in the words of its entry or of the kernel that was asked for */
    char *reason;                /* why it doesn't; owned */
    int decided;
} khub__offer;

/* Slots that a mapping and a kernel can't tell apart: of one layer, device, dtype, and key of the mapping. */
typedef struct khub__group {
    struct khub__group *next; /* of the same layer */
    struct khub__group *next_in_list;
    const khub__layer_def *layer;
    khub__on on;
    khub_dtype dtype;
    int of_runs; /* 1: each stands for several slots, which may be served one by one instead */
    khub__counting by;
    khub__candidates all; /* that it comes to */
    khub__offer offers[KHUB__CANDIDATES];
    char *miss; /* why there are none, or none is wanted; owned; NULL: there are */
    int named;  /* the mapping names a kernel for them */
    size_t slots;
    size_t misses;     /* of them that no kernel serves, nor a run that they are part of */
    size_t first_miss; /* the first of these */
    const void *shown[KHUB__CANDIDATES + 1]; /* by what serves: its line as the report has it */
} khub__group;

enum { KHUB__GROUP_LISTS = 256 };

/* What becomes of one slot. */
typedef struct khub__choice {
    khub__group *group;
    khub_filling *filling; /* one use; NULL: the standard function */
    char **own;            /* of slots that couldn't be prepared: why each candidate failed here; owned */
    size_t at;             /* the candidate that serves, or is tried now; all.count: none does */
    int settled;
    int broken;                     /* a run that can't be called as a whole */
    size_t waits;                   /* for runs that it is part of: they come first */
    const struct khub__choice *run; /* of these, the one that serves it; NULL: none */
} khub__choice;

typedef struct khub__decision {
    khub_layers *layers;
    khub__sources *sources;
    int mode, deterministic, exact;
    const char *forbidden; /* the environment's variable that switches kernels off; NULL: none */
    khub__shelves shelves;
    khub__group *groups[KHUB__LAYERS];
    khub__group *lists[KHUB__GROUP_LISTS];
    int by_path[KHUB__LAYERS]; /* 1: the mapping tells slots of this layer apart by their paths */
    khub__choice *choices;     /* one for each slot */
    unsigned char *counted;    /* for each key of the mapping, 1: it is the one that counts for some slot */
} khub__decision;

/* Decides all slots. Nothing is put into them. KHUB_E_NOMEM and KHUB_E_CANCELED only, and then, too, what
 * *decision holds is given up by khub__decision_free. */
int khub__decision_make(khub__decision *decision, khub_error *err);
void khub__decision_free(khub__decision *decision);

/* Why candidate `i` doesn't serve the slot; NULL: it does, or wasn't tried. */
const char *khub__choice_reason(const khub__choice *choice, size_t i);

/* Why the standard function stays: what the first candidate failed for. */
const char *khub__choice_why(const khub__choice *choice);

#endif
