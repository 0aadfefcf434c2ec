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

static int starts_somewhere(const char *place)
{
    return place[0] == '/' || !strncmp(place, "$ORIGIN", 7) || !strncmp(place, "${ORIGIN}", 9);
}

int khub__interpose_search(const khub__elf *elf, khub_error *err)
{
    const char *needed, *at = khub__elf_runpath(elf);
    for (; at && *at;
         at += *at == ':') { /* an empty place is the current directory, too; no path at all is not */
        size_t length = strcspn(at, ":");
        if (!starts_somewhere(at))
            return khub__fail(
                err, KHUB_E_LOAD,
                "%s: its search path has \"%.*s\", which is looked for in the current directory", elf->path,
                (int)length, at);
        at += length;
        if (!strcmp(at, ":"))
            return khub__fail(err, KHUB_E_LOAD, "%s: its search path ends in the current directory",
                              elf->path);
    }
    for (size_t i = 0; (needed = khub__elf_needed(elf, i)) != NULL; i++)
        if (strchr(needed, '/') && !starts_somewhere(needed))
            return khub__fail(err, KHUB_E_LOAD, "%s: needs %s, which is looked for in the current directory",
                              elf->path, needed);
    return KHUB_OK;
}

static int same_content(const char *path, const khub__bytes *beside)
{
    khub__bytes bytes = {0};
    int same = khub__file_map(&bytes, path, NULL) == KHUB_OK && bytes.length == beside->length &&
               (bytes.length == 0 || !memcmp(bytes.data, beside->data, bytes.length));
    khub__bytes_free(&bytes);
    return same;
}

/* The library that the process has under the name `needed`, judged against the file beside the kernel. */
static int check_sibling(const khub__elf *elf, const char *needed, const khub__bytes *beside, khub_error *err)
{
    struct link_map *map = NULL;
    void *handle = dlopen(needed, RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
    int rc = KHUB_OK;
    if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && !same_content(map->l_name, beside))
        rc = khub__fail(
            err, KHUB_E_LOAD,
            "%s: needs the %s beside it, but this process already has another library of that name, %s, "
            "which would be used in its place",
            elf->path, needed, map->l_name);
    if (handle) dlclose(handle);
    return rc;
}

/* What is beside the library in `dir` under the name `needed`; of length 0: nothing. */
static int map_beside(khub__bytes *out, const char *dir, const char *needed, const khub__proven *proven,
                      khub_error *err)
{
    memset(out, 0, sizeof(*out));
    if (proven) {
        const khub__proven_file *file = khub__proven_find(proven, needed);
        return file ? khub__file_map_open(out, file->held.fd, (size_t)file->held.size, needed, err) : KHUB_OK;
    }
    char *beside = khub__path_join(dir, needed);
    if (!beside) return khub__fail_memory(err, "opening a library");
    if (khub__file_kind(beside) == KHUB__FILE_REGULAR) khub__file_map(out, beside, NULL);
    khub__free(beside);
    return KHUB_OK;
}

int khub__interpose_siblings(const khub__elf *elf, const khub__proven *proven, khub_error *err)
{
    const char *runpath = khub__elf_runpath(elf), *needed;
    if (!runpath || !strstr(runpath, "ORIGIN")) return KHUB_OK; /* it doesn't look beside itself */
    char *dir = khub__path_parent(elf->path);
    int rc = dir ? KHUB_OK : khub__fail_memory(err, "opening a library");
    for (size_t i = 0; rc == KHUB_OK && (needed = khub__elf_needed(elf, i)) != NULL; i++) {
        khub__bytes beside;
        rc = map_beside(&beside, dir, needed, proven, err);
        if (rc == KHUB_OK && beside.length) rc = check_sibling(elf, needed, &beside, err);
        khub__bytes_free(&beside);
    }
    khub__free(dir);
    return rc;
}
