/* What isn't a libtorch that can be opened. With one: test_torch.c. */
#include "unit.h"

#include "torch/library.h"
#include "torch/shim.h"
#include "torch/torch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static khub_error err;

static int open_at(const char *path, const char *version, int for_cuda)
{
    khub_library_info info = {.name = "libtorch", .presence = KHUB_FOUND, .path = path, .version = version};
    return khub__torch_open(&info, for_cuda, &err);
}

/* Our own library stands in for libtorch.so: the loader takes it for that, and has Python's functions. */
START_TEST(nothing_there)
{
    ck_khub_fails(open_at("/nowhere/libtorch_cpu.so", NULL, 0), &err, KHUB_E_LOAD,
                  "/nowhere/libtorch_cpu.so: ");
    ck_khub_fails(open_at("/nowhere/libtorch_cpu.so", NULL, 1), &err, KHUB_E_LOAD, "/nowhere/libtorch.so: ");
    ck_assert(!khub__torch_is_open(0) && !khub__torch_is_open(1));
    void *name = dlopen("libtorch.so", RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(name);
    ck_assert_ptr_eq(dlsym(RTLD_DEFAULT, "PyModule_Create2"), dlsym(name, "PyModule_Create2"));
    ck_assert_ptr_nonnull(dlsym(name, "PyModuleDef_Init"));
    khub__torch_set_threads(2); /* said for later */
}
END_TEST

/* A library without libtorch's entry points. */
START_TEST(too_old)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/libexec/khub/torch/libtorch.so", getenv("KHUB_PREFIX"));
    ck_khub_fails(open_at(path, "2.6.0", 0), &err, KHUB_E_UNSUPPORTED,
                  "libtorch 2.6.0: has no aoti_torch_call_dispatcher; Torch 2.7 or newer is needed");
    ck_khub_fails(open_at(path, NULL, 0), &err, KHUB_E_UNSUPPORTED, "libtorch: has no ");
    ck_assert(!khub__torch_is_open(0));
}
END_TEST

UNIT("torch_open", nothing_there, too_old)
