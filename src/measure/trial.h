/* One case tried on one function, in every way that must come to the same. */
#ifndef MEASURE_TRIAL_H
#define MEASURE_TRIAL_H

#include "base/contained.h"
#include "measure/cases.h"
#include "measure/watched.h"
#include "model/threads.h"

#include <khub/compare.h>
#include <khub/gpu.h>

/* A function as it serves a layer. Everything borrowed. */
typedef struct khub__subject {
    const char *name; /* "khub/norm", "standard" */
    const khub__layer_def *layer;
    khub_gpu *gpu;             /* where it is called; NULL: on the host */
    const khub_kernel *kernel; /* NULL: the next three */
    const khub_layer_spec *spec;
    khub_function function;
    const khub_slot_axis *axes;
    size_t axis_count;
} khub__subject;

/* The ways, in the order they are tried. What ends the process is left out from then on. */
typedef enum khub__stage {
    KHUB__STAGE_LOAD, /* of the kernel; no case yet */
    KHUB__STAGE_BASE, /* its result is what the others are compared with */
    KHUB__STAGE_OTHER,
    KHUB__STAGE_END, /* as the placements */
    KHUB__STAGE_START,
    KHUB__STAGE_ALIGNED,
    KHUB__STAGE_SHIFTED,
    KHUB__STAGE_STRIDED,
    KHUB__STAGE_IN_PLACE,
    KHUB__STAGE_REPEATS,
    KHUB__STAGE_SLICES,
    KHUB__STAGE_BATCHES,
    KHUB__STAGE_THREADS,
    KHUB__STAGES
} khub__stage;

/* Where the work is: shared with the process that waits for it. */
typedef struct khub__progress {
    volatile uint64_t beat; /* odd during a call */
    size_t layer;           /* in the report */
    size_t at;              /* the case */
    khub__stage stage;
    khub__stage from;  /* what of the case comes before this was tried, and counted, already */
    unsigned left_out; /* stages, by bit */
    int lost; /* 1: a device can't be used any more in the process that is there, it has been told why */
    khub__fault fault;
    char name[KHUB__CASE_NAME];
} khub__progress;

/* What cases are tried with. */
typedef struct khub__tester {
    khub__subject target, other; /* other.name NULL: there is none */
    khub_compare_layer *layer;   /* findings go there; shared */
    khub__progress *progress;
    khub__threads *threads;
} khub__tester;

/* KHUB_OK whatever is found. KHUB_E_CANCELED with progress->lost set: the rest is for another process.
 * KHUB_E_NOMEM, KHUB_E_KERNEL and what else keeps the target from being called at all. */
int khub__try(khub__tester *tester, const khub__case *c, khub_error *err);

/* Counts one look at `check`; not `good`: `format` says what was seen. */
void khub__found(khub_compare_layer *layer, khub_check check, const char *name, int good, const char *format,
                 ...) KHUB_PRINTF(5, 6);

#endif
