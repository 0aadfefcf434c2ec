/* What khub_function_call and khub_slot_call add to a call through a pointer: at most 2 ns is what
 * <khub/function.h> is built for, at most 3 ns what a filled slot may cost. And what a shadowed slot costs
 * beside the two functions that it runs and comparing what they wrote. */
#include "timing.h"

#include <khub/khub.h>
#include <khub/standard.h>

enum { ROUNDS = 1000, CALLS = 2000 };

/* One way of calling, all kinds in turn inside every round, so that a slow moment hits both. */
typedef struct contender {
    khub_function f;
    const khub_value *args;
    int32_t n;
    const khub_slot *slot; /* that f is in */
} contender;

static double by_pointer(const void *contestant)
{
    const contender *c = contestant;
    double start = seconds();
    khub_call_fn call = *(khub_call_fn volatile const *)&c->f.call;
    for (int i = 0; i < CALLS; i++) {
        khub_value result = khub_arg_none();
        if (call(NULL, c->args, c->n, &result) != 0) exit(1);
    }
    return (seconds() - start) * 1e9 / CALLS;
}

static double by_khub(const void *contestant)
{
    const contender *c = contestant;
    double start = seconds();
    for (int i = 0; i < CALLS; i++) {
        khub_value result;
        if (khub_function_call(&c->f, c->args, c->n, &result, NULL) != KHUB_OK) exit(1);
    }
    return (seconds() - start) * 1e9 / CALLS;
}

static double by_slot(const void *contestant)
{
    const contender *c = contestant;
    double start = seconds();
    for (int i = 0; i < CALLS; i++)
        if (khub_slot_call(c->slot, c->args, c->n, NULL) != KHUB_OK) exit(1);
    return (seconds() - start) * 1e9 / CALLS;
}

static void compare(const char *name, double (*way)(const void *), const contender *c)
{
    static double pointer[ROUNDS], khub[ROUNDS], more[ROUNDS];
    take_turns(pointer, khub, ROUNDS, by_pointer, way, c);
    for (int i = 0; i < ROUNDS; i++)
        more[i] = khub[i] - pointer[i];
    qsort(pointer, ROUNDS, sizeof(double), by_size);
    qsort(khub, ROUNDS, sizeof(double), by_size);
    qsort(more, ROUNDS, sizeof(double), by_size);
    printf("%-34s %9.2f %9.2f %9.2f %9.2f %11.2f %9.2f\n", name, pointer[0], pointer[ROUNDS / 2], khub[0],
           khub[ROUNDS / 2], khub[0] - pointer[0], more[ROUNDS / 2]);
}

/* A kernel that does nothing: what is left is the call. */
static int nothing(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self;
    (void)args;
    (void)result;
    return n < 0;
}

static int fail(const khub_error *err)
{
    fprintf(stderr, "call: %s\n", err->message);
    return 1;
}

/* A slot with the kernel in it, or `standard`. */
static khub_slot *slot_of(khub_layers *layers, const char *path, khub_function standard, khub_error *err)
{
    khub_slot *slot;
    int rc = khub_layers_add(layers, path, "ReLU", standard, NULL, &slot, err);
    return rc == KHUB_OK ? slot : NULL;
}

/* GeLU of so many rows of 384 by a kernel, by the standard function, by both as a shadow runs them. */
enum { WIDTH = 384, MOST_ROWS = 512, SHADOW_ROUNDS = 60 };

typedef struct shadowed {
    const khub_slot *kernel, *standard, *both;
    khub_tensor in, of_kernel, of_standard;
    int calls; /* in a row */
} shadowed;

static double by_slot_into(const shadowed *s, const khub_slot *slot, const khub_tensor *out)
{
    const khub_value args[] = {khub_arg_tensor(out), khub_arg_tensor(&s->in)};
    double start = seconds();
    for (int i = 0; i < s->calls; i++)
        if (khub_slot_call(slot, args, 2, NULL) != KHUB_OK) exit(1);
    return (seconds() - start) * 1e6 / s->calls;
}

static double by_comparing(const shadowed *s)
{
    double start = seconds();
    for (int i = 0; i < s->calls; i++) {
        khub_comparison c;
        if (khub_compare_tensors(&c, &s->of_kernel, &s->of_standard, NULL) != KHUB_OK) exit(1);
    }
    return (seconds() - start) * 1e6 / s->calls;
}

static double middle(double *t, int count)
{
    qsort(t, (size_t)count, sizeof(*t), by_size);
    return t[count / 2];
}

/* The four in turns, and what a shadow costs beside the three: the median of the differences, round by round.
 */
static void shadow(const shadowed *s, int64_t rows)
{
    static double t[5][SHADOW_ROUNDS];
    for (int i = -3; i < SHADOW_ROUNDS; i++) {
        int keep = i < 0 ? 0 : i;
        t[0][keep] = by_slot_into(s, s->kernel, &s->of_kernel);
        t[1][keep] = by_slot_into(s, s->standard, &s->of_standard);
        t[2][keep] = by_comparing(s);
        t[3][keep] = by_slot_into(s, s->both, &s->of_standard);
        t[4][keep] = t[3][keep] - t[0][keep] - t[1][keep] - t[2][keep];
    }
    printf("%8lld x %-10d", (long long)rows, WIDTH);
    for (int i = 0; i < 5; i++)
        printf(" %10.2f", middle(t[i], SHADOW_ROUNDS));
    printf("\n");
}

static void measure_shadows(khub_error *err)
{
    static float in[MOST_ROWS * WIDTH], of_kernel[MOST_ROWS * WIDTH], of_standard[MOST_ROWS * WIDTH];
    static const khub_slot_options of_f32 = {sizeof(of_f32), {KHUB_DTYPE_FLOAT, 32, 1}, NULL, NULL, 0};
    khub_layers *layers;
    khub_slot *kernel, *standard, *both;
    khub_function gelu;
    if (khub_standard(&gelu, "GeLU", err) != KHUB_OK || khub_layers_new(&layers, err) != KHUB_OK ||
        khub_layers_add(layers, "kernel", "GeLU", gelu, &of_f32, &kernel, err) != KHUB_OK ||
        khub_layers_add(layers, "both", "GeLU", gelu, &of_f32, &both, err) != KHUB_OK ||
        khub_kernelize(layers, NULL, NULL, err) != KHUB_OK ||
        khub_layers_add(layers, "standard", "GeLU", gelu, &of_f32, &standard, err) != KHUB_OK ||
        khub_layers_shadow(layers, "both", 1, err) != KHUB_OK)
        exit(fail(err));
    for (int i = 0; i < MOST_ROWS * WIDTH; i++)
        in[i] = (float)(i * 37 % 601 - 300) / 100;
    printf(
        "\nGeLU; microseconds a call, medians of %d rounds, all in turn\n\n%-21s %10s %10s %10s %10s %10s\n",
        SHADOW_ROUNDS, "", "kernel", "standard", "comparing", "shadowed", "the rest");
    for (int64_t rows = 1; rows <= MOST_ROWS; rows *= 8) {
        const int64_t shape[] = {rows, WIDTH};
        const shadowed s = {kernel,
                            standard,
                            both,
                            khub_tensor_f32(in, 2, shape),
                            khub_tensor_f32(of_kernel, 2, shape),
                            khub_tensor_f32(of_standard, 2, shape),
                            (int)(2048 / rows) + 1};
        shadow(&s, rows);
    }
    khub_layers_free(layers);
}

int main(void)
{
    khub_error err = {0};
    khub_layers *layers;
    khub_kernel *kernel;
    khub_function relu;
    if (khub_get(&kernel, "khub/activation", NULL, &err) != KHUB_OK) return fail(&err);
    if (khub_kernel_function(&relu, kernel, "relu", &err) != KHUB_OK) return fail(&err);
    float x[4] = {1, -2, 3, -4}, y[4];
    int64_t shape[] = {4};
    khub_tensor in = khub_tensor_f32(x, 1, shape), out = khub_tensor_f32(y, 1, shape);
    const khub_value tensors[] = {khub_arg_tensor(&out), khub_arg_tensor(&in)};
    khub_function empty = {nothing, NULL};

    if (khub_layers_new(&layers, &err) != KHUB_OK) return fail(&err);
    khub_slot *filled = slot_of(layers, "filled", empty, &err);
    if (!filled || khub_kernelize(layers, NULL, NULL, &err) != KHUB_OK) return fail(&err);
    khub_slot *plain =
        slot_of(layers, "plain", empty, &err); /* after the others were filled: it stays empty */
    if (!plain) return fail(&err);
    const contender of_empty = {empty, tensors, 2, plain}, of_relu = {relu, tensors, 2, filled};

    printf("%d rounds of %d calls, each way in turn; nanoseconds a call\n\n", ROUNDS, CALLS);
    printf("%-34s %19s %19s %21s\n", "", "through a pointer", "through khub", "khub adds");
    printf("%-34s %9s %9s %9s %9s %11s %9s\n", "", "best", "median", "best", "median", "best", "median");
    compare("khub_function_call: does nothing", by_khub, &of_empty);
    compare("khub_function_call: relu of 4", by_khub, &of_relu);
    compare("khub_slot_call: does nothing", by_slot, &of_empty);
    compare("khub_slot_call: relu of 4, filled", by_slot, &of_relu);
    khub_layers_enter();
    compare("the same, entered before", by_slot, &of_relu);
    khub_layers_leave();
    khub_layers_free(layers);
    khub_kernel_close(kernel);
    measure_shadows(&err);
    return 0;
}
