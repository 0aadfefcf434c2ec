/* How far the one-argument functions of the built-in kernels are from exact, over every float32 whose result
 * says something: exp, tanh and erf
 * by the library that the tests have for it, activations by khub/activation. Beside double precision, whose
 * own error is 2^-29 of a unit here. One of them when its name is given.
 * And 1/√x, over every mantissa and both parities of the exponent, in
 * integers. */
#include "timing.h"

#include <khub/function.h>

#include <dlfcn.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>

typedef struct function {
    const char *library, *name;
    double (*exact)(double);
    float least, most; /* what is outside gives 0, infinity, 1 or x itself */
} function;

static double silu(double x)
{
    return x / (1 + exp(-x));
}
static double quick_gelu(double x)
{
    return x / (1 + exp(-1.702 * x));
}
static double gelu_tanh(double x)
{
    return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
static double gelu(double x)
{
    return x / 2 * erfc(x * -0.70710678118654752440);
}
static double relu(double x)
{
    return x > 0 ? x : 0;
}

static const char kernels[] = "%s/share/khub/kernels/khub/activation/build/*-cpu-*/*.so",
                  probe[] = "%s/tests/kernel-probe.so";
static const function functions[] = {
    {probe, "exp", exp, -105, 89},
    {probe, "tanh", tanh, -10, 10},
    {probe, "erf", erf, -5, 5},
    {kernels, "relu", relu, -1, 1},
    {kernels, "silu", silu, -112, 20},
    {kernels, "quick_gelu", quick_gelu, -66, 12},
    {kernels, "gelu_tanh", gelu_tanh, -11, 6},
    {kernels, "gelu", gelu, -15, 6},
};

/* What one thread found. */
typedef struct share {
    const function *f;
    khub_function call;
    uint32_t first, step; /* blocks */
    double worst, sum;
    float at;
    uint64_t count;
} share;

enum { BLOCK = 1 << 12, BLOCKS = 1 << 20, THREADS = 2 };

static double ulps(float got, double exact)
{
    int exponent;
    if (isnan(exact)) return isnan(got) ? 0 : INFINITY;
    if (isinf((float)exact) || exact == 0) return got == (float)exact ? 0 : INFINITY;
    frexp(exact, &exponent);
    return fabs(got - exact) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static void look(share *s, const float *x, const float *out, int step)
{
    for (int i = 0; i < BLOCK; i += step) {
        double off = ulps(out[i], s->f->exact(x[i]));
        s->sum += off, s->count++;
        if (off > s->worst) s->worst = off, s->at = x[i];
    }
}

/* 1: all of a block from x on. Else one in 2^10: where the result is flat, or where it is 1 or x/2 but for
 * less than half a unit, in every binade alike. */
static int step_of(const function *f, float x)
{
    return x >= f->least && x <= f->most && fabsf(x) >= 0x1p-32f ? 1 : 1 << 10;
}

static void *work(void *user)
{
    share *s = user;
    static _Thread_local float x[BLOCK], out[BLOCK];
    int64_t n = BLOCK;
    khub_tensor in = khub_tensor_f32(x, 1, &n), to = khub_tensor_f32(out, 1, &n);
    const khub_value args[2] = {khub_arg_tensor(&to), khub_arg_tensor(&in)};
    for (uint32_t block = s->first; block < BLOCKS; block += s->step) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            uint32_t bits = block * BLOCK + i;
            memcpy(x + i, &bits, 4);
        }
        khub_value result = khub_arg_none();
        if (s->call.call(s->call.self, args, 2, &result)) s->worst = INFINITY;
        look(s, x, out, step_of(s->f, x[0]));
    }
    return NULL;
}

static void *open_library(const char *pattern)
{
    char path[4096];
    glob_t found;
    snprintf(path, sizeof(path), pattern, getenv(pattern == probe ? "KHUB_BINARY" : "KHUB_PREFIX"));
    if (glob(path, 0, NULL, &found) != 0) return NULL;
    void *handle = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return handle;
}

static void measure_function(const function *f)
{
    share shares[THREADS];
    pthread_t threads[THREADS];
    char symbol[64];
    void *library = open_library(f->library);
    double start = seconds(), worst = 0, sum = 0, count = 0;
    float at = 0;
    snprintf(symbol, sizeof(symbol), "__tvm_ffi_%s", f->name);
    khub_function call = {0};
    if (library) *(void **)&call.call = dlsym(library, symbol);
    if (!call.call) {
        printf("%-12s not found\n", f->name);
        return;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        shares[i] = (share){.f = f, .call = call, .first = i, .step = THREADS};
        pthread_create(&threads[i], NULL, work, &shares[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += shares[i].sum, count += (double)shares[i].count;
        if (shares[i].worst > worst) worst = shares[i].worst, at = shares[i].at;
    }
    printf("%-12s %8.4f ULP at %-16a mean %.4f of %.3g numbers, %.0f s\n", f->name, worst, at, sum / count,
           count, seconds() - start);
    fflush(stdout);
}

/* 1/√m for m = 2^23 … 2^25 - 1, which is every mantissa with an even and an odd exponent: r = r' 2^-k of 24
 * bits is the nearest when (2r' - 1)² m < 4 · 2^2k < (2r' + 1)² m. */
__extension__ typedef unsigned __int128 wide;
static void measure_root(void)
{
    uint64_t wrong = 0;
    for (uint64_t m = 1u << 23; m < 1u << 25; m++) {
        float r = (float)(1 / sqrt((double)m)); /* kernels/common/rms.h */
        int exponent;
        uint64_t digits = (uint64_t)ldexp(frexpf(r, &exponent), 24);
        int shift = 2 * (24 - exponent) + 2;
        wide one = (wide)1 << shift, low = 2 * digits - 1, high = 2 * digits + 1;
        wrong += !(low * low * m < one && one < high * high * m);
    }
    printf("1/sqrt       %llu of %u mantissas and parities aren't rounded to nearest\n",
           (unsigned long long)wrong, 3u << 23);
}

int main(int count, char **names)
{
    if (!dlopen(getenv("KHUB_TVM_FFI"), RTLD_NOW | RTLD_GLOBAL)) return 1;
    measure_root();
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        if (count < 2 || strcmp(names[1], functions[i].name) == 0) measure_function(&functions[i]);
    return 0;
}
