/* The libtorch that the tests are run with: KHUB_TORCH is the folder of the `torch` package. */
#ifndef UNIT_TORCH_H
#define UNIT_TORCH_H

#include "unit.h"

#include "torch/torch.h"

#include <stdio.h>
#include <stdlib.h>

static inline khub_library_info torch_here(void)
{
    static char path[4096];
    const char *dir = getenv("KHUB_TORCH");
    ck_assert_msg(dir != NULL,
                  "KHUB_TORCH isn't set: run by ctest, or set it to the folder of the torch package");
    snprintf(path, sizeof(path), "%s/lib/libtorch_cpu.so", dir);
    return (khub_library_info){.name = "libtorch", .presence = KHUB_FOUND, .path = path};
}

static inline void torch_open(void)
{
    khub_error err = {0};
    khub_library_info info = torch_here();
    ck_khub_ok(khub__torch_open(&info, 0, &err), &err);
}

#endif
