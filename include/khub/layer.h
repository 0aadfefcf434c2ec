/* Layers: named slots for functions. kernelize swaps the function in a slot, nothing else.
 *
 * Threads: what adds, binds, fills and switches the slots of one model is for one thread at a time. Calls run
 * in any threads at the same time, also while another one fills or switches: a call ends with the function
 * and the prepared weights that it began with. What was replaced is freed, and its kernel given up, at the
 * first swap after the last call in it ended. */
#ifndef KHUB_LAYER_H
#define KHUB_LAYER_H

#include <khub/gpu.h>
#include <khub/numerics.h>
#include <khub/mapping.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The slots of one model, in the order of adding. */
typedef struct khub_layers khub_layers;
/* One slot; valid as long as its khub_layers. */
typedef struct khub_slot khub_slot;

KHUB_API int khub_layers_new(khub_layers **out, khub_error *err);
/* Frees the slots and gives up the kernels they hold. No call may be running. NULL is a no-op. */
KHUB_API void khub_layers_free(khub_layers *layers);

/* An argument whose shape is known before the calls. */
typedef struct khub_slot_shape {
    const char *arg;
    int32_t ndim;
    const int64_t *shape; /* an extent of -1: not known */
} khub_slot_shape;

/* What is known of a slot's calls before they are made. A kernel that doesn't fit it isn't put in; what isn't
 * said is the kernel's to refuse, call by call. */
typedef struct khub_slot_options {
    size_t struct_size;            /* set by KHUB_INIT */
    khub_dtype dtype;              /* of its tensors; {0}: not known */
    const char *device;            /* on which it runs: "cpu", "cuda", "cuda:89"; NULL: on that of
                                    * khub_kernelize_options */
    const khub_slot_shape *shapes; /* of some arguments; bound tensors (khub_slot_bind) have theirs */
    size_t shape_count;
    /* On which it runs, borrowed as long as the slot: kernels' functions are called on its stream, weights
     * prepared in its memory, and an error that comes later has the kernel's name. The standard function is
     * called as it is. One thread at a time. NULL: as `device` says. */
    khub_gpu *gpu;
} khub_slot_options;

/* Adds a slot at `path` ("encoder.layer.0.attention.output.LayerNorm") for a layer of docs/layers.md
 * ("LayerNorm"), with the function that serves it unless a kernel does. The function takes the layer's
 * arguments in the order docs/layers.md gives. `options` may be NULL; `slot` (may be NULL) receives it.
 * Copies all it is given. KHUB_E_INVAL: the path is taken, the layer isn't in docs/layers.md, or the options
 * can't be. */
KHUB_API int khub_layers_add(khub_layers *layers, const char *path, const char *layer, khub_function standard,
                             const khub_slot_options *options, khub_slot **slot, khub_error *err);

/* Adds a run: a slot for what `count` slots of one parent, called one after the other, do together
 * ("LinearGeLU" for a Linear and the GeLU behind it), so that one kernel may serve them all. Its function is
 * called with the layer's arguments, as that of any slot. Whoever calls the slots asks each time:
 *
 *     if (khub_slot_is_served(run)) … khub_slot_call(run, …) … else … each of `parts` …
 *
 * khub_kernelize fills the parts of a run only where no kernel serves the run; so switch a part off before
 * it, or call it again after that. `standard` does what the parts do one by one. Errors as khub_layers_add's;
 * KHUB_E_INVAL too when a part isn't of `layers`, or the parts have no common parent ("a.dense" and "b.act")
 * or device. */
KHUB_API int khub_layers_add_run(khub_layers *layers, const char *path, const char *layer,
                                 khub_function standard, const khub_slot_options *options,
                                 khub_slot *const *parts, size_t count, khub_slot **slot, khub_error *err);

/* 1 when a kernel is in the slot at this moment. */
KHUB_API int khub_slot_is_served(const khub_slot *slot);

/* Names a tensor that stays the same for all calls of the slot ("weight"), so that a kernel may prepare
 * it once. Borrowed until the slots are freed. KHUB_E_INVAL: the layer has no such argument, or was said to
 * have another shape. */
KHUB_API int khub_slot_bind(khub_slot *slot, const char *arg, const khub_tensor *tensor, khub_error *err);

/* The uncommon half of khub_slot_call: a thread's first call, arguments in another order, prepared weights,
 * results and failures. */
KHUB_API int khub__slot_call(const khub_slot *slot, const khub_value *args, int32_t n, khub_error *err);
KHUB_API int khub__slot_settle_call(const khub_slot *slot, const void *filling, int rc, khub_value result,
                                    khub_error *err);

#if defined(__GNUC__)
/* What khub_slot_call looks at of a slot and of what is in it. */
struct khub__filling_head {
    khub_function function;
    int32_t plain_count; /* of arguments that go to the function as they come; -1: they don't */
};
struct khub__slot_head {
    const struct khub__filling_head *now;
    int32_t retries;
};
/* When this thread came into the calls it is in; 0: it is in none, UINT64_MAX: it never was. Each swap
 * has a number. */
extern KHUB_API __thread uint64_t khub__inside;
extern KHUB_API uint64_t khub__swapped;
#endif

/* Calls what is in the slot with the layer's arguments in the layer's own order. As khub_function_call. Any
 * thread that the function allows, also while another thread changes what is in the slot. */
static inline int khub_slot_call(const khub_slot *slot, const khub_value *args, int32_t n, khub_error *err)
{
#if defined(__GNUC__)
    const struct khub__slot_head *head = (const struct khub__slot_head *)(const void *)slot;
    uint64_t *inside = &khub__inside, was = *inside;
    if (was == UINT64_MAX) return khub__slot_call(slot, args, n, err);
    if (was == 0)
        __atomic_store_n(inside, __atomic_load_n(&khub__swapped, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* for the compiler; the processor is the swapper's */
    const struct khub__filling_head *now = __atomic_load_n(&head->now, __ATOMIC_ACQUIRE);
    khub_value result = khub_arg_none();
    int rc;
    if (now->plain_count != n || __atomic_load_n(&head->retries, __ATOMIC_RELAXED)) {
        rc = khub__slot_call(slot, args, n, err);
    } else {
        rc = now->function.call(now->function.self, args, n, &result);
        if (rc != 0 || result.type >= KHUB_TYPE_OBJECT)
            rc = khub__slot_settle_call(slot, now, rc, result, err);
    }
    if (was == 0) __atomic_store_n(inside, was, __ATOMIC_RELEASE);
    return rc;
#else
    return khub__slot_call(slot, args, n, err);
#endif
}

/* An axis along which calls may be cut: one of "slices" in docs/layers.md, argument positions in the layer's
 * own order. A call with a tensor of fewer than `min_ndim` axes isn't cut along it: its axis `dim` is one
 * that the layer computes over. */
typedef struct khub_slot_axis {
    const char *axis;
    struct {
        int32_t arg, dim, unit, min_ndim;
    } part[8];
    size_t part_count;
    int64_t step; /* cuts fall on multiples of it, too; 0: on those of the largest unit alone */
} khub_slot_axis;

/* Says along which axes calls of the function given to khub_layers_add may be cut, as a kernel's layers.json
 * does; nothing, until this is called. Copies `axes` but not their names; `min_ndim` is filled in.
 * KHUB_E_INVAL: more than 4 axes, or a part that the layer can't have. KHUB_E_NOMEM. */
KHUB_API int khub_slot_slice(khub_slot *slot, const khub_slot_axis *axes, size_t count, khub_error *err);

/* What is in a slot at one moment: a function, and how the layer's arguments become its own. For a pool that
 * cuts calls: it plans a call with one filling and stays with it, whatever comes into the slot meanwhile.
 *
 *     khub_layers_enter();
 *     const khub_filling *filling = khub_slot_filling(slot);
 *     khub_filling_prepare_args(filling, args, n);
 *     ... cut along khub_filling_axes, khub_filling_call for each piece, on any threads ...
 *     khub_layers_leave();
 */
typedef struct khub_filling khub_filling;

/* Between entering and leaving, the fillings that a thread takes out of any slots stay valid; other threads
 * may call them if this one leaves after they have. Nests; costs about a nanosecond. What is replaced
 * meanwhile is kept, so come out from time to time. */
KHUB_API void khub_layers_enter(void);
KHUB_API void khub_layers_leave(void);

KHUB_API const khub_filling *khub_slot_filling(const khub_slot *slot);

/* Along which axes its calls may be cut; 0 for a function that declares none. */
KHUB_API size_t khub_filling_axes(const khub_filling *filling, const khub_slot_axis **axes);

/* Its prepared arguments replace the bound ones in `args` (n values, layer order), in place: once, before
 * the call is cut. */
KHUB_API void khub_filling_prepare_args(const khub_filling *filling, khub_value *args, int32_t n);

/* Calls it with prepared arguments, as khub_slot_call. */
KHUB_API int khub_filling_call(const khub_slot *slot, const khub_filling *filling, const khub_value *args,
                               int32_t n, khub_error *err);

/* The slot whose filling the calling thread is in by khub_filling_call, for a program that tells what crashed
 * (in a signal handler, too); NULL: none. *kernel (may be NULL) becomes the kernel's name, NULL for the
 * standard function; both stay valid as long as the call. */
KHUB_API const khub_slot *khub_slot_running(const char **kernel);

/* For a pool where kernels may fail (KHUB_ON_ERROR_STANDARD): before a call, with its own arguments, whole
 * and not prepared. *out NULL: a failure is the call's. Otherwise each piece that fails is said to
 * khub_kept_fail, from any thread, and khub_kept_settle, once all have ended, does the whole call again by
 * the standard function if one did, and frees. KHUB_E_NOMEM, KHUB_E_UNSUPPORTED (what can't be saved); settle
 * as khub_slot_call. */
typedef struct khub_kept khub_kept;
KHUB_API int khub_filling_keep(khub_kept **out, const khub_slot *slot, const khub_filling *filling,
                               const khub_value *args, int32_t n, khub_error *err);
KHUB_API void khub_kept_fail(khub_kept *kept, const khub_error *why);
KHUB_API int khub_kept_settle(khub_kept *kept, const khub_slot *slot, const khub_value *args, int32_t n,
                              khub_error *err); /* NULL is a no-op */

/* The i-th slot in the order of adding; NULL past the last. */
KHUB_API size_t khub_layers_count(const khub_layers *layers);
KHUB_API khub_slot *khub_layers_at(const khub_layers *layers, size_t i);

/* The slots whose path a pattern takes, in the order of adding: "encoder.layer.*.output.**", where "*" is any
 * segment between dots, and "**" any number of them; NULL takes all. A run is taken with any of its parts.
 * *out (NULL-terminated) is the caller's (khub_free); that there is no such slot is no error. KHUB_E_INVAL:
 * that is no pattern. KHUB_E_NOMEM. */
KHUB_API int khub_layers_match(khub_slot ***out, size_t *count, const khub_layers *layers,
                               const char *pattern, khub_error *err);

/* On: the standard function serves the slots of a pattern, while the kernels stay theirs, also those that
 * khub_kernelize chooses later. Off: the kernels serve again. One assignment for each slot, nothing is
 * prepared or asked for. KHUB_E_NOTFOUND (no such slot), KHUB_E_INVAL, KHUB_E_NOMEM. */
KHUB_API int khub_layers_disable(khub_layers *layers, const char *pattern, int on, khub_error *err);

/* On: the slots of a pattern that a kernel serves call it and the standard function, keep the standard
 * result, and sum up how far the kernel's is from it, also of kernels that khub_kernelize chooses later. Off:
 * the kernels serve again; the sums stay. A call takes memory for its outputs, isn't cut, and costs what both
 * functions and the comparing cost. Errors as khub_layers_disable's. */
KHUB_API int khub_layers_shadow(khub_layers *layers, const char *pattern, int on, khub_error *err);

enum { KHUB_SHADOW_OUTPUTS = 2 }; /* that a layer has at most */

/* What shadow mode has found out about a slot. */
typedef struct khub_shadow {
    uint64_t calls;          /* of both functions */
    uint64_t failed;         /* of these, calls in which the kernel failed: nothing to compare */
    char first_failure[512]; /* in the kernel's words; "": none */
    size_t outputs;
    const char *output[KHUB_SHADOW_OUTPUTS];         /* the layer's name for it, static: "out", "sum" */
    khub_comparison difference[KHUB_SHADOW_OUTPUTS]; /* a: the kernel's, b: the standard function's */
} khub_shadow;

/* Copies the sums of a slot; any thread. 0 (and zeros): it was never shadowed. */
KHUB_API int khub_slot_shadow(khub_shadow *out, const khub_slot *slot);

/* How many calls of the slot a kernel failed in and the standard function did again, ever. */
KHUB_API uint64_t khub_slot_retried(const khub_slot *slot);

KHUB_API const char *khub_slot_path(const khub_slot *slot);
KHUB_API const char *khub_slot_layer(const khub_slot *slot);

/* What becomes of slots that no kernel serves. */
typedef enum khub_fallback {
    KHUB_FALLBACK_ALLOW, /* the standard function stays, and the report says why */
    KHUB_FALLBACK_NAMED, /* what the mapping names must serve; what it leaves out may stay standard */
    KHUB_FALLBACK_REFUSE /* every slot must be served, but for those that the mapping leaves standard by "" */
} khub_fallback;

/* What becomes of a call in which a kernel fails. */
typedef enum khub_on_error {
    KHUB_ON_ERROR_FAIL,    /* it fails: KHUB_E_KERNEL, with slot and kernel in the message */
    KHUB_ON_ERROR_STANDARD /* the standard function does it again, told once per slot and counted
                            * (khub_slot_retried). Inputs that share memory with an output are saved before
                            * each call, which costs a copy */
} khub_on_error;

typedef struct khub_kernelize_options {
    size_t struct_size;            /* set by KHUB_INIT */
    const khub_mapping *mapping;   /* which kernel serves which layer; borrowed during the call; NULL: the
                                    * default mapping */
    const khub_platform *platform; /* borrowed during the call; NULL: this machine */
    khub_fallback fallback;
    const khub_hub_options *hub; /* for kernels of the Hub; borrowed during the call; NULL: as the environment
                                  * says. Its progress function is called from the caller's thread */
    const char *device;          /* of slots that were added without one: "cpu", "cuda", "cuda:89"; NULL:
                                  * "cpu". A capability that nobody says is that of the platform's device */
    int mode;                    /* KHUB_MODE_...; 0: INFERENCE */
    int deterministic;           /* not 0: only functions that promise to be deterministic serve */
    khub_on_error on_error;
    int exact; /* not 0: only functions that promise results right to the last bit serve: a tolerance of 0 ULP
                * for the slot's dtype */
    khub_gpu *gpu; /* of slots that were added without device and GPU, as that of khub_slot_options; NULL: as
                    * `device` says */
} khub_kernelize_options;

typedef struct khub_report khub_report;

/* One entry of the mapping that a slot could have been filled from. Strings are the report's; NULL where
 * there is none. */
typedef struct khub_slot_candidate {
    const char *kernel; /* as the mapping names it; "": standard on purpose; NULL: `reason` has its fault */
    const char *layer;  /* of the kernel's layers.json; NULL: the slot's */
    const char *device; /* for which it stands: "cpu", "cuda:75-89", "*" */
    int mode;           /* KHUB_MODE_..., likewise */
    int serves;         /* 1: this one is in the slot; those behind it weren't needed */
    const char *reason; /* why it doesn't serve */
    const char *from;   /* the mapping's file or name */
} khub_slot_candidate;

/* What became of one slot. Strings are the report's; NULL where there is none. */
typedef struct khub_slot_report {
    const char *path, *layer;
    const char *kernel; /* "khub/norm"; NULL: the standard function stayed */
    const char *variant, *function;
    const char *reason; /* why the standard function stayed: that of the first candidate */
    int deterministic;
    int mapped;      /* 1: the mapping names a kernel for this slot */
    const char *run; /* the run that it is a part of and that serves it: what is said is said of its kernel */
    size_t parts;    /* of a run: how many slots it stands for; 0: it is none */
    int disabled;    /* 1: the standard function serves until khub_layers_disable is undone */
    const char *repository;                /* "org/name"; NULL: a directory */
    const char *commit;                    /* of a kernel of the Hub */
    const char *build;                     /* directory of the build */
    int64_t version;                       /* metadata.json's; -1: no kernel serves */
    const khub_slot_candidate *candidates; /* in the order in which they are tried */
    size_t candidate_count;
    const khub_trust *trust; /* why its kernel may be loaded (khub_kernel_trust) */
} khub_slot_report;

/* Puts the kernels of the mapping into the slots they fit: into each the first of its candidates that serves.
 * Each kernel is got once, and when a slot needs it; those of the Hub several at a time, in threads that end
 * with this call. A slot keeps what is in it where the same build of the same commit would serve it by the
 * same function, its weight not prepared again; so a second call of the same options changes nothing. After
 * it no call opens a file or a connection. A miss, also of a kernel that can't be had offline, is a line in
 * *report (may be NULL), never an error, unless `fallback` says so; after an error every slot is as it was.
 * USE_HUB_KERNELS=0|OFF|NO leaves every slot standard, DISABLE_KERNEL_MAPPING=1 leaves nothing of the default
 * mapping.
 * With KHUB_FALLBACK_NAMED and REFUSE there must be a slot for each layer that somebody's mapping names.
 * KHUB_E_NOBUILD (fallback: all misses at once), KHUB_E_CANCELED (hub->progress said so), KHUB_E_INVAL,
 * KHUB_E_NOMEM. */
KHUB_API int khub_kernelize(khub_layers *layers, const khub_kernelize_options *options, khub_report **report,
                            khub_error *err);
/* Puts the standard function back into every slot. */
KHUB_API void khub_standardize(khub_layers *layers);

/* How many lines there are, one for each slot and run in the order of adding. */
KHUB_API size_t khub_report_count(const khub_report *report);
KHUB_API const khub_slot_report *khub_report_at(const khub_report *report, size_t i); /* NULL past the last */
/* Lines that aren't of runs, and those of them that a kernel serves, on its own or in a run. */
KHUB_API size_t khub_report_slots(const khub_report *report);
KHUB_API size_t khub_report_filled(const khub_report *report);
KHUB_API void khub_report_free(khub_report *report); /* NULL is a no-op */

/* The i-th argument name of a layer of docs/layers.md; NULL past the last, or for an unknown layer. */
KHUB_API const char *khub_layer_arg(const char *layer, size_t i);

#ifdef __cplusplus
}
#endif

#endif
