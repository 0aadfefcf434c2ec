#include "platform/libraries.h"

#include "base/error.h"
#include "base/memory.h"
#include "platform/stated.h"

#include <stdio.h>
#include <stdlib.h>

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The names in a directory, none when it can't be listed; freed with khub__free. */
static char **names_in(const char *dir, size_t *count, khub__pool *pool)
{
    char **names;
    if (khub__dir_list(&names, count, dir, NULL) == KHUB_E_NOMEM) pool->failed = 1;
    return names;
}

const char *khub__site_packages(const char *venv, khub__pool *pool)
{
    const char *lib = khub__pool_textf(pool, "%s/lib", venv), *best = NULL;
    size_t count = 0;
    int best_minor = -1;
    khub__version python;
    char **names = lib ? names_in(lib, &count, pool) : NULL;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], "python3.", 8) != 0 || khub__version_parse(&python, names[i] + 6) != 0 ||
            python.minor <= best_minor)
            continue;
        best = names[i];
        best_minor = python.minor;
    }
    const char *site = best ? khub__pool_textf(pool, "%s/%s/site-packages", lib, best) : NULL;
    khub__free(names);
    return site;
}

void khub__places_open(khub__places *places, const char *root, khub__pool *pool)
{
    memset(places, 0, sizeof(*places));
    khub__loader_open(&places->loader, root, getenv("LD_LIBRARY_PATH"));
    places->tvm_ffi = from_environment("KHUB_TVM_FFI");
    places->torch_dir = from_environment("KHUB_TORCH_DIR");
    places->virtual_env = from_environment("VIRTUAL_ENV");
    if (places->virtual_env) places->site = khub__site_packages(places->virtual_env, pool);
    places->beside = khub__library_dir();
    places->cuda_home = from_environment("CUDA_HOME");
    if (!places->cuda_home) places->cuda_home = from_environment("CUDA_PATH");
}

void khub__places_close(khub__places *places)
{
    khub__loader_close(&places->loader);
}

/* One way to come upon a library: KHUB_FOUND or KHUB_BROKEN ends the search. */
static int take_file(khub_library_info *out, const char *path, const char *how, khub__pool *pool)
{
    const char *wrong = khub__not_a_library(path);
    char *real = khub__file_real(path); /* the C library's memory */
    out->path = khub__pool_text(pool, real ? real : path);
    free(real);
    out->how = how;
    out->presence = wrong ? KHUB_BROKEN : KHUB_FOUND;
    out->reason = wrong ? khub__pool_textf(pool, "%s %s (found by: %s)", path, wrong, how) : NULL;
    return 1;
}

/* The same when nobody promised that the file is there. */
static int take_if_there(khub_library_info *out, const char *dir, const char *file, const char *how,
                         khub__pool *pool)
{
    const char *path = khub__pool_textf(pool, "%s/%s", dir, file);
    enum khub__file_kind kind = path ? khub__file_kind(path) : KHUB__FILE_NONE;
    return kind != KHUB__FILE_NONE && kind != KHUB__FILE_BROKEN && take_file(out, path, how, pool);
}

static int take_from_loader(khub_library_info *out, const khub__places *places, const char *name,
                            khub__pool *pool)
{
    const char *path;
    return khub__loader_find(&path, 1, &places->loader, name, pool) &&
           take_file(out, path, "loader's path", pool);
}

/* "0.1.15.post2" from SITE/apache_tvm_ffi-0.1.15.post2.dist-info. */
static const char *version_in_dist_info(const char *site, const char *prefix, khub__pool *pool)
{
    size_t count, n = strlen(prefix);
    const char *version = NULL;
    khub__version parsed;
    char **names = names_in(site, &count, pool);
    for (size_t i = 0; i < count && !version; i++) {
        const char *end = strstr(names[i], ".dist-info");
        if (!end || strncmp(names[i], prefix, n) != 0) continue;
        version = khub__pool_textf(pool, "%.*s", (int)(end - names[i] - (long)n), names[i] + n);
        if (version && khub__version_parse(&parsed, version) != 0) version = NULL;
    }
    khub__free(names);
    return version;
}

/* A file's name carries the version of the library in it; else the headers of the package it is part of know
 * it exactly, else the package's own version is near enough. */
static const char *tvm_ffi_version(const char *path, khub__pool *pool)
{
    const char *version = khub__stated_name(path, "libtvm_ffi.so", pool);
    const char *package = version ? NULL : khub__above(path, 1, pool); /* PACKAGE/lib/libtvm_ffi.so */
    if (!package) return version;
    version = khub__stated_defines(package, "include/tvm/ffi/c_api.h", "TVM_FFI_VERSION", pool);
    if (!version) version = khub__stated_quoted(package, "_version.py", "__version__", pool);
    const char *site = version ? NULL : khub__above(path, 2, pool);
    return site ? version_in_dist_info(site, "apache_tvm_ffi-", pool) : version;
}

/* The library is in this process: it can be asked. */
static const char *version_in_process(const char *path, khub__pool *pool)
{
    struct {
        uint32_t major, minor, patch;
    } v = {0, 0, 0}; /* TVMFFIVersion */
    union {
        void *object;
        void (*ask)(void *);
    } symbol = {khub__loaded_symbol(path, "TVMFFIGetVersion")};
    if (!symbol.object) return NULL;
    symbol.ask(&v);
    return khub__pool_textf(pool, "%u.%u.%u", v.major, v.minor, v.patch);
}

static int take_loaded(khub_library_info *out, khub__pool *pool)
{
    const char *path = khub__loaded_path("libtvm_ffi.so", pool);
    if (!path) return 0;
    *out = (khub_library_info){.presence = KHUB_FOUND, .path = path, .how = "in this process"};
    out->version = version_in_process(path, pool);
    return 1;
}

void khub__library_absent(khub_library_info *out, const char *file, const char *variable,
                          const khub__places *places, khub__pool *pool)
{
    const char *venv = places->virtual_env ? places->virtual_env : "none active";
    out->presence = KHUB_ABSENT;
    if (places->brief) return;
    const char *loader = khub__loader_places(&places->loader, pool);
    out->reason = khub__pool_textf(
        pool, "no %s: %s is not set; virtual environment: %s; beside libkhub: %s; loader's path: %s", file,
        variable, venv, places->beside ? places->beside : "unknown", loader ? loader : "");
}

static int search_tvm_ffi(khub_library_info *out, const khub__places *places, khub__pool *pool)
{
    static const char file[] = "libtvm_ffi.so";
    if (take_loaded(out, pool)) return 1;
    if (places->tvm_ffi) return take_file(out, places->tvm_ffi, "KHUB_TVM_FFI", pool);
    if (places->site &&
        take_if_there(out, places->site, "tvm_ffi/lib/libtvm_ffi.so", "virtual environment", pool))
        return 1;
    if (places->beside && take_if_there(out, places->beside, file, "beside libkhub", pool)) return 1;
    return take_from_loader(out, places, file, pool);
}

void khub__find_tvm_ffi(khub_library_info *out, const khub__places *places, khub__pool *pool)
{
    memset(out, 0, sizeof(*out));
    if (!search_tvm_ffi(out, places, pool))
        khub__library_absent(out, "libtvm_ffi.so", "KHUB_TVM_FFI", places, pool);
    out->name = "libtvm_ffi";
    if (out->presence != KHUB_FOUND || !out->path) return;
    if (!out->version) out->version = tvm_ffi_version(out->path, pool);
    if (!out->version)
        out->reason =
            "its version isn't known (none in its name, no c_api.h or package beside it), so no tvm-ffi "
            "build fits";
}

void khub__find_cudart(khub_library_info *out, const khub__places *places, khub__pool *pool)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                        "libcudart.so"};
    static const char *const in_site[] = {"nvidia/cu13/lib/libcudart.so.13",
                                          "nvidia/cuda_runtime/lib/libcudart.so.12"};
    const char *root = places->loader.root, *home = khub__pool_textf(pool, "%s/usr/local/cuda/lib64", root);
    int found = 0;
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; places->site && !found && i < sizeof(in_site) / sizeof(*in_site); i++)
        found = take_if_there(out, places->site, in_site[i], "virtual environment", pool);
    if (!found && places->cuda_home)
        found = take_if_there(out, places->cuda_home, "lib64/libcudart.so", "toolkit", pool);
    for (size_t i = 0; !found && i < sizeof(names) / sizeof(*names); i++)
        found = take_from_loader(out, places, names[i], pool);
    if (!found && home) found = take_if_there(out, home, "libcudart.so", "toolkit", pool);
    out->name = "libcudart";
    if (found && out->path) out->version = khub__stated_name(out->path, "libcudart.so", pool);
}

int khub__tvm_ffi_path(char **path, khub_error *err)
{
    khub__pool pool = {0};
    khub__places places;
    khub_library_info found;
    khub__places_open(&places, "", &pool);
    khub__find_tvm_ffi(&found, &places, &pool);
    khub__places_close(&places);
    *path = found.presence == KHUB_FOUND ? khub__strdup(found.path) : NULL;
    int rc = KHUB_OK;
    if (pool.failed || (found.presence == KHUB_FOUND && !*path))
        rc = khub__fail_memory(err, "looking for libtvm_ffi");
    else if (found.presence != KHUB_FOUND)
        rc = khub__fail(err, found.presence == KHUB_BROKEN ? KHUB_E_LOAD : KHUB_E_NOTFOUND, "libtvm_ffi: %s",
                        found.reason);
    if (rc != KHUB_OK) {
        khub__free(*path);
        *path = NULL;
    }
    khub__pool_free(&pool);
    return rc;
}
