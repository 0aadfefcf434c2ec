/* What adding 10,000 slots and filling them costs, with the built-in kernels by layer, and with 20 kernels
 * (copies of khub/activation) by patterns of the slots' paths; the goal is 5 ms for the filling, kernels
 * loaded before. Linear is left out: how long its weights take to be packed depends on their size. */
#include "timing.h"

#include <khub/khub.h>
#include <khub/standard.h>

#include <unistd.h>

enum { SLOTS = 10000, ROUNDS = 30, KERNELS = 20 };

static const char *const names[] = {"RMSNorm", "AddLayerNorm", "GeLU", "SiluAndMul", "Softmax", "Attention"};

static const khub_slot_options of_f32 = {sizeof(of_f32), {KHUB_DTYPE_FLOAT, 32, 1}, NULL, NULL, 0};

static void fail(const khub_error *err)
{
    fprintf(stderr, "kernelize: %s\n", err->message);
    exit(1);
}

/* A directory with 20 copies of a kernel; it is left behind for the system to clear. */
static char *copies_of(const khub_kernel *kernel)
{
    static char folder[] = "/tmp/khub-bench-XXXXXX", mapping[20000];
    char command[9000];
    if (!mkdtemp(folder)) exit(1);
    size_t at = (size_t)snprintf(mapping, sizeof(mapping), "{");
    for (int i = 0; i < KERNELS; i++) {
        snprintf(command, sizeof(command), "mkdir -p %s/k%d/build && cp -r %s %s/k%d/build/", folder, i,
                 khub_kernel_build(kernel), folder, i);
        if (system(command) != 0) exit(1);
        at += (size_t)snprintf(mapping + at, sizeof(mapping) - at, "%s\"GeLU(part%d.**)\":\"%s/k%d\"",
                               i ? "," : "", i, folder, i);
    }
    snprintf(mapping + at, sizeof(mapping) - at, "}");
    return mapping;
}

static void add_gelus(khub_layers *layers)
{
    khub_error err = {0};
    char path[80];
    khub_function standard;
    for (int i = 0; i < SLOTS; i++) {
        snprintf(path, sizeof(path), "part%d.encoder.layer.%d.intermediate.act_fn", i % KERNELS, i);
        if (khub_standard(&standard, "GeLU", &err) != KHUB_OK ||
            khub_layers_add(layers, path, "GeLU", standard, &of_f32, NULL, &err) != KHUB_OK)
            fail(&err);
    }
}

static void add_slots(khub_layers *layers)
{
    khub_error err = {0};
    char path[80];
    khub_function standard;
    for (int i = 0; i < SLOTS; i++) {
        const char *layer = names[i % (int)(sizeof(names) / sizeof(*names))];
        snprintf(path, sizeof(path), "model.encoder.layer.%d.attention.output.%s", i, layer);
        if (khub_standard(&standard, layer, &err) != KHUB_OK ||
            khub_layers_add(layers, path, layer, standard, &of_f32, NULL, &err) != KHUB_OK)
            fail(&err);
    }
}

static double ms_since(double start)
{
    return (seconds() - start) * 1e3;
}

static void print(const char *what, double *ms)
{
    qsort(ms, ROUNDS, sizeof(*ms), by_size);
    printf("%-32s %8.2f %8.2f\n", what, ms[0], ms[ROUNDS / 2]);
}

static void time_all(const char *title, void (*add_all)(khub_layers *), const khub_mapping *mapping)
{
    static double add[ROUNDS], first[ROUNDS], again[ROUNDS], undo[ROUNDS];
    khub_error err = {0};
    khub_kernelize_options options;
    KHUB_INIT(&options);
    options.mapping = mapping;
    for (int i = -1; i < ROUNDS; i++) { /* the first one loads */
        khub_layers *layers;
        khub_report *report;
        int keep = i < 0 ? 0 : i;
        if (khub_layers_new(&layers, &err) != KHUB_OK) fail(&err);
        double start = seconds();
        add_all(layers);
        add[keep] = ms_since(start);
        start = seconds();
        if (khub_kernelize(layers, &options, &report, &err) != KHUB_OK) fail(&err);
        first[keep] = ms_since(start);
        if (khub_report_filled(report) != SLOTS) exit(1);
        khub_report_free(report);
        start = seconds();
        if (khub_kernelize(layers, &options, NULL, &err) != KHUB_OK) fail(&err);
        again[keep] = ms_since(start);
        start = seconds();
        khub_standardize(layers);
        undo[keep] = ms_since(start);
        khub_layers_free(layers);
    }
    printf("%s\n", title);
    print("  khub_layers_add, all", add);
    print("  khub_kernelize, with a report", first);
    print("  khub_kernelize again, without", again);
    print("  khub_standardize", undo);
}

int main(void)
{
    khub_error err = {0};
    khub_kernel *kernel;
    khub_mapping *mapping;
    if (khub_get(&kernel, "khub/activation", NULL, &err) != KHUB_OK) fail(&err);
    const char *copies = copies_of(kernel);
    sleep(3); /* what was written a moment ago is looked at again, each time */
    printf("%d slots, %d rounds; milliseconds\n\n%-32s %8s %8s\n", SLOTS, ROUNDS, "", "best", "median");
    time_all("the built-in kernels, by layer", add_slots, NULL);
    if (khub_mapping_parse(&mapping, copies, NULL, &err) != KHUB_OK) fail(&err);
    time_all("20 kernels, by path", add_gelus, mapping);
    khub_mapping_free(mapping);
    khub_kernel_close(kernel);
    return 0;
}
