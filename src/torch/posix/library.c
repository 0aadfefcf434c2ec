#include "torch/library.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/signals.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

/* LOCAL: libtorch brings a BLAS, whose names must not be found in place of another's. LAZY: most of it is
 * never called. A kernel names the libraries that it needs. */
enum { FLAGS = RTLD_LAZY | RTLD_LOCAL };

/* What it needs was looked at before (platform/torch.h). */
static int fail_to_load(khub_error *err, const char *path)
{
    const char *words = dlerror();
    if (words && !strncmp(words, path, strlen(path))) return khub__fail(err, KHUB_E_LOAD, "%s", words);
    return khub__fail(err, KHUB_E_LOAD, "%s: %s", path, words ? words : "can't be loaded");
}

static int has_stand_in; /* 1: ours is the one that kernels find by the name libtorch.so */

/* Our own libtorch.so: empty but for Python's functions. Where the process has them (a Python) they must not
 * be replaced by ours. */
static int open_stand_in(khub_error *err)
{
    char path[4096];
    const char *prefix = khub__install_prefix();
    snprintf(path, sizeof(path), "%s/libexec/khub/torch/libtorch.so", prefix ? prefix : "");
    int has_python = dlsym(RTLD_DEFAULT, "PyModule_Create2") != NULL;
    return dlopen(path, RTLD_NOW | (has_python ? RTLD_LOCAL : RTLD_GLOBAL)) ? KHUB_OK
                                                                            : fail_to_load(err, path);
}

static int is_same_file(const char *a, const char *b)
{
    char *real_a = realpath(a, NULL), *real_b = realpath(b, NULL);
    int same = real_a && real_b && strcmp(real_a, real_b) == 0;
    free(real_a);
    free(real_b);
    return same;
}

/* The libtorch that is in the process must be the one that builds were chosen for. */
static int check_loaded(void *handle, const char *path, khub_error *err)
{
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || is_same_file(map->l_name, path)) return KHUB_OK;
    return khub__fail(err, KHUB_E_LOAD, "%s: another libtorch is in this process already: %s", path,
                      map->l_name);
}

/* The real libtorch.so, beside libtorch_cpu.so; before our own, which goes by the same name. When ours was
 * first, a kernel finds what it needs among what is there for all. */
static int open_cuda(const char *path, khub_error *err)
{
    char *dir = khub__path_parent(path), *real = dir ? khub__path_join(dir, "libtorch.so") : NULL;
    int rc = KHUB_OK;
    if (!real)
        rc = khub__fail_memory(err, "opening libtorch");
    else if (!khub__dlopen(real, RTLD_LAZY | (has_stand_in ? RTLD_GLOBAL : RTLD_LOCAL)))
        rc = fail_to_load(err, real);
    khub__free(real);
    khub__free(dir);
    return rc;
}

int khub__torch_library_open(void **out, int *was_there, const khub_library_info *from, int for_cuda,
                             khub_error *err)
{
    *out = dlopen("libtorch_cpu.so", FLAGS | RTLD_NOLOAD);
    *was_there = *out != NULL;
    int rc = *was_there ? check_loaded(*out, from->path, err) : KHUB_OK;
    khub__log(KHUB_LOG_DEBUG, "load", from->path, *was_there ? "is in the process" : "loading it");
    if (rc == KHUB_OK && for_cuda) rc = open_cuda(from->path, err);
    /* what brought libtorch may lack these, which kernels need */
    if (rc == KHUB_OK && (!*was_there || !dlsym(RTLD_DEFAULT, "PyModule_Create2"))) rc = open_stand_in(err);
    if (rc != KHUB_OK || *was_there) return rc;
    *out = khub__dlopen(from->path, FLAGS);
    return *out ? KHUB_OK : fail_to_load(err, from->path);
}

void *khub__torch_library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}
