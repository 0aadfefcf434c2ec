/* The loader looks for a symbol in the program and its libraries first, then in the library that refers to
 * it. A kernel is opened RTLD_LOCAL, so kernels don't see each other, but a program that exports a name of
 * the kernel's (-rdynamic) has its own called instead. RTLD_DEEPBIND turns the order round. It isn't the
 * rule, because it also takes a library away from a malloc that the program brings along, and because the
 * sanitizers' runtimes refuse it; it is used for a library that would run a stranger's code otherwise. */
#include "kernel/posix/interpose.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"

#include <dlfcn.h>

#ifndef RTLD_DEEPBIND
#define RTLD_DEEPBIND 0
#endif

/* Names that these define are shared on purpose. */
static int is_runtime(const char *file)
{
    static const char *const starts[] = {"libc.so",       "libm.so",  "libstdc++.so",
                                         "libgcc_s.so",   "ld-linux", "ld-musl",
                                         "libpthread.so", "libc++",   "libdl.so"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (!strncmp(khub__path_name(file), starts[i], strlen(starts[i]))) return 1;
    return 0;
}

/* The file whose definition of `name` comes before the library's own; NULL: there is none. */
static const char *other_definition(const char *name)
{
    Dl_info info;
    void *at = dlsym(RTLD_DEFAULT, name);
    if (!at || !dladdr(at, &info) || !info.dli_fname || is_runtime(info.dli_fname)) return NULL;
    return info.dli_fname[0] ? info.dli_fname : "the program";
}

static int is_loaded(const char *path)
{
    void *handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
    if (handle) dlclose(handle); /* gives back the reference, no more */
    return handle != NULL;
}

static int under_sanitizer(void)
{
    return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init") ||
           dlsym(RTLD_DEFAULT, "__msan_init");
}

int khub__interpose_flags(int *flags, const khub__elf *elf, khub_error *err)
{
    *flags = 0;
    const char *name, *other = NULL;
    for (size_t at = 0; !other && (name = khub__elf_own_reference(elf, &at)) != NULL;)
        other = other_definition(name);
    if (!other || is_loaded(elf->path)) return KHUB_OK;
    if (RTLD_DEEPBIND == 0 || under_sanitizer())
        return khub__fail(
            err, KHUB_E_LOAD,
            "%s: its symbol \"%s\" would be replaced by that of %s, and this process can't keep them apart",
            elf->path, name, other);
    khub__log(KHUB_LOG_NOTICE, "load", elf->path, "%s also has a symbol \"%s\"; the library keeps its own",
              other, name);
    *flags = RTLD_DEEPBIND;
    return KHUB_OK;
}
