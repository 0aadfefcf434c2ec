/* The libraries that a library needs: whether they are where it will be loaded, and where it looks for them.
 */
#include "publish/judge.h"

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
static void judge_place(khub_check_report *report, const char *place)
{
    size_t length = strlen(place);
    if (length == 0)
        khub__finding(report, "rpath", KHUB_CHECK_LEVEL_ERROR, "", NULL,
                      "an empty place in its search path means whatever directory the program runs in");
    else if (!own_directory(place, length))
        khub__finding(
            report, "rpath", KHUB_CHECK_LEVEL_ERROR, place, NULL,
            "looks for libraries in %s, a place of the machine it was built on; only $ORIGIN, its own "
            "directory, comes along",
            place);
    else if (leads_up(place, length))
        khub__finding(report, "rpath", KHUB_CHECK_LEVEL_ERROR, place, NULL,
                      "looks for libraries in %s, which leads out of the build", place);
}

/* Calls `take` with each place of the search paths, until it returns other than 0, which is returned. */
static int each_place(const khub__judging *j,
                      int (*take)(const khub__judging *, const char *, size_t, void *), void *user)
{
    const char *separators = j->object->format == KHUB__ELF ? ":" : "";
    for (size_t i = 0; i < j->object->paths.count; i++)
        for (const char *at = j->object->paths.items[i];; at++) {
            size_t length = strcspn(at, separators);
            int rc = take(j, at, length, user);
            if (rc) return rc;
            at += length;
            if (!*at) break;
        }
    return 0;
}

static int take_copy(const khub__judging *j, const char *place, size_t length, void *user)
{
    char *copy = khub__strndup(place, length);
    (void)j;
    if (!copy) return -1;
    khub__names *places = user;
    khub__names_add(places, copy);
    if (places->failed) khub__free(copy);
    return places->failed ? -1 : 0;
}

/* Each place once: linkers leave many empty ones behind. */
static void judge_places(const khub__judging *j)
{
    khub__names places = {0};
    if (each_place(j, take_copy, &places) != 0) j->report->failed = 1;
    for (size_t i = 0; i < places.count && !j->report->failed; i++) {
        size_t before = 0;
        while (strcmp(places.items[before], places.items[i]) != 0)
            before++;
        if (before == i) judge_place(j->report, places.items[i]);
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
static int take_to_find(const khub__judging *j, const char *place, size_t length, void *user)
{
    size_t token = own_directory(place, length);
    char *directory = token ? khub__path_parent(j->path) : NULL;
    int found = !token ? 0 : directory ? is_in(directory, place + token, length - token, user) : -1;
    khub__free(directory);
    return found;
}

/* 1: stands beside the library, whether it is looked for there or not; -1: no memory. */
static int is_beside(const khub__judging *j, const char *name)
{
    char *directory = khub__path_parent(j->path);
    int found = directory ? is_in(directory, "", 0, name) : -1;
    khub__free(directory);
    return found;
}

/* Is it said by the build's name that what `provider` names is there? `any`: no name, so anything may be. */
static int is_promised(const khub__judging *j, const char *provider)
{
    static const struct {
        const char *provider, *backend;
    } table[] = {{"nvidia-driver", "cuda"},
                 {"cuda", "cuda"},
                 {"rocm", "rocm"},
                 {"level-zero", "xpu"},
                 {"sycl", "xpu"}};
    const khub__variant_name *v = j->variant;
    if (!strcmp(provider, "tvm-ffi")) return !v || v->framework == KHUB__TVM_FFI;
    if (!strcmp(provider, "torch")) return !v || v->framework != KHUB__TVM_FFI;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(table[i].provider, provider))
            return !v || (v->backend && !strcmp(v->backend->name, table[i].backend));
    /* PyTorch brings its own OpenMP and BLAS */
    return v && v->framework != KHUB__TVM_FFI && (!strcmp(provider, "openmp") || !strcmp(provider, "mkl"));
}

static void refuse(const khub__judging *j, const char *name, const khub__provider *provider, int beside)
{
    if (strchr(name, '/'))
        khub__finding(j->report, "needed", KHUB_CHECK_LEVEL_ERROR, name, NULL,
                      "needs %s by its path, which is nowhere else", name);
    else if (beside)
        khub__finding(
            j->report, "needed", KHUB_CHECK_LEVEL_ERROR, name, NULL,
            "needs %s, which stands beside it but isn't looked for there: link with -rpath '$ORIGIN'", name);
    else if (provider && !strcmp(provider->name, "python"))
        khub__finding(j->report, "needed", KHUB_CHECK_LEVEL_ERROR, name, NULL,
                      "needs %s: a kernel must load into any Python, or none; don't link with it", name);
    else
        khub__finding(j->report, "needed", KHUB_CHECK_LEVEL_ERROR, name, NULL,
                      "needs %s%s%s%s, which neither is on every system nor stands beside it%s", name,
                      provider ? " (" : "", provider ? provider->words : "", provider ? ")" : "",
                      provider && j->variant ? ", nor goes with the build's name" : "");
}

static void judge_library(const khub__judging *j, const char *name)
{
    const khub__provider *provider = khub__library_provider(name);
    if (khub__manylinux_has(name) || (provider && is_promised(j, provider->name))) return;
    int found = strchr(name, '/') ? 0 : each_place(j, take_to_find, (void *)(uintptr_t)name);
    int beside = found || strchr(name, '/') ? 0 : is_beside(j, name);
    if (found < 0 || beside < 0)
        j->report->failed = 1;
    else if (!found)
        refuse(j, name, provider, beside);
}

void khub__judge_needed(const khub__judging *j)
{
    const khub__names *needed = &j->object->needed;
    khub__finding_of(j->report, "needed", KHUB_CHECK_LEVEL_NOTE, NULL, needed, "needs");
    for (size_t i = 0; i < needed->count && j->object->format == KHUB__ELF; i++)
        judge_library(j, needed->items[i]);
    judge_places(j);
    if (j->object->old_path)
        khub__finding(j->report, "rpath", KHUB_CHECK_LEVEL_WARNING, NULL, NULL,
                      "has DT_RPATH, which comes before LD_LIBRARY_PATH: link with --enable-new-dtags for "
                      "DT_RUNPATH");
}
