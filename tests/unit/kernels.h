/* The built-in kernels as tests see them: built libraries, opened once for each instruction set, called
 * through the one calling convention on tensors with guard bytes round every element. */
#ifndef UNIT_KERNELS_H
#define UNIT_KERNELS_H

#include "gpu.h"

#include <khub/function.h>

#include <tvm/ffi/c_api.h>

#include <dlfcn.h>
#include <glob.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- libraries ---- */

static const char *const all_isas[] = {"portable", "avx2", "avx512", "neon"};
enum { CPU_ISAS = 4, ISAS = CPU_ISAS + 1 };

/* The kernels for CUDA, compiled for this processor (kernels/common/cuda/emulated.h): where it is looked at
 * as one more instruction set. */
static const char emulated[] = "emulated";

/* One copy of a library in memory, which has decided for one instruction set. */
typedef struct library {
    void *handle;
    const char *isa;
} library;

static inline void *tvm_ffi(const char *symbol)
{
    static void *handle;
    char path[4096];
    snprintf(path, sizeof(path), "%s/lib/libtvm_ffi.so", getenv("KHUB_PREFIX"));
    if (!handle) handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    return dlsym(handle, symbol);
}

/* A copy of the file, so that the loader takes it for another library. */
static inline void *open_copy(const char *path)
{
    char copy[] = "/tmp/khub-kernel-XXXXXX", buffer[65536];
    int fd = mkstemp(copy);
    FILE *file = fopen(path, "rb");
    ck_assert(fd >= 0 && file != NULL);
    for (size_t n; (n = fread(buffer, 1, sizeof(buffer), file)) > 0;)
        ck_assert_int_eq(write(fd, buffer, n), (ssize_t)n);
    fclose(file);
    close(fd);
    tvm_ffi("TVMFFIGetVersion"); /* a kernel finds libtvm_ffi in the process */
    void *handle = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(handle != NULL, "%s: %s", path, dlerror());
    unlink(copy);
    return handle;
}

/* Opens the library of a built-in repository ("norm"), or "probe", for one instruction set. */
static inline library library_open(const char *name, const char *isa)
{
    char pattern[4096];
    glob_t found;
    if (strcmp(name, "probe") == 0)
        snprintf(pattern, sizeof(pattern), "%s/tests/kernel-probe.so", getenv("KHUB_BINARY"));
    else if (isa == emulated && (!gpu_asked() || gpu_is_host()))
        snprintf(pattern, sizeof(pattern), "%s/tests/emulated/%s.so", getenv("KHUB_BINARY"), name);
    else
        snprintf(pattern, sizeof(pattern), "%s/share/khub/kernels/khub/%s/build/*-%s-*/*.so",
                 getenv("KHUB_PREFIX"), name, isa == emulated ? "cu[0-9]*" : "cpu");
    ck_assert_msg(glob(pattern, 0, NULL, &found) == 0, "no %s", pattern);
    ck_assert_uint_eq(found.gl_pathc, 1);
    library l = {open_copy(found.gl_pathv[0]), isa};
    globfree(&found);
    return l;
}

static inline khub_function function_of(const library *l, const char *name)
{
    char symbol[256];
    snprintf(symbol, sizeof(symbol), "__tvm_ffi_%s", name);
    khub_function f = {0};
    *(void **)&f.call = dlsym(l->handle, symbol);
    ck_assert_msg(f.call != NULL, "no function %s", name);
    return f;
}

/* Says of all tensors on the CPU that they are on a GPU, for kernels that look for them there, or takes that
 * back. */
static inline void say_device(const khub_value *args, int32_t n, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < n; i++)
        if (args[i].type == KHUB_TYPE_TENSOR_VIEW && args[i].as.tensor->device.type == from)
            args[i].as.tensor->device.type = to;
}

static inline int call_on_gpu(khub_function f, const khub_value *args, int32_t n, khub_value *result)
{
    gpu_call call;
    khub_value moved[16];
    khub_tensor there[16];
    ck_assert_int_le(n, 16);
    if (!gpu_asked()) {
        say_device(args, n, KHUB_DEVICE_CPU, KHUB_DEVICE_CUDA);
        int rc = f.call(f.self, args, n, result);
        say_device(args, n, KHUB_DEVICE_CUDA, KHUB_DEVICE_CPU);
        return rc;
    }
    gpu_begin(&call, moved, there, args, n);
    say_device(moved, n, KHUB_DEVICE_CPU, KHUB_DEVICE_CUDA);
    int rc = f.call(f.self, moved, n, result);
    gpu_end(&call);
    return rc;
}

/* Calls; returns 0, or -1 with "KIND: MESSAGE" in `words`. */
static inline int call_kernel(const library *l, const char *name, const khub_value *args, int32_t n,
                              char words[1024])
{
    void (*move)(TVMFFIObjectHandle *);
    int (*release)(TVMFFIObjectHandle);
    *(void **)&move = tvm_ffi("TVMFFIErrorMoveFromRaised");
    *(void **)&release = tvm_ffi("TVMFFIObjectDecRef");
    if (l->isa)
        setenv("KHUB_KERNEL_ISA", l->isa, 1);
    else
        unsetenv("KHUB_KERNEL_ISA");
    khub_function f = function_of(l, name);
    khub_value result = khub_arg_none();
    *words = 0;
    int rc = l->isa == emulated ? call_on_gpu(f, args, n, &result) : f.call(f.self, args, n, &result);
    ck_assert_int_eq(result.type, KHUB_TYPE_NONE);
    if (rc == 0) return 0;
    TVMFFIObjectHandle object = NULL;
    move(&object);
    ck_assert_msg(object != NULL, "%s failed without an error", name);
    const TVMFFIErrorCell *cell = (const TVMFFIErrorCell *)((const char *)object + sizeof(TVMFFIObject));
    snprintf(words, 1024, "%.*s: %.*s", (int)cell->kind.size, cell->kind.data, (int)cell->message.size,
             cell->message.data);
    release(object);
    return -1;
}

#define ck_kernel_ok(library, name, ...)                                                                     \
    do {                                                                                                     \
        char ck_words[1024];                                                                                 \
        const khub_value ck_args[] = {__VA_ARGS__};                                                          \
        int ck_rc = call_kernel((library), (name), ck_args, (int32_t)(sizeof(ck_args) / sizeof(*ck_args)),   \
                                ck_words);                                                                   \
        ck_assert_msg(ck_rc == 0, "%s", ck_words);                                                           \
    } while (0)

#define ck_kernel_fails(words, library, name, ...)                                                           \
    do {                                                                                                     \
        char ck_words[1024];                                                                                 \
        const khub_value ck_args[] = {__VA_ARGS__};                                                          \
        int ck_rc = call_kernel((library), (name), ck_args, (int32_t)(sizeof(ck_args) / sizeof(*ck_args)),   \
                                ck_words);                                                                   \
        ck_assert_int_eq(ck_rc, -1);                                                                         \
        ck_assert_str_eq(ck_words, (words));                                                                 \
    } while (0)

/* How many instruction sets this processor has a path for, as the compiler sees it. */
static inline int isas_expected(void)
{
#if defined(__x86_64__)
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return 1 + avx2 + (avx2 && avx512);
#elif defined(__aarch64__)
    return 2;
#else
    return 1;
#endif
}

/* The instruction sets that run here, in `isas`; how many. portable is the first, and none is left out. */
static inline int isas_here(const char *isas[ISAS])
{
    int count = 0;
    for (int i = 0; i < CPU_ISAS; i++) {
        library l = library_open("activation", all_isas[i]);
        int64_t none = 0;
        khub_tensor t = khub_tensor_f32(NULL, 1, &none);
        const khub_value args[2] = {khub_arg_tensor(&t), khub_arg_tensor(&t)};
        char words[1024];
        if (call_kernel(&l, "relu", args, 2, words) == 0)
            isas[count++] = all_isas[i];
        else
            ck_assert_msg(strstr(words, "KHUB_KERNEL_ISA is") != NULL, "%s", words);
    }
    ck_assert_int_eq(count, isas_expected());
    ck_assert_str_eq(isas[0], "portable");
    return count;
}

/* And those of a repository that has loops for CUDA: emulated is the last. */
static inline int is_emulated(const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/emulated/%s.so", getenv("KHUB_BINARY"),
             name); /* built from the same list */
    return access(path, R_OK) == 0;
}
static inline int isas_of(const char *isas[ISAS], const char *name)
{
    int count = isas_here(isas);
    if (is_emulated(name)) isas[count++] = emulated;
    return count;
}

/* ---- numbers ---- */

static const khub_dtype f32 = {KHUB_DTYPE_FLOAT, 32, 1}, bf16 = {KHUB_DTYPE_BFLOAT, 16, 1},
                        f16 __attribute__((unused)) = {KHUB_DTYPE_FLOAT, 16, 1};

static uint64_t random_state = 1;
static inline uint32_t random_bits(void) /* Knuth's MMIX generator, the upper half */
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 32);
}
/* Roughly normal, of deviation 1. */
static inline double random_normal(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += random_bits() / 4294967296.0;
    return sum - 6;
}

static inline float float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static inline uint32_t bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

/* To nearest, ties to even, by scaling: what the kernels' integer arithmetic is checked against. A number of
 * `digits`, from 2^least on where it isn't subnormal, the largest being `most`. */
static inline double round_to(double v, int digits, int least, double most)
{
    if (v == 0 || isnan(v) || isinf(v)) return v;
    int exponent;
    frexp(v, &exponent);
    double unit = ldexp(1, (exponent <= least ? least + 1 : exponent) - digits),
           rounded = nearbyint(v / unit) * unit;
    return fabs(rounded) > most ? copysign(INFINITY, v) : rounded;
}
static inline double round_bf16(double v)
{
    return round_to(v, 8, -126, 0x1.fep127);
}
static inline double round_f16(double v)
{
    return round_to(v, 11, -14, 65504);
}

static inline int is_bf16(khub_dtype dtype)
{
    return dtype.code == KHUB_DTYPE_BFLOAT;
}

/* What rounding to 16 bits costs at most, relative to a number that isn't subnormal; 0: float32. */
static inline double stored_within(khub_dtype dtype)
{
    return dtype.bits == 32 ? 0 : is_bf16(dtype) ? 0x1p-8 : 0x1p-11;
}

/* ---- tensors ---- */

enum { GUARD = 64, FILL = 0xA5 };

/* A tensor in memory of its own, with gaps between rows; bytes that are no element's hold FILL. */
typedef struct guarded {
    khub_tensor t;
    int64_t shape[8], strides[8], count;
    unsigned char *base;
    size_t bytes;
} guarded;

/* Row-major with `gap` elements after each row (last axis), the first element `shift` bytes off 64. */
static inline guarded *guarded_new(khub_dtype dtype, int32_t ndim, const int64_t *shape, int64_t gap,
                                   size_t shift)
{
    guarded *g = calloc(1, sizeof(*g));
    int64_t element = dtype.bits / 8, elements = 1;
    g->count = 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        g->shape[i] = shape[i];
        g->strides[i] = elements;
        elements *= shape[i];
        g->count *= shape[i];
        if (i == ndim - 1) elements += gap;
    }
    g->bytes = (size_t)(elements * element) + 2 * GUARD + shift;
    void *base = NULL;
    ck_assert_int_eq(posix_memalign(&base, 64, g->bytes), 0);
    ck_assert_ptr_nonnull(base);
    memset(base, FILL, g->bytes);
    g->t = khub_tensor_over((unsigned char *)base + GUARD, dtype, ndim, g->shape);
    g->base = base;
    g->t.byte_offset = shift;
    g->t.strides = g->strides;
    return g;
}

static inline void guarded_free(guarded *g)
{
    if (!g) return;
    free(g->base);
    free(g);
}

/* The i-th element in row-major order. */
static inline unsigned char *element_at(const guarded *g, int64_t i)
{
    int64_t offset = 0;
    for (int32_t axis = g->t.ndim - 1; axis >= 0; axis--) {
        offset += i % g->shape[axis] * g->strides[axis];
        i /= g->shape[axis];
    }
    return g->base + GUARD + g->t.byte_offset + offset * (g->t.dtype.bits / 8);
}

/* Of a float16, by what its parts mean. */
static inline float float_of_f16(uint16_t half)
{
    int exponent = half >> 10 & 31, rest = half & 0x3ff;
    double size = exponent == 31 ? (rest ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + rest, exponent - 25)
                                 : ldexp(rest, -24);
    return (float)(half & 0x8000 ? -size : size);
}
/* And of a number that is one. */
static inline uint16_t f16_of_float(float v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    int exponent;
    if (isnan(v)) return sign | 0x7e00;
    if (isinf(v)) return sign | 0x7c00;
    double size = frexp(fabsf(v), &exponent);
    if (v == 0 || exponent < -13) return sign | (uint16_t)(fabs((double)v) * 0x1p24);
    return sign | (uint16_t)(((exponent + 14) << 10) + (int)(size * 2048) - 1024);
}

static inline float guarded_get(const guarded *g, int64_t i)
{
    uint16_t half;
    float f;
    if (g->t.dtype.bits == 32) {
        memcpy(&f, element_at(g, i), 4);
        return f;
    }
    memcpy(&half, element_at(g, i), 2);
    return is_bf16(g->t.dtype) ? float_of_bits((uint32_t)half << 16) : float_of_f16(half);
}

/* Rounds to the tensor's type. */
static inline void guarded_set(guarded *g, int64_t i, double v)
{
    khub_dtype dtype = g->t.dtype;
    float f = (float)(dtype.bits == 32 ? v : is_bf16(dtype) ? round_bf16(v) : round_f16(v));
    uint32_t bits = bits_of_float(f);
    uint16_t half = is_bf16(dtype) ? (uint16_t)(bits >> 16) : f16_of_float(f);
    if (is_bf16(dtype) && isnan(f)) half |= 0x40;
    if (dtype.bits == 32)
        memcpy(element_at(g, i), &f, 4);
    else
        memcpy(element_at(g, i), &half, 2);
}

static inline void guarded_fill(guarded *g, double (*value)(void))
{
    for (int64_t i = 0; i < g->count; i++)
        guarded_set(g, i, value());
}

/* Same elements; two NaN are the same. */
static inline int guarded_equal(const guarded *a, const guarded *b)
{
    ck_assert_int_eq(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        float x = guarded_get(a, i), y = guarded_get(b, i);
        if (bits_of_float(x) != bits_of_float(y) && !(isnan(x) && isnan(y))) return 0;
    }
    return 1;
}

/* Whether all bytes but the elements' are as they were. */
static inline int guards_hold(const guarded *g)
{
    size_t element = g->t.dtype.bits / 8;
    unsigned char *mine = calloc(1, g->bytes);
    for (int64_t i = 0; i < g->count; i++)
        memset(mine + (element_at(g, i) - g->base), 1, element);
    int hold = 1;
    for (size_t i = 0; i < g->bytes; i++)
        hold &= mine[i] || g->base[i] == FILL;
    free(mine);
    return hold;
}

#endif
