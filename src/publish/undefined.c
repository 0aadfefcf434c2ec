/* The symbols that a library lacks, sorted by who is meant to have them. */
#include "publish/rules.h"

static const char nobody[] = "nobody", usual[] = "libpthread";

/* Those of which a build's name may say that they aren't there. */
static int is_optional(const char *provider)
{
    static const char *const optional[] = {"tvm-ffi", "torch",         "torch-stable", "python", "cuda",
                                           "rocm",    "nvidia-driver", "level-zero",   "sycl"};
    for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++)
        if (!strcmp(optional[i], provider)) return 1;
    return 0;
}

/* Of libdl and libpthread, which are in the process wherever glibc is 2.34 or newer, and in most others. */
static int is_usual(const char *name)
{
    static const char *const starts[] = {"dlopen", "dlsym",   "dlclose", "dlerror",  "dladdr",
                                         "dlvsym", "dlmopen", "dlinfo",  "pthread_", "sem_"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (!strncmp(name, starts[i], strlen(starts[i]))) return 1;
    return 0;
}

/* "libc.so.6", "tvm-ffi", … */
static const char *provider_of(const khub__object *object, const khub__object_symbol *s)
{
    const khub__provider *by_library = s->library ? khub__needed_provider(object, s->library) : NULL;
    if (by_library) return by_library->name;
    if (s->library) return s->library;
    const khub__provider *by_name = khub__symbol_provider(s->name);
    if (by_name) return by_name->name;
    return object->format == KHUB__ELF && is_usual(s->name) ? usual : nobody;
}

/* Whether each library that it needs gives its symbols versions, or names that are known, so that one without
 * can't be theirs. */
static int all_versioned(const khub__object *object)
{
    static const char *const versioned[] = {"libc.so.6",
                                            "libm.so.6",
                                            "libdl.so.2",
                                            "libpthread.so.0",
                                            "librt.so.1",
                                            "libgcc_s.so.1",
                                            "libstdc++.so.6",
                                            "libutil.so.1",
                                            "libatomic.so.1",
                                            "ld-linux-x86-64.so.2",
                                            "ld-linux-aarch64.so.1",
                                            "libtvm_ffi.so"};
    for (size_t i = 0; i < object->needed.count; i++) {
        size_t k = 0, n = sizeof(versioned) / sizeof(*versioned);
        while (k < n && strcmp(versioned[k], object->needed.items[i]) != 0)
            k++;
        if (k == n) return 0;
    }
    return 1;
}

static void report_group(const khub__case *it, const khub__group *g)
{
    if (is_optional(g->key) && !khub__is_promised(it, g->key))
        khub__finding_of(it->report, "undefined", KHUB_CHECK_LEVEL_ERROR, g->key, &g->names,
                         "lacks symbols of %s, which doesn't go with the build's name", g->key);
    else if (strcmp(g->key, "sanitizer") == 0)
        khub__finding_of(it->report, "undefined", KHUB_CHECK_LEVEL_ERROR, g->key, &g->names,
                         "is an instrumented build, which loads into instrumented programs alone");
    else if (strcmp(g->key, usual) == 0 && all_versioned(it->object))
        khub__finding_of(
            it->report, "undefined", KHUB_CHECK_LEVEL_WARNING, g->key, &g->names,
            "uses libdl or libpthread without needing them, so it counts on a program that has them: "
            "link with -ldl -lpthread");
    else if (strcmp(g->key, nobody) != 0)
        khub__finding(it->report, "undefined", KHUB_CHECK_LEVEL_NOTE, g->key, &g->names, "%zu symbol%s of %s",
                      g->names.count, g->names.count == 1 ? "" : "s", g->key);
    else if (it->object->format == KHUB__ELF && all_versioned(it->object))
        khub__finding_of(it->report, "undefined", KHUB_CHECK_LEVEL_ERROR, g->key, &g->names,
                         "lacks symbols that nothing it needs has");
    else
        khub__finding_of(it->report, "undefined", KHUB_CHECK_LEVEL_NOTE, "others", &g->names,
                         "lacks symbols that one of the libraries it needs should have");
}

void khub__check_undefined(const khub__case *it)
{
    khub__groups all = {0};
    for (size_t i = 0; i < it->object->symbol_count; i++) {
        const khub__object_symbol *s = &it->object->symbols[i];
        if (s->undefined && !(s->weak && !s->version))
            khub__groups_add(&all, provider_of(it->object, s), s->name);
    }
    if (khub__groups_sort(&all))
        for (size_t i = 0; i < all.count; i++)
            report_group(it, &all.items[i]);
    else
        it->report->failed = 1;
    khub__groups_free(&all);
}
