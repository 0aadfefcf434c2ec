/* What adding 10,000 slots and filling them with the built-in kernels costs; the goal is 5 ms for the
 * filling. Linear is left out: how long its weights take to be packed depends on their size. */
#include "timing.h"

#include <khub/khub.h>
#include <khub/standard.h>

enum { SLOTS = 10000, ROUNDS = 30 };

static const char *const names[] = {"RMSNorm", "AddLayerNorm", "GeLU", "SiluAndMul", "Softmax", "Attention"};

static void fail(const khub_error *err)
{
    fprintf(stderr, "kernelize: %s\n", err->message);
    exit(1);
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
            khub_layers_add(layers, path, layer, standard, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), NULL, &err) !=
                KHUB_OK)
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

int main(void)
{
    static double add[ROUNDS], first[ROUNDS], again[ROUNDS], undo[ROUNDS];
    khub_error err = {0};
    for (int i = 0; i < ROUNDS; i++) {
        khub_layers *layers;
        khub_report *report;
        if (khub_layers_new(&layers, &err) != KHUB_OK) fail(&err);
        double start = seconds();
        add_slots(layers);
        add[i] = ms_since(start);
        start = seconds();
        if (khub_kernelize(layers, NULL, &report, &err) != KHUB_OK) fail(&err);
        first[i] = ms_since(start);
        if (khub_report_filled(report) != SLOTS) return 1;
        khub_report_free(report);
        start = seconds();
        if (khub_kernelize(layers, NULL, NULL, &err) != KHUB_OK) fail(&err);
        again[i] = ms_since(start);
        start = seconds();
        khub_standardize(layers);
        undo[i] = ms_since(start);
        khub_layers_free(layers);
    }
    printf("%d slots, %d rounds; milliseconds\n\n%-32s %8s %8s\n", SLOTS, ROUNDS, "", "best", "median");
    print("khub_layers_add, all", add);
    print("khub_kernelize", first);
    print("khub_kernelize, kernels in place", again);
    print("khub_standardize", undo);
    return 0;
}
