/* What khub_function_call adds to libtorch's own C interface: the same operator of the same kernel
 * (tests/torch_kernels), the same tensors, called with the shim alone and by khub, in turns. Goal: at
 * most 1.15 times. KHUB_TORCH is the package, KHUB_BINARY the build. */
#include "timing.h"

#include <khub/khub.h>

#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>

enum { ROUNDS = 1000, CALLS = 500, NUMBERS = 8 };

typedef struct aten_tensor aten_tensor;

/* From torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h (2.11). */
static struct shim {
    int32_t (*call)(const char *name, const char *overload, uint64_t *stack, uint64_t version);
    int32_t (*from_blob)(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset, int32_t dtype, int32_t device, int32_t index, aten_tensor **out,
                         int32_t layout, const uint8_t *metadata, int64_t size,
                         void (*deleter)(void *, void *), void *context);
    int32_t (*get_data)(aten_tensor *, void **out);
    int32_t (*get_sizes)(aten_tensor *, int64_t **out);
    int32_t (*get_strides)(aten_tensor *, int64_t **out);
    int32_t (*get_ndim)(aten_tensor *, int64_t *out);
    int32_t (*get_dtype)(aten_tensor *, int32_t *out);
    int32_t (*delete)(aten_tensor *);
    void (*set_autograd)(bool on);
    int32_t (*float32)(void);
    int32_t (*cpu)(void);
} shim;

static const struct {
    const char *name;
    size_t at;
} entries[] = {
    {"torch_call_dispatcher", offsetof(struct shim, call)},
    {"torch_from_blob", offsetof(struct shim, from_blob)},
    {"aoti_torch_get_data_ptr", offsetof(struct shim, get_data)},
    {"aoti_torch_get_sizes", offsetof(struct shim, get_sizes)},
    {"aoti_torch_get_strides", offsetof(struct shim, get_strides)},
    {"aoti_torch_get_dim", offsetof(struct shim, get_ndim)},
    {"aoti_torch_get_dtype", offsetof(struct shim, get_dtype)},
    {"aoti_torch_delete_tensor_object", offsetof(struct shim, delete)},
    {"aoti_torch_grad_mode_set_enabled", offsetof(struct shim, set_autograd)},
    {"aoti_torch_dtype_float32", offsetof(struct shim, float32)},
    {"aoti_torch_device_type_cpu", offsetof(struct shim, cpu)},
};

static _Noreturn void die(const char *why)
{
    fprintf(stderr, "torch: %s\n", why);
    exit(1);
}

/* Of the libtorch that khub has opened. */
static void open_shim(const char *package)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/lib/libtorch_cpu.so", package);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) die("libtorch isn't open");
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        void *symbol = dlsym(handle, entries[i].name);
        if (!symbol) die(entries[i].name);
        memcpy((char *)&shim + entries[i].at, &symbol, sizeof(symbol));
    }
}

static float numbers[3][NUMBERS] = {{1, -2, 3, -4, 5, -6, 7, -8}, {8, 7, 6, 5, 4, 3, 2, 1}};
static int64_t shape[] = {1, NUMBERS};
static const int64_t strides[] = {NUMBERS, 1};

/* One operator: its name for the dispatcher, and how many of `numbers` it takes. */
typedef struct contender {
    const char *shown;
    const char *name;
    const char *overload;
    const char *function;
    int tensors; /* 0: it takes and gives an int */
    int keeps;   /* 1: its result is its last argument */
    int gives;   /* 1: a tensor */
    khub_function f;
} contender;

static uint64_t blob(float *data)
{
    aten_tensor *t;
    if (shim.from_blob(data, 2, shape, strides, 0, shim.float32(), shim.cpu(), -1, &t, 0, NULL, 0, NULL,
                       NULL) != 0)
        die("no tensor");
    return (uint64_t)(uintptr_t)t;
}

static volatile int64_t seen;

/* As much as a caller needs to use the result. */
static void look_at(aten_tensor *t)
{
    void *data;
    int64_t *sizes, *steps, ndim;
    int32_t dtype;
    if (shim.get_data(t, &data) || shim.get_sizes(t, &sizes) || shim.get_strides(t, &steps) ||
        shim.get_ndim(t, &ndim) || shim.get_dtype(t, &dtype))
        die("no result");
    seen += sizes[1] + steps[0] + ndim + dtype;
}

/* Autograd is off, as khub leaves it. */
static double by_shim(const void *contestant)
{
    const contender *c = contestant;
    double start = seconds();
    shim.set_autograd(false);
    for (int i = 0; i < CALLS; i++) {
        uint64_t stack[4];
        for (int t = 0; t < c->tensors; t++)
            stack[t] = blob(numbers[c->keeps && t == c->tensors - 1 ? 2 : t]);
        if (!c->tensors) stack[0] = (uint64_t)i;
        if (c->tensors == 2 && !c->keeps) stack[2] = 0x3ff0000000000000; /* axpy's alpha: 1.0 */
        if (shim.call(c->name, c->overload, stack, (uint64_t)0x020a << 48) != 0)
            die("the shim's call failed");
        if (c->gives) {
            look_at((aten_tensor *)(uintptr_t)stack[0]);
            shim.delete((aten_tensor *)(uintptr_t)stack[0]);
        }
    }
    return (seconds() - start) * 1e9 / CALLS;
}

static double by_khub(const void *contestant)
{
    const contender *c = contestant;
    khub_tensor tensors[3];
    khub_value args[3] = {khub_arg_none()}, result;
    khub_error err = {0};
    for (int t = 0; t < c->tensors; t++) {
        tensors[t] = khub_tensor_f32(numbers[c->keeps && t == c->tensors - 1 ? 2 : t], 2, shape);
        args[t] = khub_arg_tensor(&tensors[t]);
    }
    double start = seconds();
    for (int i = 0; i < CALLS; i++) {
        if (!c->tensors) args[0] = khub_arg_int(i);
        if (khub_function_call(&c->f, args, c->tensors ? c->tensors : 1, &result, &err) != KHUB_OK)
            die(err.message);
        if (c->gives) seen += khub_value_tensor(&result)->shape[1];
        khub_value_release(&result);
    }
    return (seconds() - start) * 1e9 / CALLS;
}

static void compare(const contender *c)
{
    static double shims[ROUNDS], khubs[ROUNDS], ratios[ROUNDS];
    take_turns(shims, khubs, ROUNDS, by_shim, by_khub, c);
    for (int i = 0; i < ROUNDS; i++)
        ratios[i] = khubs[i] / shims[i];
    qsort(shims, ROUNDS, sizeof(double), by_size);
    qsort(khubs, ROUNDS, sizeof(double), by_size);
    qsort(ratios, ROUNDS, sizeof(double), by_size);
    printf("%-34s %9.0f %9.0f %9.0f %9.0f %9.2f %9.2f\n", c->shown, shims[0], shims[ROUNDS / 2], khubs[0],
           khubs[ROUNDS / 2], khubs[0] / shims[0], ratios[ROUNDS / 2]);
}

static double held(void)
{
    struct mallinfo2 now = mallinfo2();
    return (double)(now.uordblks + now.hblkhd) / 1e3;
}

int main(void)
{
    const char *package = getenv("KHUB_TORCH"), *binary = getenv("KHUB_BINARY");
    static contender all[] = {
        {"twice.int: int -> int", "twice", "int", "twice.int", 0, 0, 0, {0}},
        {"nothing: Tensor -> ()", "nothing", "", "nothing", 1, 0, 0, {0}},
        {"twice.out: Tensor, Tensor! -> it", "twice", "out", "twice.out", 2, 1, 1, {0}},
        {"twice: Tensor -> Tensor", "twice", "", "twice", 1, 0, 1, {0}},
        {"axpy: Tensor, Tensor -> Tensor", "axpy", "", "axpy", 2, 0, 1, {0}},
    };
    char path[4096], name[64];
    khub_error err = {0};
    khub_kernel *kernel;
    double before = 0;
    if (!package || !binary) {
        puts("not measured: KHUB_TORCH and KHUB_BINARY don't say where Torch and its kernels are (./dev "
             "test installs and builds them)");
        return 0;
    }
    setenv("KHUB_TORCH_DIR", package, 1);
    snprintf(path, sizeof(path), "%s/tests/torch/repos/stable", binary);
    if (khub_get(&kernel, path, NULL, &err) != KHUB_OK) die(err.message);
    open_shim(package);
    printf("%d rounds of %d calls on (1, %d) float32, each way in turn; nanoseconds a call\n\n", ROUNDS,
           CALLS, NUMBERS);
    printf("%-34s %19s %19s %19s\n", "", "by the shim alone", "through khub", "times");
    printf("%-34s %9s %9s %9s %9s %9s %9s\n", "", "best", "median", "best", "median", "best", "median");
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        snprintf(name, sizeof(name), "_stable_cpu_7357000::%s", all[i].name);
        all[i].name = name;
        if (khub_kernel_function(&all[i].f, kernel, all[i].function, &err) != KHUB_OK) die(err.message);
        compare(&all[i]);
        if (i == 0) before = held();
    }
    double calls = 2.0 * (ROUNDS + 10) * CALLS * (sizeof(all) / sizeof(*all) - 1);
    printf("\nthe heap grew by %.1f kB over %.1f million calls\n", held() - before, calls / 1e6);
    khub_kernel_close(kernel);
    return 0;
}
