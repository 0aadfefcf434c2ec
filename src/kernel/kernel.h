/* What a khub_kernel holds. */
#ifndef KERNEL_KERNEL_H
#define KERNEL_KERNEL_H

#include "kernel/layers_json.h"
#include "kernel/library.h"

#include <khub/kernel.h>

struct khub_kernel {
    char *name, *variant;
    char *build;  /* directory of the build */
    char *commit; /* NULL: a directory of this machine */
    int64_t version;
    khub_trust *trust;            /* the verdict on the build; NULL: none yet */
    const khub__library *library; /* the process's, for good */
    khub_function_info *infos;    /* one for each function of the library; NULL: not read yet */
    khub__layers layers;
    int layers_read;
};

#endif
