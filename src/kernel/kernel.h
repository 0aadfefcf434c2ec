/* What a khub_kernel holds. */
#ifndef KERNEL_KERNEL_H
#define KERNEL_KERNEL_H

#include "kernel/layers_json.h"
#include "kernel/library.h"

#include <khub/kernel.h>

#include <stdatomic.h>

/* The text of layers.json that was proven with the build; else it is read from there. */
typedef struct khub__layers_text {
    int is_proven;
    char *text; /* NULL: the build has none */
    size_t bytes;
} khub__layers_text;

/* layers.json of a build that is kept for good, read by the first that asks. */
typedef struct khub__kept_layers {
    _Atomic(const khub__layers *) read; /* NULL: not yet */
    khub__layers_text text;
} khub__kept_layers;

struct khub_kernel {
    int is_kept; /* 1: variant, build, commit and trust are the memo's, which keeps them for good */
    char *name, *variant;
    char *build;  /* directory of the build */
    char *commit; /* NULL: a directory of this machine */
    int64_t version;
    khub_trust *trust;              /* the verdict on the build; NULL: none yet */
    const khub__library *library;   /* the process's, for good */
    khub_function_info *infos;      /* one for each function of the library; NULL: not read yet */
    const khub__layers *layers;     /* NULL: not read yet */
    khub__layers *own_layers;       /* the same, where they are this view's to free */
    khub__kept_layers *kept_layers; /* where they are shared; NULL: nowhere */
    khub__layers_text layers_text;  /* what they are read from */
};

/* All that its layers.json says, read at the first question; none: it has no such file. As long as the
 * kernel. KHUB_E_FORMAT, KHUB_E_NOMEM; *out is NULL then. */
int khub__kernel_layers(const khub__layers **out, khub_kernel *kernel, khub_error *err);

#endif
