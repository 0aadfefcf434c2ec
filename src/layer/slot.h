/* A slot and what can be in it. */
#ifndef LAYER_SLOT_H
#define LAYER_SLOT_H

#include "base/index.h"
#include "layer/names.h"

#include <khub/npy.h>

enum { KHUB__MAX_AXES = 4 };

/* Called in place of a filling's function, with what khub_filling_call was given: the layer's own arguments,
 * uncut and as they come, when the filling declares no axes and prepares nothing. */
typedef int (*khub__run)(const khub_slot *slot, const khub_filling *filling, const khub_value *args,
                         int32_t n, khub_error *err);

/* A function as it serves one slot: how the layer's arguments become its own. Never changed while it can be
 * in a slot. */
struct khub_filling {
    khub_function function;
    int plain; /* 1: called with the layer's arguments as they come; what is below doesn't matter */
    int32_t arg_count;
    khub__run run;                 /* NULL: `function` is called */
    int32_t order[KHUB__MAX_ARGS]; /* the function's i-th argument is the layer's order[i]-th */
    int in_order;                  /* 1: `order` is the identity, no adapter */
    khub_slot_axis *axes;          /* owned: NULL for none, since a model has many slots */
    size_t axis_count;
    int32_t prepared_arg; /* position in the layer's order; -1: none */
    khub_array prepared;  /* what stands there instead */
    const char *kernel;   /* its name, for messages, the mapping's; NULL: the standard function */
};

/* Settles `plain`, once all the rest is filled in. */
void khub__filling_complete(khub_filling *filling, const khub__layer_def *layer);

struct khub_slot {
    const khub_filling *now;
    char *path;
    const khub__layer_def *layer;
    khub_dtype dtype;
    const khub_tensor *bound[KHUB__MAX_ARGS]; /* by the layer's order; NULL: changes from call to call */
    khub_filling standard;
    khub_filling *kernel; /* owned; NULL: none */
};

struct khub_layers {
    khub_slot **slots;
    size_t count, capacity;
    khub__index by_path;           /* of slots */
    struct khub__sources *sources; /* what the fillings call into and borrow from; NULL: nothing yet */
};

/* The mapping of one kernelize and the kernels it opened, each once. */
typedef struct khub__sources khub__sources;
void khub__sources_free(khub__sources *sources); /* NULL is a no-op */

/* Fills in what the layer knows of an axis whose parts name arguments it has: min_ndim. */
void khub__axis_complete(khub_slot_axis *axis, const khub__layer_def *layer);

/* Frees a filling of a kernel; NULL is a no-op. */
void khub__filling_free(khub_filling *filling);

/* Makes *filling (taken over) what the slot calls; NULL: the standard function. */
void khub__slot_fill(khub_slot *slot, khub_filling *filling);

#endif
