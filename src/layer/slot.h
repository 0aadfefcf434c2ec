/* A slot and what can be in it. */
#ifndef LAYER_SLOT_H
#define LAYER_SLOT_H

#include "base/index.h"
#include "layer/names.h"
#include "layer/prepare.h"
#include "layer/targets.h"

#include <khub/npy.h>

#include <stdatomic.h>

enum { KHUB__MAX_AXES = 4 };

typedef struct khub__recipe khub__recipe;
typedef struct khub__source khub__source;
typedef struct khub__shadow khub__shadow;

/* Called in place of a filling's function, with what khub_filling_call was given: the layer's own arguments,
 * uncut and as they come, when the filling declares no axes and prepares nothing. */
typedef int (*khub__run)(const khub_slot *slot, const khub_filling *filling, const khub_value *args,
                         int32_t n, khub_error *err);

/* A function as it serves slots: how a layer's arguments become its own. What a call reads is never changed
 * while the filling can be in a slot. Slots that need nothing of their own share one. */
struct khub_filling {
    khub_function function;
    int32_t plain_count; /* of arguments, which are the layer's as they come; -1: not so, see below */
    int32_t arg_count;
    khub__run run;                 /* NULL: `function` is called */
    int32_t order[KHUB__MAX_ARGS]; /* the function's i-th argument is the layer's order[i]-th */
    int in_order;                  /* 1: `order` is the identity, no adapter */
    int32_t prepared_arg;          /* position in the layer's order; -1: none */
    khub__prepared prepared;       /* what stands there instead */
    int32_t returned_arg;          /* position of the output that the function gives back; -1: none */
    const khub_slot_axis *axes;    /* the recipe's, or owned by the slot that has it as its standard */
    size_t axis_count;
    const char *kernel; /* its name, for messages, the mapping's; NULL: the standard function */

    /* The rest is whoever fills slots'. */
    khub__recipe *recipe;       /* counted; NULL: the standard function */
    const khub_tensor *from;    /* the bound tensor that was prepared */
    khub_tensor from_was;       /* and what it was then */
    size_t uses;                /* slots whose `kernel` it is, and shadows of it */
    struct khub_filling *after; /* the next that nothing uses any more */
    uint64_t moment;            /* of its replacing, for khub__readers_passed */
};

/* What khub_kernelize looks at of each slot stands first, close together. */
struct khub_slot {
    _Atomic(const khub_filling *) now;
    atomic_int retries;             /* 1: a call that a kernel fails in is the standard function's */
    int disabled;                   /* the standard function serves, whatever `kernel` is */
    _Atomic(khub_filling *) kernel; /* counted; NULL: none */
    khub__shadow *shadow;           /* owned; NULL: nobody asked for it yet */
    khub_slot **parts;              /* of a run, owned: the slots that it serves together; NULL: it is none */
    size_t part_count;
    const khub__layer_def *layer;
    khub_dtype dtype; /* {0}: not known */
    uint32_t first;   /* khub__first_segment of the path */
    khub__on on;      /* of the device KHUB__DEVICES: where khub_kernelize says */
    char *path;
    khub_slot_shape *shapes; /* owned, one block with what they point to; NULL: none is known */
    size_t shape_count;
    atomic_ullong retried;                    /* calls that were done again, ever */
    const khub_tensor *bound[KHUB__MAX_ARGS]; /* by the layer's order; NULL: changes from call to call */
    khub_filling standard;
};

struct khub_layers {
    khub_slot **slots;
    size_t count, capacity;
    khub__index by_path;    /* of slots */
    khub__source *sources;  /* the kernels that serve, each once */
    khub__recipe *recipes;  /* how they do */
    khub_filling *replaced; /* that nothing uses, but calls may still run in */
};

/* For whoever goes through all slots, once for each `i`: they lie anywhere in memory, their paths elsewhere,
 * and what the next ones are looked at for comes while this one is. */
static inline void khub__slots_ask_ahead(const khub_layers *layers, size_t i)
{
    enum { SLOT = 8, PATH = 4, LINE = 64 };
    if (i + SLOT >= layers->count) return;
    const char *slot = (const char *)layers->slots[i + SLOT];
    __builtin_prefetch(slot);
    __builtin_prefetch(slot + LINE);
    __builtin_prefetch(layers->slots[i + PATH]->path);
}

/* Fills in what the layer knows of an axis whose parts name arguments it has: min_ndim. */
void khub__axis_complete(khub_slot_axis *axis, const khub__layer_def *layer);

/* Settles the counts, once all the rest is filled in. */
void khub__filling_complete(khub_filling *filling, const khub__layer_def *layer);

/* Makes *filling (one use, taken over) the kernel of the slot; NULL: none. What was there is given up. Ends
 * with khub__layers_settle. */
void khub__slot_fill(khub_layers *layers, khub_slot *slot, khub_filling *filling);

/* After what decides changed: what the slot calls from now on. */
void khub__slot_settle(khub_slot *slot);

/* As khub_layers_match; KHUB_E_NOTFOUND too when there is no such slot. */
int khub__layers_select(khub_slot ***out, size_t *count, const khub_layers *layers, const char *pattern,
                        khub_error *err);

/* Calls with the slot's own arguments: the prepared ones are put in, and what is needed for a failure kept.
 */
int khub__call_adapted(const khub_slot *slot, const khub_filling *filling, const khub_value *args, int32_t n,
                       khub_error *err);
int khub__call_kept(const khub_slot *slot, const khub_filling *filling, const khub_value *args, int32_t n,
                    khub_error *err);

/* Gives one use up. The last one's filling waits until no call can be in it. */
void khub__filling_give_up(khub_layers *layers, khub_filling *filling);

/* After some slots were filled: frees what was replaced and no call can be in any more. */
void khub__layers_settle(khub_layers *layers);

#endif
