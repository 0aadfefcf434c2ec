#include "kernel/provider.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static const khub__provider torch = {
    "torch",
    "libtorch's C++ interface: a build for another version of PyTorch, or no PyTorch in this process"};
static const khub__provider torch_c = {
    "torch-stable", "libtorch's stable C interface: PyTorch isn't in this process, or is an older one"};
static const khub__provider any_torch = {"torch", "PyTorch"};
static const khub__provider python = {
    "python", "Python's C API: the library was built for Python and can't be used without it"};
static const khub__provider libpython = {"python",
                                         "Python: the library was built for it and can't be used without it"};
static const khub__provider nvidia = {"nvidia-driver", "the NVIDIA driver"};
static const khub__provider cuda = {"cuda", "a CUDA library"};
static const khub__provider rocm = {"rocm", "a ROCm library"};
static const khub__provider level_zero = {"level-zero", "Level Zero, Intel's GPU loader"};
static const khub__provider sycl = {"sycl", "Intel's SYCL runtime"};
static const khub__provider tvm_ffi = {"tvm-ffi",
                                       "libtvm_ffi, a newer one than there is here, or there is none"};
static const khub__provider libtvm_ffi = {"tvm-ffi", "tvm-ffi, which `khub platform` looks for"};
static const khub__provider openmp = {"openmp", "an OpenMP runtime"};
static const khub__provider blas = {"blas", "a BLAS"};
static const khub__provider mkl = {"mkl", "Intel's MKL"};
static const khub__provider cxx = {"libstdc++", "libstdc++, a newer one than there is here"};
static const khub__provider address = {"sanitizer", "the address sanitizer: it is an instrumented build"};
static const khub__provider undefined = {"sanitizer",
                                         "the undefined-behaviour sanitizer: it is an instrumented build"};
static const khub__provider thread = {"sanitizer", "the thread sanitizer: it is an instrumented build"};
static const khub__provider coverage = {"gcov", "gcov: it is a build that measures coverage"};

/* By the start of the name; the first that fits. `upper`: a capital letter must follow. */
static const struct {
    const char *start;
    int upper;
    const khub__provider *provider;
} symbols[] = {
    {"_Z", 0, NULL}, /* mangled names are told apart by the namespaces below */
    {"aoti_torch_", 0, &torch_c},
    {"torch_", 0, &torch_c},
    {"Py", 0, &python},
    {"_Py", 0, &python},
    {"TVMFFI", 0, &tvm_ffi},
    {"cuda", 1, &cuda},
    {"__cuda", 0, &cuda},
    {"cublas", 0, &cuda},
    {"cudnn", 0, &cuda},
    {"cufft", 0, &cuda},
    {"curand", 0, &cuda},
    {"cusparse", 0, &cuda},
    {"nccl", 1, &cuda},
    {"nvrtc", 1, &cuda},
    {"cu", 1, &nvidia},
    {"hip", 1, &rocm},
    {"__hip", 0, &rocm},
    {"rocblas_", 0, &rocm},
    {"miopen", 0, &rocm},
    {"ze", 1, &level_zero},
    {"GOMP_", 0, &openmp},
    {"omp_", 0, &openmp},
    {"__kmpc_", 0, &openmp},
    {"cblas_", 0, &blas},
    {"mkl_", 0, &mkl},
    {"__asan_", 0, &address},
    {"__ubsan_", 0, &undefined},
    {"__tsan_", 0, &thread},
    {"__gcov", 0, &coverage},
};

/* By a piece of the name. */
static const struct {
    const char *piece;
    const khub__provider *provider;
} mangled[] = {
    {"N5torch6stable", &torch_c},
    {"NK5torch6stable", &torch_c},
    {"N3c10", &torch},
    {"NK3c10", &torch},
    {"N2at", &torch},
    {"NK2at", &torch},
    {"N5torch", &torch},
    {"NK5torch", &torch},
    {"N3tvm3ffi", &tvm_ffi},
    {"_ZNSt", &cxx},
    {"_ZNKSt", &cxx},
    {"_ZSt", &cxx},
};

static const khub__provider *mangled_provider(const char *symbol)
{
    for (size_t i = 0; i < sizeof(mangled) / sizeof(*mangled); i++)
        if (strstr(symbol, mangled[i].piece)) return mangled[i].provider;
    return NULL;
}

const khub__provider *khub__symbol_provider(const char *symbol)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        size_t n = strlen(symbols[i].start);
        if (strncmp(symbol, symbols[i].start, n) != 0) continue;
        if (!symbols[i].provider) return mangled_provider(symbol);
        if (!symbols[i].upper || isupper((unsigned char)symbol[n])) return symbols[i].provider;
    }
    return NULL;
}

const khub__provider *khub__library_provider(const char *library)
{
    static const struct {
        const char *start;
        const khub__provider *provider;
    } known[] = {
        {"libcuda.so", &nvidia},   {"libcu", &cuda},
        {"libnv", &cuda},          {"libnccl", &cuda},
        {"libtorch", &any_torch},  {"libc10", &any_torch},
        {"libpython", &libpython}, {"libtvm_ffi", &libtvm_ffi},
        {"libamdhip", &rocm},      {"libhip", &rocm},
        {"libroc", &rocm},         {"libMIOpen", &rocm},
        {"libhsa", &rocm},         {"libze_", &level_zero},
        {"libsycl", &sycl},        {"libgomp", &openmp},
        {"libomp", &openmp},       {"libiomp", &openmp},
        {"libmkl", &mkl},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strncmp(library, known[i].start, strlen(known[i].start))) return known[i].provider;
    return NULL;
}
