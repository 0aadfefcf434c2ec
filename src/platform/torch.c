#include "platform/torch.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "platform/reach.h"
#include "platform/stated.h"

#include <stdio.h>
#include <stdlib.h>

static const char library[] = "libtorch_cpu.so";

/* The first Torch whose C shim can call an operator by its name (aoti_torch_call_dispatcher). */
static const khub__version oldest = {2, 7, -1};

static const khub__torch unknown = {.info = {.name = "libtorch"},
                                    .version = KHUB__VERSION_UNKNOWN,
                                    .cxx11_abi = -1,
                                    .backend_version = KHUB__VERSION_UNKNOWN};

enum { MAX_IN_REACH = 6, MIB = 1 << 20, GIB = 1 << 30 };

/* A libtorch_cpu.so and how it was come upon. */
typedef struct candidate {
    const char *path, *how;
} candidate;

/* ---- what is missing, by the name of the package that has it ---- */

/* Of NVIDIA's packages the names end with CUDA's major version, those of the toolkit only up to 12. */
static const struct {
    const char *library, *package;
    int in_toolkit;
} packages[] = {
    {"libcudart.so", "nvidia-cuda-runtime", 1}, {"libcupti.so", "nvidia-cuda-cupti", 1},
    {"libnvrtc.so", "nvidia-cuda-nvrtc", 1},    {"libcublas.so", "nvidia-cublas", 1},
    {"libcublasLt.so", "nvidia-cublas", 1},     {"libcufft.so", "nvidia-cufft", 1},
    {"libcufile.so", "nvidia-cufile", 1},       {"libcurand.so", "nvidia-curand", 1},
    {"libcusolver.so", "nvidia-cusolver", 1},   {"libcusparse.so", "nvidia-cusparse", 1},
    {"libnvJitLink.so", "nvidia-nvjitlink", 1}, {"libnvToolsExt.so", "nvidia-nvtx", 1},
    {"libcudnn.so", "nvidia-cudnn", 0},         {"libcusparseLt.so", "nvidia-cusparselt", 0},
    {"libnccl.so", "nvidia-nccl", 0},           {"libnvshmem_host.so", "nvidia-nvshmem", 0},
};

static int is_called(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return !strncmp(name, prefix, n) && (!name[n] || name[n] == '.');
}

/* " (package nvidia-cuda-runtime)"; what no package is known for is Torch's own, or the system's. */
static void add_package(khub__text *to, const char *name, int cuda_major)
{
    static const char *const own[] = {"libc10", "libtorch", "libshm", "libgomp", "libgfortran"};
    for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++) {
        if (!is_called(name, packages[i].library)) continue;
        khub__text_addf(to, " (package %s", packages[i].package);
        if (cuda_major > 0 && (!packages[i].in_toolkit || cuda_major <= 12))
            khub__text_addf(to, "-cu%d", cuda_major);
        khub__text_add(to, ")");
        return;
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        if (strncmp(name, own[i], strlen(own[i])) != 0) continue;
        khub__text_add(to, " (Torch's own: it is only half there)");
        return;
    }
}

/* "needs libcudart.so.13 (package nvidia-cuda-runtime), which isn't in reach, libcupti.so.13 …"; NULL: no
 * memory. */
static const char *lacking(const khub__reach *reach, int cuda_major, khub__pool *pool)
{
    khub__text text = {0};
    size_t told = 0;
    for (size_t i = 1; i < reach->count; i++) {
        const khub__reached *file = &reach->files[i];
        if (!file->wrong) continue;
        khub__text_addf(&text, "%s%s", told++ ? ", " : "needs ", file->name);
        add_package(&text, file->name, cuda_major);
        if (file->path) khub__text_addf(&text, ": %s %s", file->path, file->wrong);
        if (!file->path) khub__text_addf(&text, ", which %s", file->wrong);
    }
    char *words = khub__text_take(&text);
    const char *copy = khub__pool_text(pool, words);
    if (!words) pool->failed = 1;
    khub__free(words);
    return copy;
}

/* ---- what it is ---- */

/* The Python package says it in version.py, an unpacked libtorch in build-version, both in their headers; in
 * a Conda environment the package stands in its site-packages, apart from the library. */
static const char *version_of(const char *dir, khub__pool *pool)
{
    const char *version = khub__stated_quoted(dir, "version.py", "__version__", pool);
    if (!version) version = khub__stated_word(dir, "build-version", pool);
    const char *site = version ? NULL : khub__site_packages(dir, pool);
    if (site) version = khub__stated_quoted(site, "torch/version.py", "__version__", pool);
    if (version) return version;
    return khub__stated_defines(dir, "include/torch/csrc/api/include/torch/version.h", "TORCH_VERSION", pool);
}

/* "cu128" of 2.10.0+cu128, "rocm64" of 2.10.0+rocm6.4; else version.py has it. */
static khub__version backend_version(const khub__backend *backend, const char *dir, const char *version,
                                     khub__pool *pool)
{
    static const char *const keys[][2] = {{"cuda", "cuda"}, {"rocm", "hip"}, {"xpu", "xpu"}};
    khub__version found = KHUB__VERSION_UNKNOWN;
    char name[32];
    size_t n = 0;
    const char *local = strchr(version, '+');
    for (local = local ? local + 1 : ""; *local && n < sizeof(name) - 1; local++)
        if (*local != '.') name[n++] = *local;
    name[n] = 0;
    if (khub__backend_parse(&found, name) == backend) return found;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        if (strcmp(backend->name, keys[i][0]) != 0) continue;
        const char *text = khub__stated_quoted(dir, "version.py", keys[i][1], pool);
        khub__version_parse(&found, text ? text : "");
    }
    return found;
}

/* The libraries beside libtorch_cpu.so tell what else it was built for. */
static void know_backend(khub__torch *out, const char *dir, khub__pool *pool)
{
    static const char *const files[][2] = {
        {"libtorch_cuda.so", "cuda"}, {"libtorch_hip.so", "rocm"}, {"libtorch_xpu.so", "xpu"}};
    const int beside = (int)(khub__path_name(out->info.path) - out->info.path);
    out->backend = khub__backend_find("cpu");
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        const char *path = khub__pool_textf(pool, "%.*s%s", beside, out->info.path, files[i][0]);
        if (!path || khub__file_kind(path) != KHUB__FILE_REGULAR) continue;
        out->backend = khub__backend_find(files[i][1]);
        out->backend_version = backend_version(out->backend, dir, out->info.version, pool);
        return;
    }
}

/* The names of libc10's symbols have the ABI that they were compiled with. */
static int abi_of(const khub__reach *reach)
{
    for (size_t i = 0; i < reach->count; i++) {
        const khub__reached *file = &reach->files[i];
        if (strcmp(file->name, "libc10.so") != 0 || !file->own) continue;
        if (khub__dynamic_has(&file->dynamic, file->path, "__cxx11")) return 1;
        return khub__dynamic_has(&file->dynamic, file->path, "_ZN3c10") ? 0 : -1;
    }
    return -1;
}

static int broken(khub__torch *out, const char *reason)
{
    out->info.presence = KHUB_BROKEN;
    out->info.reason = reason;
    out->version = unknown.version;
    out->cxx11_abi = unknown.cxx11_abi;
    return 0;
}

/* What it is, and what opening it would cost. */
static const char *remark(const khub__torch *torch, const khub__reach *reach, khub__pool *pool)
{
    static const char *const abis[] = {"C++ ABI unknown", "C++98 ABI", "C++11 ABI"}; /* of -1, 0, 1 */
    char version[KHUB__VERSION_TEXT], accelerator[64] = "";
    if (strcmp(torch->backend->name, "cpu") != 0)
        snprintf(accelerator, sizeof(accelerator), " and %s %s", torch->backend->name,
                 khub__version_text(torch->backend_version, version));
    return khub__pool_textf(pool,
                            "%s, for CPU%s; opening it for a kernel of the CPU takes %zu file%s of %.0f MiB",
                            abis[torch->cxx11_abi + 1], accelerator, reach->own_count,
                            reach->own_count == 1 ? "" : "s", (double)reach->own_bytes / MIB);
}

/* Whether khub can call it. What stands in the files is read in the order in which it can make the rest idle.
 */
static int judge(khub__torch *out, const khub__places *places, khub__pool *pool)
{
    char text[KHUB__VERSION_TEXT];
    khub__reach reach;
    khub__version version;
    const char *path = out->info.path, *dir = khub__above(path, 1, pool);
    const char *wrong = dir ? khub__not_a_library(path) : NULL;
    if (wrong) return broken(out, khub__pool_textf(pool, "%s %s", path, wrong));
    if (dir) out->info.version = version_of(dir, pool);
    if (!out->info.version)
        return broken(out, khub__pool_textf(pool,
                                            "%s: its version isn't known (no version.py, build-version or "
                                            "headers beside it)",
                                            path));
    khub__version_parse(&version, out->info.version);
    if (khub__version_compare(version, oldest) < 0)
        return broken(out, khub__pool_textf(pool,
                                            "%s is Torch %s, whose operators can't be called from C; %s or "
                                            "later is needed",
                                            path, out->info.version, khub__version_text(oldest, text)));
    know_backend(out, dir, pool);
    khub__reach_of(&reach, path, &places->loader, pool);
    if (pool->failed) return 0;
    if (reach.files[0].wrong) return broken(out, khub__pool_textf(pool, "%s %s", path, reach.files[0].wrong));
    if (reach.lacking) return broken(out, lacking(&reach, out->backend_version.major, pool));
    out->info.presence = KHUB_FOUND;
    out->version = version;
    out->cxx11_abi = abi_of(&reach);
    out->info.reason = remark(out, &reach, pool);
    return 1;
}

void khub__torch_check_backend(khub__torch *torch, const khub__backend *backend, const khub__places *places,
                               khub__pool *pool)
{
    khub__reach reach = {0};
    const char *cpu = torch->info.path;
    if (torch->info.presence != KHUB_FOUND || !backend || backend != torch->backend ||
        !strcmp(backend->name, "cpu"))
        return;
    const char *path = khub__pool_textf(pool, "%.*slibtorch.so", (int)(khub__path_name(cpu) - cpu), cpu);
    if (path) khub__reach_of(&reach, path, &places->loader, pool);
    if (pool->failed) return;
    if (!reach.lacking) {
        torch->info.reason =
            khub__pool_textf(pool, "%s, for one of %s %zu files of %.1f GiB", torch->info.reason,
                             backend->name, reach.own_count, (double)reach.own_bytes / GIB);
        return;
    }
    const char *lacks = reach.files[0].wrong ? khub__pool_textf(pool, "%s %s", path, reach.files[0].wrong)
                                             : lacking(&reach, torch->backend_version.major, pool);
    torch->info.reason = khub__pool_textf(pool, "%s; for %s it %s, so it is one for the CPU",
                                          torch->info.reason, backend->name, lacks);
    torch->backend = khub__backend_find("cpu");
    torch->backend_version = unknown.backend_version;
}

static int look_at(khub__torch *out, const candidate *of, const khub__places *places, khub__pool *pool)
{
    *out = unknown;
    out->info.path = of->path;
    out->info.how = of->how;
    return judge(out, places, pool);
}

/* ---- where it is ---- */

/* The directory without links, the file as it is called there: from where it stands the loader looks for what
 * it needs, and a file that is a link into a store has nothing beside it there. */
static const char *absolute(const char *path, khub__pool *pool)
{
    const char *dir = khub__above(path, 0, pool);
    char *real = dir ? khub__file_real(*dir ? dir : "/") : NULL; /* the C library's memory */
    const char *full = real ? khub__pool_textf(pool, "%s/%s", real, khub__path_name(path)) : path;
    free(real);
    return full;
}

typedef struct reachable {
    candidate list[MAX_IN_REACH];
    size_t count;
} reachable;

static void add(reachable *to, const char *path, const char *how, khub__pool *pool)
{
    path = path ? absolute(path, pool) : NULL;
    for (size_t i = 0; path && i < to->count; i++)
        if (!strcmp(to->list[i].path, path)) return;
    if (path && to->count < MAX_IN_REACH) to->list[to->count++] = (candidate){path, how};
}

static void add_if_there(reachable *to, const char *dir, const char *file, const char *how, khub__pool *pool)
{
    char path[4096];
    if (!dir || (size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path)) return;
    enum khub__file_kind kind = khub__file_kind(path);
    if (kind != KHUB__FILE_NONE && kind != KHUB__FILE_BROKEN) add(to, khub__pool_text(pool, path), how, pool);
}

static void look_around(reachable *to, const khub__places *places, khub__pool *pool)
{
    const char *paths[MAX_IN_REACH];
    add_if_there(to, places->site, "torch/lib/libtorch_cpu.so", "virtual environment", pool);
    add_if_there(to, places->beside, library, "beside libkhub", pool);
    size_t count = khub__loader_find(paths, MAX_IN_REACH, &places->loader, library, pool);
    for (size_t i = 0; i < count; i++)
        add(to, paths[i], "loader's path", pool);
}

/* The first that can be called, else the first; of the others it is said that they are there. */
static void choose(khub__torch *out, const reachable *all, const khub__places *places, khub__pool *pool)
{
    khub__torch found[MAX_IN_REACH];
    size_t taken = all->count;
    for (size_t i = 0; i < all->count; i++)
        if (look_at(&found[i], &all->list[i], places, pool) && taken == all->count) taken = i;
    if (taken == all->count) taken = 0;
    *out = found[taken];
    for (size_t i = 0; i < all->count; i++) {
        const khub_library_info *other = &found[i].info;
        int usable = other->presence == KHUB_FOUND;
        if (i == taken) continue;
        out->info.reason = khub__pool_textf(pool, "%s; not taken (%s): %s%s", out->info.reason, other->how,
                                            usable ? khub__pool_textf(pool, "%s, Torch ", other->path) : "",
                                            usable ? other->version : other->reason);
    }
}

static void find_in(khub__torch *out, const char *dir, const char *how, const khub__places *places,
                    khub__pool *pool)
{
    const char *path = khub__pool_textf(pool, "%s/lib/%s", dir, library);
    const candidate only = {path ? absolute(path, pool) : "", how};
    look_at(out, &only, places, pool);
}

void khub__torch_unknown(khub__torch *out)
{
    *out = unknown;
}

void khub__torch_of(khub__torch *out, const char *dir, const khub__backend *backend, khub__pool *pool)
{
    khub__places places;
    const char *loaded = khub__loaded_path(library, pool);
    if (loaded) loaded = absolute(loaded, pool);
    khub__places_open(&places, "", pool);
    find_in(out, dir, "as asked for", &places, pool);
    khub__torch_check_backend(out, backend, &places, pool);
    khub__places_close(&places);
    if (loaded && out->info.presence == KHUB_FOUND && strcmp(loaded, out->info.path) != 0)
        broken(out, khub__pool_textf(pool, "%s can't be opened: this process has another one, %s",
                                     out->info.path, loaded));
}

void khub__find_torch(khub__torch *out, const khub__places *places, khub__pool *pool)
{
    reachable all = {.count = 0};
    const char *loaded = khub__loaded_path(library, pool);
    if (!loaded && places->torch_dir) {
        find_in(out, places->torch_dir, "KHUB_TORCH_DIR", places, pool);
        return;
    }
    if (loaded)
        add(&all, loaded, "in this process", pool);
    else
        look_around(&all, places, pool);
    if (all.count) {
        choose(out, &all, places, pool);
        return;
    }
    *out = unknown;
    khub__library_absent(&out->info, library, "KHUB_TORCH_DIR", places, pool);
}
