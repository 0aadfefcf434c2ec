/* The libraries that a library needs: whether they are where it will be loaded, and where it looks for them.
 */
#include "publish/rules.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/provider.h"

/* The token for the library's own directory at the start of a place; 0: it doesn't start so. */
static size_t own_directory(const char *place, size_t length)
{
    static const char *const tokens[] = {"$ORIGIN", "${ORIGIN}", "@loader_path"};
    for (size_t i = 0; i < sizeof(tokens) / sizeof(*tokens); i++) {
        size_t n = strlen(tokens[i]);
        if (length >= n && !memcmp(place, tokens[i], n) && (length == n || place[n] == '/')) return n;
    }
    return 0;
}

static const char *own_token(const khub__object *object)
{
    return object->format == KHUB__ELF ? "$ORIGIN" : "@loader_path";
}

/* ".." as a part of it. */
static int leads_up(const char *place, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++)
        if (place[i] == '.' && place[i + 1] == '.' && (i == 0 || place[i - 1] == '/') &&
            (i + 2 == length || place[i + 2] == '/'))
            return 1;
    return 0;
}

/* One place of the search path. */
static void judge_place(const khub__case *it, const char *place)
{
    size_t length = strlen(place);
    if (length == 0)
        khub__finding(it->report, "rpath", KHUB_CHECK_LEVEL_ERROR, "", NULL,
                      "an empty place in its search path means whatever directory the program runs in");
    else if (!own_directory(place, length))
        khub__finding(it->report, "rpath", KHUB_CHECK_LEVEL_ERROR, place, NULL,
                      "looks for libraries in %s, a place of the machine it was built on; only %s, its own "
                      "directory, comes along",
                      place, own_token(it->object));
    else if (leads_up(place, length))
        khub__finding(it->report, "rpath", KHUB_CHECK_LEVEL_ERROR, place, NULL,
                      "looks for libraries in %s, which leads out of the build", place);
}

/* Calls `take` with each place of the search paths, until it returns other than 0, which is returned. */
static int each_place(const khub__case *it, int (*take)(const khub__case *, const char *, size_t, void *),
                      void *user)
{
    const char *separators = it->object->format == KHUB__ELF ? ":" : "";
    for (size_t i = 0; i < it->object->paths.count; i++)
        for (const char *at = it->object->paths.items[i];; at++) {
            size_t length = strcspn(at, separators);
            int rc = take(it, at, length, user);
            if (rc) return rc;
            at += length;
            if (!*at) break;
        }
    return 0;
}

static int take_copy(const khub__case *it, const char *place, size_t length, void *user)
{
    char *copy = khub__strndup(place, length);
    (void)it;
    if (!copy) return -1;
    khub__names *places = user;
    khub__names_add(places, copy);
    if (places->failed) khub__free(copy);
    return places->failed ? -1 : 0;
}

/* Each place once: linkers leave many empty ones behind. */
static void judge_places(const khub__case *it)
{
    khub__names places = {0};
    if (each_place(it, take_copy, &places) != 0) it->report->failed = 1;
    for (size_t i = 0; i < places.count && !it->report->failed; i++) {
        size_t before = 0;
        while (strcmp(places.items[before], places.items[i]) != 0)
            before++;
        if (before == i) judge_place(it, places.items[i]);
    }
    for (size_t i = 0; i < places.count; i++)
        khub__free((void *)(uintptr_t)places.items[i]);
    khub__names_free(&places);
}

/* 1: DIRECTORY/REST/NAME is there, -1: no memory. */
static int is_in(const char *directory, const char *rest, size_t length, const char *name)
{
    khub__text text = {0};
    khub__text_add(&text, directory);
    khub__text_add_bytes(&text, rest, length);
    khub__text_addf(&text, "/%s", name);
    int found = text.failed ? -1 : khub__file_kind(text.data) == KHUB__FILE_REGULAR;
    khub__text_free(&text);
    return found;
}

/* Is the library `user` in this place, as far as the place comes along with the build? */
static int take_to_find(const khub__case *it, const char *place, size_t length, void *user)
{
    size_t token = own_directory(place, length);
    char *directory = token ? khub__path_parent(it->path) : NULL;
    int found = !token ? 0 : directory ? is_in(directory, place + token, length - token, user) : -1;
    khub__free(directory);
    return found;
}

/* 1: stands beside the library, whether it is looked for there or not; -1: no memory. */
static int is_beside(const khub__case *it, const char *name)
{
    char *directory = khub__path_parent(it->path);
    int found = directory ? is_in(directory, "", 0, name) : -1;
    khub__free(directory);
    return found;
}

int khub__is_promised(const khub__case *it, const char *provider)
{
    static const struct {
        const char *provider, *backend;
    } table[] = {{"nvidia-driver", "cuda"},
                 {"cuda", "cuda"},
                 {"rocm", "rocm"},
                 {"level-zero", "xpu"},
                 {"sycl", "xpu"}};
    const khub__variant_name *v = it->variant;
    if (!strcmp(provider, "tvm-ffi")) return !v || v->framework == KHUB__TVM_FFI;
    if (!strncmp(provider, "torch", 5) || !strcmp(provider, "python"))
        return !v || v->framework != KHUB__TVM_FFI;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(table[i].provider, provider))
            return !v || (v->backend && !strcmp(v->backend->name, table[i].backend));
    /* PyTorch brings its own OpenMP and BLAS */
    return v && v->framework != KHUB__TVM_FFI && (!strcmp(provider, "openmp") || !strcmp(provider, "mkl"));
}

static int same_word(const char *a, const char *b)
{
    return strlen(a) == strlen(b) && khub__same_letters(a, b, strlen(a));
}

static int is_windows_own(const char *name)
{
    static const char *const names[] = {
        "kernel32.dll",
        "kernelbase.dll",
        "user32.dll",
        "advapi32.dll",
        "ntdll.dll",
        "ws2_32.dll",
        "ole32.dll",
        "oleaut32.dll",
        "shell32.dll",
        "bcrypt.dll",
        "bcryptprimitives.dll",
        "crypt32.dll",
        "dbghelp.dll",
        "psapi.dll",
        "shlwapi.dll",
        "version.dll",
        "msvcrt.dll",
        "ucrtbase.dll",
        /* of the Visual C++ runtime, which Python and PyTorch bring along */
        "vcruntime140.dll",
        "vcruntime140_1.dll",
        "msvcp140.dll",
        "msvcp140_1.dll",
        "concrt140.dll",
    };
    static const char sets[] = "api-ms-win-";
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (same_word(names[i], name)) return 1;
    return strlen(name) > sizeof(sets) && khub__same_letters(name, sets, sizeof(sets) - 1);
}

static int starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Is it on every system that the library is for? */
static int is_systems(const khub__case *it, const char *name)
{
    if (it->object->format == KHUB__ELF) return khub__manylinux_has(name);
    if (it->object->format == KHUB__PE) return is_windows_own(name) || same_word(name, "python3.dll");
    return starts(name, "/usr/lib/") || starts(name, "/System/Library/");
}

const khub__provider *khub__needed_provider(const khub__object *object, const char *name)
{
    static const struct {
        const char *start, *name; /* on Linux */
    } dlls[] = {{"torch", "libtorch"},    {"c10", "libc10"},        {"tvm_ffi", "libtvm_ffi"},
                {"python3", "libpython"}, {"nvcuda", "libcuda.so"}, {"nv", "libnv"},
                {"cu", "libcu"},          {"amdhip", "libamdhip"},  {"hip", "libhip"},
                {"roc", "libroc"},        {"ze_", "libze_"},        {"sycl", "libsycl"},
                {"vcomp", "libgomp"},     {"libiomp", "libiomp"}};
    if (strstr(name, "Python.framework/")) return khub__library_provider("libpython");
    if (object->format != KHUB__PE) return khub__library_provider(khub__path_name(name));
    for (size_t i = 0; i < sizeof(dlls) / sizeof(*dlls); i++)
        if (strlen(name) >= strlen(dlls[i].start) &&
            khub__same_letters(name, dlls[i].start, strlen(dlls[i].start)))
            return khub__library_provider(dlls[i].name);
    return NULL;
}

static void refuse(const khub__case *it, const char *name, const khub__provider *provider, int beside)
{
    int by_path = strchr(name, '/') && *name != '@';
    if (provider && !strcmp(provider->name, "python"))
        khub__finding(it->report, "needed", KHUB_CHECK_LEVEL_ERROR, name, NULL,
                      "needs %s: a kernel must load into any Python, or none; don't link with it", name);
    else if (by_path)
        khub__finding(it->report, "needed", KHUB_CHECK_LEVEL_ERROR, name, NULL,
                      "needs %s by its path, which is nowhere else", name);
    else if (beside)
        khub__finding(it->report, "needed", KHUB_CHECK_LEVEL_ERROR, name, NULL,
                      "needs %s, which stands beside it but isn't looked for there: link with -rpath '%s'",
                      name, own_token(it->object));
    else
        khub__finding(it->report, "needed", KHUB_CHECK_LEVEL_ERROR, name, NULL,
                      "needs %s%s%s%s, which neither is on every system nor stands beside it%s", name,
                      provider ? " (" : "", provider ? provider->words : "", provider ? ")" : "",
                      provider && it->variant ? ", nor goes with the build's name" : "");
}

/* 1: it is where the loader looks, within the build; -1: no memory. */
static int is_found(const khub__case *it, const char *name, const char *plain)
{
    static const char own[] = "@loader_path/", any[] = "@rpath/";
    if (it->object->format == KHUB__PE) return is_beside(it, name);
    if (starts(name, own)) return is_beside(it, name + sizeof(own) - 1);
    if (strchr(name, '/') && !starts(name, any)) return 0;
    return each_place(it, take_to_find, (void *)(uintptr_t)plain);
}

static void judge_library(const khub__case *it, const char *name)
{
    const khub__provider *provider = khub__needed_provider(it->object, name);
    int is_python = provider && !strcmp(provider->name, "python"),
        by_path = strchr(name, '/') && *name != '@';
    if (is_systems(it, name)) return;
    if (provider && !is_python && !by_path && khub__is_promised(it, provider->name)) return;
    const char *plain = starts(name, "@rpath/") ? name + strlen("@rpath/") : name;
    int found = is_found(it, name, plain), beside = found || strchr(plain, '/') ? 0 : is_beside(it, plain);
    if (found < 0 || beside < 0)
        it->report->failed = 1;
    else if (!found)
        refuse(it, name, provider, beside);
}

void khub__check_needed(const khub__case *it)
{
    const khub__names *needed = &it->object->needed;
    khub__finding_of(it->report, "needed", KHUB_CHECK_LEVEL_NOTE, NULL, needed, "needs");
    for (size_t i = 0; i < needed->count; i++)
        judge_library(it, needed->items[i]);
    judge_places(it);
    if (it->object->old_path)
        khub__finding(it->report, "rpath", KHUB_CHECK_LEVEL_WARNING, NULL, NULL,
                      "has DT_RPATH, which comes before LD_LIBRARY_PATH: link with --enable-new-dtags for "
                      "DT_RUNPATH");
}
