#include "platform/libraries.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TEXT_FILE = 1 << 20 };

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The file's text, or an empty one; freed with khub__bytes_free. */
static khub__bytes text_of(const char *path, khub__pool *pool)
{
    khub__bytes bytes;
    if (khub__file_read(&bytes, path, MAX_TEXT_FILE, NULL) == KHUB_E_NOMEM) pool->failed = 1;
    return bytes;
}

/* The names in a directory, none when it can't be listed; freed with khub__free. */
static char **names_in(const char *dir, size_t *count, khub__pool *pool)
{
    char **names;
    if (khub__dir_list(&names, count, dir, NULL) == KHUB_E_NOMEM) pool->failed = 1;
    return names;
}

/* VENV/lib/python3.X/site-packages for the highest X. */
static const char *site_packages(const char *venv, khub__pool *pool)
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
    if (places->virtual_env) places->site = site_packages(places->virtual_env, pool);
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
    char *real = realpath(path, NULL); /* the C library's memory */
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

/* The text after the last "NAME." of a file's name: "libcudart.so.12.8.90" has version 12.8.90. */
static const char *version_in_name(const char *path, const char *name, khub__pool *pool)
{
    const char *file = khub__path_name(path);
    size_t n = strlen(name);
    khub__version version;
    if (strncmp(file, name, n) != 0 || file[n] != '.') return NULL;
    return khub__version_parse(&version, file + n + 1) == 0 ? khub__pool_text(pool, file + n + 1) : NULL;
}

/* What stands between quotes after `key` in a text such as  __version__ = '2.10.0+cpu'. */
static const char *quoted_after(const char *text, const char *key, khub__pool *pool)
{
    khub__version version;
    for (const char *at = text ? strstr(text, key) : NULL; at; at = strstr(at + 1, key)) {
        const char *line_end = at + strcspn(at, "\n"), *start = at + strcspn(at, "'\"\n");
        const char *end = start < line_end ? start + 1 + strcspn(start + 1, "'\"\n") : start;
        if (start >= line_end || end - start > 60) continue;
        const char *copy = khub__pool_textf(pool, "%.*s", (int)(end - start - 1), start + 1);
        if (copy && khub__version_parse(&version, copy) == 0) return copy;
    }
    return NULL;
}

static const char *version_in_file(const char *dir, const char *file, const char *key, khub__pool *pool)
{
    const char *path = khub__pool_textf(pool, "%s/%s", dir, file);
    if (!path) return NULL;
    khub__bytes bytes = text_of(path, pool);
    const char *version = quoted_after(bytes.data, key, pool);
    khub__bytes_free(&bytes);
    return version;
}

/* The number after blanks; -1: none, or none of a version. */
static int number(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    return end == text || n > 99999 ? -1 : (int)n;
}

/* The three numbers that c_api.h defines. */
static const char *version_in_header(const char *dir, khub__pool *pool)
{
    static const char *const keys[3] = {"define TVM_FFI_VERSION_MAJOR", "define TVM_FFI_VERSION_MINOR",
                                        "define TVM_FFI_VERSION_PATCH"};
    const char *path = khub__pool_textf(pool, "%s/include/tvm/ffi/c_api.h", dir);
    if (!path) return NULL;
    khub__bytes bytes = text_of(path, pool);
    int parts[3], found = 0;
    for (int i = 0; i < 3; i++) {
        const char *at = bytes.data ? strstr(bytes.data, keys[i]) : NULL;
        parts[i] = at ? number(at + strlen(keys[i])) : -1;
        found += parts[i] >= 0;
    }
    khub__bytes_free(&bytes);
    return found == 3 ? khub__pool_textf(pool, "%d.%d.%d", parts[0], parts[1], parts[2]) : NULL;
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

/* The ancestor of a path, `up` folders above the file's own. */
static const char *above(const char *path, int up, khub__pool *pool)
{
    size_t n = strlen(path);
    for (int i = 0; i <= up; i++)
        while (n > 0 && path[--n] != '/') {}
    return khub__pool_textf(pool, "%.*s", (int)n, path);
}

/* A file's name carries the version of the library in it; else the headers of the package it is part of know
 * it exactly, else the package's own version is near enough. */
static const char *tvm_ffi_version(const char *path, khub__pool *pool)
{
    const char *version = version_in_name(path, "libtvm_ffi.so", pool);
    const char *package = version ? NULL : above(path, 1, pool); /* PACKAGE/lib/libtvm_ffi.so */
    if (!package) return version;
    version = version_in_header(package, pool);
    if (!version) version = version_in_file(package, "_version.py", "__version__", pool);
    const char *site = version ? NULL : above(path, 2, pool);
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

static void absent(khub_library_info *out, const char *file, const char *variable, const khub__places *places,
                   khub__pool *pool)
{
    const char *venv = places->virtual_env ? places->virtual_env : "none active";
    const char *loader = khub__loader_places(&places->loader, pool);
    out->presence = KHUB_ABSENT;
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
    if (!search_tvm_ffi(out, places, pool)) absent(out, "libtvm_ffi.so", "KHUB_TVM_FFI", places, pool);
    out->name = "libtvm_ffi";
    if (out->presence != KHUB_FOUND || !out->path) return;
    if (!out->version) out->version = tvm_ffi_version(out->path, pool);
    if (!out->version)
        out->reason =
            "its version isn't known (none in its name, no c_api.h or package beside it), so no tvm-ffi "
            "build fits";
}

static int search_torch(khub_library_info *out, const khub__places *places, khub__pool *pool)
{
    static const char file[] = "libtorch_cpu.so";
    if (places->torch_dir) {
        const char *path = khub__pool_textf(pool, "%s/lib/%s", places->torch_dir, file);
        return path && take_file(out, path, "KHUB_TORCH_DIR", pool);
    }
    if (places->site &&
        take_if_there(out, places->site, "torch/lib/libtorch_cpu.so", "virtual environment", pool))
        return 1;
    if (places->beside && take_if_there(out, places->beside, file, "beside libkhub", pool)) return 1;
    return take_from_loader(out, places, file, pool);
}

/* The package says it in version.py, an unpacked libtorch in build-version. */
static const char *torch_version(const char *dir, khub__pool *pool)
{
    const char *version = version_in_file(dir, "version.py", "__version__", pool);
    const char *path = version ? NULL : khub__pool_textf(pool, "%s/build-version", dir);
    khub__version parsed;
    if (!path) return version;
    khub__bytes bytes = text_of(path, pool);
    if (bytes.length && bytes.length < 60) {
        bytes.data[strcspn(bytes.data, " \r\n")] = 0;
        if (khub__version_parse(&parsed, bytes.data) == 0) version = khub__pool_text(pool, bytes.data);
    }
    khub__bytes_free(&bytes);
    return version;
}

/* Torch's own build description has the flag that its C++ was compiled with. */
static const char *torch_abi(const char *dir, khub__pool *pool)
{
    static const char flag[] = "_GLIBCXX_USE_CXX11_ABI=";
    const char *path = khub__pool_textf(pool, "%s/share/cmake/Torch/TorchConfig.cmake", dir);
    if (!path) return NULL;
    khub__bytes bytes = text_of(path, pool);
    const char *at = bytes.data ? strstr(bytes.data, flag) : NULL;
    char value = at ? at[sizeof(flag) - 1] : 0;
    khub__bytes_free(&bytes);
    return value == '1' ? "C++11 ABI" : value == '0' ? "C++98 ABI" : "C++ ABI unknown";
}

void khub__find_torch(khub_library_info *out, const khub__places *places, khub__pool *pool)
{
    memset(out, 0, sizeof(*out));
    if (!search_torch(out, places, pool)) absent(out, "libtorch_cpu.so", "KHUB_TORCH_DIR", places, pool);
    out->name = "libtorch";
    if (out->presence != KHUB_FOUND || !out->path) return;
    const char *dir = above(out->path, 1, pool);
    if (!dir) return;
    out->version = torch_version(dir, pool);
    const char *abi = torch_abi(dir, pool);
    out->reason = khub__pool_textf(pool, "%s; this version of khub can't call torch builds", abi ? abi : "");
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
    if (found && out->path) out->version = version_in_name(out->path, "libcudart.so", pool);
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
