/* Whether and how a kernel's function serves the slots of a layer. */
#ifndef LAYER_RECIPE_H
#define LAYER_RECIPE_H

#include "gpu/bound.h"
#include "layer/slot.h"

/* A kernel that serves, opened once for all slots of a model, however many ask. */
struct khub__source {
    size_t uses;              /* of recipes, and of whoever looked for it */
    khub__source *next, **at; /* among those of the model */
    khub_kernel *kernel;
};

/* One kernel's function in slots of one layer. Fillings are made after it. */
struct khub__recipe {
    size_t uses;              /* of fillings, and of whoever looked for it */
    khub__recipe *next, **at; /* among those of the model */
    khub__source *source;     /* counted */
    const khub__layer_def *layer;
    khub_gpu *gpu; /* borrowed: the device of the slots; NULL: the host, or nobody says which */
    khub_function function, prepare;
    khub__gpu_bound on_gpu[2];       /* these two, called there */
    const char *name, *prepare_name; /* of these functions; the latter NULL: nothing is prepared */
    int32_t order[KHUB__MAX_ARGS];
    int in_order, deterministic;
    int32_t prepared_arg; /* -1: none */
    int32_t returned_arg; /* -1: none */
    khub_slot_axis *axes;
    size_t axis_count;
    char *texts;          /* where the names above and those of the axes stand */
    khub__shelf *last;    /* of prepared weights, counted; NULL: none yet */
    khub_filling *shared; /* the one of all slots, where nothing is prepared; NULL: there is none now */
};

/* The source of this kernel (taken over) in `layers`: one that serves already where it is the same build of
 * the same commit. One use is the caller's. NULL: no memory; the kernel is closed. */
khub__source *khub__source_of(khub_layers *layers, khub_kernel *kernel);
void khub__source_give_up(khub__source *source); /* NULL is a no-op */

/* How `source` serves the slots of a layer and dtype on a device (NULL: as khub__recipe.gpu) by what it, or
 * an entry of a mapping, says of itself: one that is there already where nothing differs. Checks dtype and
 * argument names, finds the functions. One use of *out is the caller's. Any error is a reason for a slot to
 * stay as it is; KHUB_E_NOMEM is one too. */
int khub__recipe_of(khub__recipe **out, khub_layers *layers, khub__source *source,
                    const khub__layer_def *layer, khub_dtype dtype, khub_gpu *gpu,
                    const khub_layer_spec *spec, khub_error *err);
void khub__recipe_give_up(khub__recipe *recipe); /* NULL is a no-op */

/* The filling of `slot` after the recipe: the slot's own where it is that already, the one that all share, or
 * a new one, the bound weight prepared. One use of *out is the caller's. Errors as for khub__recipe_of. */
int khub__recipe_fill(khub_filling **out, khub__recipe *recipe, const khub_slot *slot, khub_error *err);

#endif
