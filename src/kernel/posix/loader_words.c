#include "kernel/posix/loader_words.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/posix/elf.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>

static const char torch[] =
    "libtorch's C++ interface: a build for another version of PyTorch, or no PyTorch in this process";
static const char torch_c[] =
    "libtorch's stable C interface: PyTorch isn't in this process, or is an older one";
static const char python[] = "Python's C API: the library was built for Python and can't be used without it";
static const char nvidia[] = "the NVIDIA driver";
static const char cuda[] = "a CUDA library";
static const char rocm[] = "a ROCm library";
static const char tvm_ffi[] = "libtvm_ffi, a newer one than there is here, or there is none";
static const char openmp[] = "an OpenMP runtime";
static const char cxx[] = "libstdc++, a newer one than there is here";

/* By the start of the name, or by a piece of it; the first that fits. `upper`: a capital letter must follow.
 */
static const struct {
    const char *piece;
    int anywhere, upper;
    const char *words;
} symbols[] = {
    {"_Z", 0, 0, NULL}, /* mangled names are told apart by the namespaces below */
    {"aoti_torch_", 0, 0, torch_c},
    {"torch_", 0, 0, torch_c},
    {"Py", 0, 0, python},
    {"_Py", 0, 0, python},
    {"TVMFFI", 0, 0, tvm_ffi},
    {"cuda", 0, 1, cuda},
    {"__cuda", 0, 0, cuda},
    {"cublas", 0, 0, cuda},
    {"cudnn", 0, 0, cuda},
    {"cufft", 0, 0, cuda},
    {"curand", 0, 0, cuda},
    {"cusparse", 0, 0, cuda},
    {"nccl", 0, 1, cuda},
    {"nvrtc", 0, 1, cuda},
    {"cu", 0, 1, nvidia},
    {"hip", 0, 1, rocm},
    {"rocblas_", 0, 0, rocm},
    {"miopen", 0, 0, rocm},
    {"ze", 0, 1, "Level Zero, Intel's GPU loader"},
    {"GOMP_", 0, 0, openmp},
    {"omp_", 0, 0, openmp},
    {"__kmpc_", 0, 0, openmp},
    {"cblas_", 0, 0, "a BLAS"},
    {"mkl_", 0, 0, "Intel's MKL"},
    {"__asan_", 0, 0, "the address sanitizer: it is an instrumented build"},
    {"__ubsan_", 0, 0, "the undefined-behaviour sanitizer: it is an instrumented build"},
    {"__tsan_", 0, 0, "the thread sanitizer: it is an instrumented build"},
    {"__gcov", 0, 0, "gcov: it is a build that measures coverage"},
};
static const struct {
    const char *piece, *words;
} mangled[] = {
    {"N3c10", torch},    {"NK3c10", torch},      {"N2at", torch}, {"NK2at", torch}, {"N5torch", torch},
    {"NK5torch", torch}, {"N3tvm3ffi", tvm_ffi}, {"_ZNSt", cxx},  {"_ZNKSt", cxx},  {"_ZSt", cxx},
};

static const char *mangled_provider(const char *symbol)
{
    for (size_t i = 0; i < sizeof(mangled) / sizeof(*mangled); i++)
        if (strstr(symbol, mangled[i].piece)) return mangled[i].words;
    return NULL;
}

const char *khub__symbol_provider(const char *symbol)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        size_t n = strlen(symbols[i].piece);
        if (strncmp(symbol, symbols[i].piece, n) != 0) continue;
        if (!symbols[i].words) return mangled_provider(symbol);
        if (!symbols[i].upper || isupper((unsigned char)symbol[n])) return symbols[i].words;
    }
    return NULL;
}

const char *khub__library_provider(const char *library)
{
    static const struct {
        const char *start, *words;
    } known[] = {
        {"libcuda.so", nvidia},
        {"libcu", cuda},
        {"libnv", cuda},
        {"libnccl", cuda},
        {"libtorch", "PyTorch"},
        {"libc10", "PyTorch"},
        {"libpython", "Python: the library was built for it and can't be used without it"},
        {"libtvm_ffi", "tvm-ffi, which `khub platform` looks for"},
        {"libamdhip", rocm},
        {"libhip", rocm},
        {"libroc", rocm},
        {"libhsa", rocm},
        {"libze_", "Level Zero, Intel's GPU loader"},
        {"libsycl", "Intel's SYCL runtime"},
        {"libgomp", openmp},
        {"libomp", openmp},
        {"libiomp", openmp},
        {"libmkl", "Intel's MKL"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strncmp(library, known[i].start, strlen(known[i].start))) return known[i].words;
    return NULL;
}

/* A C++ name as written in the source, the caller's to free() (the C++ library allocated it); NULL: it isn't
 * one, or no C++ library is in the process. */
static char *demangle(const char *symbol)
{
    char *(*cxa_demangle)(const char *, char *, size_t *, int *);
    void *at = strncmp(symbol, "_Z", 2) == 0 ? dlsym(RTLD_DEFAULT, "__cxa_demangle") : NULL;
    if (!at) return NULL;
    memcpy(&cxa_demangle, &at, sizeof(at));
    int status;
    return cxa_demangle(symbol, NULL, NULL, &status);
}

/* "Ss" is std::string of before C++11, and stands for nothing else at a place where a type can stand. */
static int has_old_strings(const char *symbol, const char *plain)
{
    return plain ? strstr(plain, "std::string") != NULL
                 : strncmp(symbol, "_Z", 2) == 0 && strstr(symbol, "Ss") != NULL;
}

/* "OBJECT: undefined symbol: SYMBOL", perhaps with ", version V" or the object once more behind it. */
static int fail_symbol(khub_error *err, const char *path, const char *words, const char *symbol)
{
    size_t length = strcspn(symbol, ", \t\n");
    char *name = khub__strndup(symbol, length);
    char *object = khub__strndup(words, (size_t)(symbol - words) - strlen(": undefined symbol: "));
    if (!name || !object) {
        khub__free(name);
        khub__free(object);
        return khub__fail_memory(err, "explaining an undefined symbol");
    }
    char *plain = demangle(name);
    const char *provider = khub__symbol_provider(name);
    int sibling = strcmp(object, path) != 0;
    int rc = khub__fail(
        err, KHUB_E_LOAD, "%s: undefined symbol %s%s%s%s%s%s%s%s%s%s", path, name, plain ? " = " : "",
        plain ? plain : "", symbol[length] == ',' ? symbol + length : "", sibling ? ", needed by " : "",
        sibling ? object : "", provider ? "; it belongs to " : "", provider ? provider : "",
        has_old_strings(name, plain) ? "; it takes pre-C++11 strings (_GLIBCXX_USE_CXX11_ABI=0)" : "",
        provider ? "" : "; nothing in this process has it");
    free(plain);
    khub__free(name);
    khub__free(object);
    return rc;
}

/* 1 when the library at `path` itself needs `name`. */
static int needs(const char *path, const char *name)
{
    khub__elf elf;
    if (khub__elf_open(&elf, path, NULL) != KHUB_OK) return 0;
    const char *needed;
    int found = 0;
    for (size_t i = 0; !found && (needed = khub__elf_needed(&elf, i)) != NULL; i++)
        found = !strcmp(needed, name);
    khub__elf_close(&elf);
    return found;
}

/* Which library beside `path` needs `name`; the caller's. NULL: `path` itself, or it isn't known. */
static char *needing_sibling(const char *path, const char *name)
{
    khub__elf elf;
    if (needs(path, name) || khub__elf_open(&elf, path, NULL) != KHUB_OK) return NULL;
    char *dir = khub__path_parent(path), *found = NULL;
    const char *needed;
    for (size_t i = 0; dir && !found && (needed = khub__elf_needed(&elf, i)) != NULL; i++) {
        found = khub__path_join(dir, khub__path_name(needed));
        if (found && !needs(found, name)) {
            khub__free(found);
            found = NULL;
        }
    }
    khub__free(dir);
    khub__elf_close(&elf);
    return found;
}

/* The places where the loader looked for what the library at `path` needs. */
static void add_places(khub__text *text, const char *path)
{
    khub__elf elf;
    char *dir = khub__path_parent(path);
    const char *runpath = NULL, *environment = getenv("LD_LIBRARY_PATH");
    int open = khub__elf_open(&elf, path, NULL) == KHUB_OK;
    if (open) runpath = khub__elf_runpath(&elf);
    if (runpath && *runpath) khub__text_add(text, " the library's own path ");
    while (dir && runpath && *runpath) {
        const char *origin = strstr(runpath, "$ORIGIN"), *braces = strstr(runpath, "${ORIGIN}");
        const char *next = !origin || (braces && braces < origin) ? braces : origin;
        khub__text_add_bytes(text, runpath, next ? (size_t)(next - runpath) : strlen(runpath));
        if (next) khub__text_add(text, dir);
        runpath = next ? next + (next == braces ? strlen("${ORIGIN}") : strlen("$ORIGIN")) : NULL;
    }
    if (open && khub__elf_runpath(&elf)) khub__text_add(text, ",");
    if (environment && *environment) khub__text_addf(text, " LD_LIBRARY_PATH (%s),", environment);
    khub__text_add(text, " the system's library directories");
    if (open) khub__elf_close(&elf);
    khub__free(dir);
}

/* "NAME: cannot open shared object file: …" */
static int fail_library(khub_error *err, const char *path, const char *words, size_t length)
{
    char *name = khub__strndup(words, length);
    char *sibling = name ? needing_sibling(path, name) : NULL;
    khub__text places = {0};
    add_places(&places, sibling ? sibling : path);
    char *where = khub__text_take(&places);
    const char *provider = name ? khub__library_provider(name) : NULL;
    int rc = name && where
                 ? khub__fail(err, KHUB_E_LOAD, "%s: needs %s%s%s%s%s%s, which isn't there; looked in%s",
                              path, name, provider ? " (" : "", provider ? provider : "", provider ? ")" : "",
                              sibling ? " for " : "", sibling ? sibling : "", where)
                 : khub__fail_memory(err, "explaining a missing library");
    khub__free(where);
    khub__free(sibling);
    khub__free(name);
    return rc;
}

static int fail_in_plain_words(khub_error *err, const char *path, const char *words)
{
    static const char undefined[] = ": undefined symbol: ", missing[] = ": cannot open shared object file: ";
    const char *at = strstr(words, undefined);
    if (at) return fail_symbol(err, path, words, at + strlen(undefined));
    at = strstr(words, missing);
    if (at && strncmp(words, path, strlen(path)) != 0)
        return fail_library(err, path, words, (size_t)(at - words));
    return khub__fail(err, KHUB_E_LOAD, "%s: the loader says: %s", path, words);
}

int khub__loader_fail(khub_error *err, const char *path, const char *words)
{
    char *copy =
        khub__strdup(words ? words : "no reason given"); /* the next dlsym takes dlerror's text away */
    int rc = copy ? fail_in_plain_words(err, path, copy)
                  : khub__fail_memory(err, "explaining what the loader says");
    khub__free(copy);
    return rc;
}
