/* What isn't a libtorch that can be opened, and what is opened of one: with the real one test_torch.c, here
 * tests/fake/torch_whole.c beside a libtorch.so for CUDA. */
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

/* Where its libraries are in this process; NULL: nowhere. */
static void *here(const char *name, const char *symbol)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? dlsym(handle, symbol) : NULL;
}

static const char *whole(const char *name)
{
    static char paths[2][4096];
    static int turn;
    char *path = paths[turn ^= 1];
    snprintf(path, sizeof(paths[0]), "%s/tests/fake/torch/whole/%s", getenv("KHUB_BINARY"), name);
    return path;
}

/* Only libtorch_cpu, and ours in place of libtorch.so; the real one when a kernel for CUDA comes. */
START_TEST(for_the_cpu)
{
    khub__torch_set_threads(3); /* said before it is open */
    ck_khub_ok(open_at(whole("libtorch_cpu.so"), "2.15.0", 0), &err);
    ck_assert(khub__torch_is_open(0) && !khub__torch_is_open(1) && !khub__torch_is_shared());
    ck_assert_ptr_null(dlopen(whole("libtorch.so"), RTLD_LAZY | RTLD_NOLOAD));
    ck_assert_ptr_nonnull(here("libtorch.so", "PyModule_Create2"));
    int (*threads)(void);
    void *symbol = here(whole("libtorch_cpu.so"), "fake_threads");
    memcpy(&threads, &symbol, sizeof(threads));
    ck_assert_int_eq(threads(), 3);
    khub__torch_set_threads(2);
    ck_assert_int_eq(threads(), 2);
    ck_khub_ok(open_at(whole("libtorch_cpu.so"), "2.15.0", 1), &err);
    ck_assert(khub__torch_is_open(1));
    ck_assert_ptr_nonnull(here(whole("libtorch.so"), "fake_piece"));
    ck_assert_int_eq(threads(), 2); /* asked once */
}
END_TEST

/* A kernel finds the real one by the name libtorch.so, and Python's functions. */
START_TEST(for_cuda)
{
    ck_khub_ok(open_at(whole("libtorch_cpu.so"), "2.15.0", 1), &err);
    ck_assert(khub__torch_is_open(0) && khub__torch_is_open(1));
    ck_assert_ptr_nonnull(here("libtorch.so", "fake_piece"));
    ck_assert_ptr_nonnull(dlsym(RTLD_DEFAULT, "PyModule_Create2"));
}
END_TEST

UNIT("torch_open", nothing_there, too_old, for_the_cpu, for_cuda)
