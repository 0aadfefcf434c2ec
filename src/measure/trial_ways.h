/* A case under way, between trial.c, which makes its base run, and trial_ways.c, which makes the others. */
#ifndef MEASURE_TRIAL_WAYS_H
#define MEASURE_TRIAL_WAYS_H

#include "measure/trial.h"

#include "layer/recipe.h"
#include "measure/arguments.h"

#include <fenv.h>

/* A target in the case's slot. */
typedef struct khub__trial_place {
    khub_layers *layers;
    khub_slot *slot;
    khub__source source;         /* the kernel; never given up, since it isn't ours to close */
    khub_filling *own;           /* of the kernel; given up with the layers */
    const khub_filling *filling; /* that is called */
    khub_gpu *gpu;               /* borrowed; where; NULL: on the host */
    khub_gpu_array weight;       /* there, what the slot has bound */
    khub_array prepared;         /* what that became, on the host */
} khub__trial_place;

/* One case under way. By position: compact memory. */
typedef struct khub__trial {
    khub__tester *tester;
    const khub__case *c;
    char name[KHUB__CASE_NAME];
    khub__trial_place target, other;
    void *in[KHUB__MAX_ARGS];
    void *whole[KHUB__MAX_ARGS]; /* outputs of the base run */
    void *now[KHUB__MAX_ARGS];   /* of a later one */
    void *scratch;               /* room for any argument, prepared ones too */
    double *numbers[KHUB__MAX_ARGS], *exact[KHUB__MAX_ARGS], *scale[KHUB__MAX_ARGS];
    int counts;         /* 1: seen for the first time */
    fenv_t environment; /* of this thread before the call under way */
    unsigned arithmetic;
} khub__trial;

/* Arguments of a call, with what the kernel wants prepared. */
int khub__trial_arguments(khub__arguments *out, const khub__trial *t, const khub__trial_place *p,
                          khub__placement placement, khub_error *err);
int khub__trial_call(khub__trial *t, const khub__trial_place *p, khub__arguments *args, khub_error *err);
/* Around calls that are made otherwise, with `count` sets of arguments; faults are told by the first. The end
 * takes what the calls came to, and gives what is so now that all is done: a GPU's errors come late. */
int khub__trial_begin(khub__trial *t, khub__arguments *args, size_t count, khub_error *err);
int khub__trial_end(khub__trial *t, khub__arguments *args, size_t count, int rc, khub_error *err);

/* The kernel's own form of an argument, on the host; NULL: it has none. */
const khub_tensor *khub__trial_prepared(const khub__trial_place *p);

/* What a call must leave alone. */
void khub__trial_look_beside(khub__trial *t, const khub__arguments *args);
/* Rows [from, to) of the batch (all: 0, 0) of what a call left in `args` against the base run's. */
void khub__trial_look_at_bits(khub__trial *t, const khub__arguments *args, khub_check check, int64_t from,
                              int64_t to, const char *how);

/* By stage; from KHUB__STAGE_END on. */
extern int (*const khub__trial_ways[KHUB__STAGES])(khub__trial *t, khub_error *err);

#endif
