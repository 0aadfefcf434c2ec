/* khub bench: the table and the JSON. */
#include "bench.h"

#include "model.h"

#include <math.h>

double cli_bench_rate(double amount, const khub_timing *timing)
{
    return timing->samples && timing->median > 0 ? amount / timing->median : 0;
}

void cli_bench_machine(FILE *to, const khub_bench_machine *machine)
{
    if (machine->device) {
        cli_print(to, "%s", machine->device);
        return;
    }
    cli_text(to, machine->cpu ? machine->cpu : "unknown processor",
             strlen(machine->cpu ? machine->cpu : "unknown processor"));
    fprintf(to, ", %u thread%s", machine->threads, machine->threads == 1 ? "" : "s");
    if (machine->kernel_isa) cli_print(to, ", %s path", machine->kernel_isa);
}

const char *cli_bench_time(char text[16], double seconds)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s "}};
    size_t i = 0;
    while (i + 1 < sizeof(units) / sizeof(*units) && seconds >= 999.5 * units[i].unit)
        i++;
    double value = seconds / units[i].unit;
    int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(text, 16, "%6.*f %s", digits, value, units[i].name);
    return text;
}

const char *cli_bench_number(char text[16], double value)
{
    if (!(value > 0)) return "-";
    snprintf(text, 16, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
    return text;
}

static const char *percent(char text[16], double share)
{
    if (!(share > 0)) return "-";
    snprintf(text, 16, share < 0.01 ? "%.1f %%" : "%.0f %%", 100 * share);
    return text;
}

typedef struct widths {
    int layer, shape, standard, flops;
} widths;

static void at_least(int *width, const char *text)
{
    int length = text ? (int)strlen(text) : 0;
    if (*width < length) *width = length;
}

static const char *name_of(const khub_bench_case *c)
{
    return c->layer ? c->layer : c->function;
}

static widths measure(const khub_bench *bench)
{
    const khub_bench_case *c;
    widths w = {5, 5, 0, 0};
    for (size_t i = 0; (c = cli_model.khub_bench_at(bench, i)) != NULL; i++) {
        at_least(&w.layer, name_of(c));
        at_least(&w.shape, c->shape);
        w.standard |= c->standard.samples > 0;
        w.flops |= c->flops > 0;
    }
    return w;
}

static void print_head(FILE *to, const widths *w)
{
    fprintf(to, "%-*s  %-8s  %-*s  %9s  %9s  %6s  %6s  %7s", w->layer, "layer", "dtype", w->shape, "shape",
            "median", "best", "spread", "GB/s", "of copy");
    if (w->flops) fprintf(to, "  %7s  %7s", "GFLOP/s", "of peak");
    if (w->standard) fprintf(to, "  %9s  %s", "standard", "times as fast");
    fputc('\n', to);
}

static void print_case(FILE *to, const widths *w, const khub_bench_case *c)
{
    char a[16], b[16], dtype[32];
    const char *type = c->dtype.lanes ? khub_dtype_name(c->dtype, dtype) : "-";
    cli_line(to, "%-*s  %-8s  %-*s", w->layer, name_of(c), type, w->shape, c->shape);
    if (c->reason) {
        cli_print(to, "  not measured: %s\n", c->reason);
        return;
    }
    fprintf(to, "  %s", cli_bench_time(a, c->kernel.median));
    fprintf(to, "  %s", cli_bench_time(a, c->kernel.best));
    double spread = c->kernel.median > 0 ? (c->kernel.q3 - c->kernel.q1) / c->kernel.median : 0;
    fprintf(to, "  %4.1f %%  %6s  %7s", 100 * spread,
            cli_bench_number(a, cli_bench_rate(c->bytes, &c->kernel) / 1e9), percent(b, c->share));
    if (w->flops)
        fprintf(to, "  %7s  %7s", cli_bench_number(a, cli_bench_rate(c->flops, &c->kernel) / 1e9),
                percent(b, c->peak_share));
    if (c->standard.samples) {
        fprintf(to, "  %s", cli_bench_time(a, c->standard.median));
        fprintf(to, "  %5.2f (%.2f to %.2f)", c->ratio, c->ratio_q1, c->ratio_q3);
    }
    fputc('\n', to);
}

void cli_bench_table(FILE *to, const khub_bench *bench)
{
    const khub_bench_machine *m = cli_model.khub_bench_machine_of(bench);
    const khub_bench_case *c;
    widths w = measure(bench);
    char cache[16], memory[16], peak[16];
    size_t samples = 0, outliers = 0;
    cli_line(to, "%s (%s) on ", m->kernel, m->variant);
    cli_bench_machine(to, m);
    fprintf(to,
            "\ncopies %.0f KiB at %s GB/s, %.0f MiB at %s GB/s; multiplies and adds float32 at %s GFLOP/s "
            "(%s)\n\n",
            256.0 * m->threads, cli_bench_number(cache, m->copy_cache / 1e9),
            (double)m->memory_bytes / (1 << 20), cli_bench_number(memory, m->copy_memory / 1e9),
            cli_bench_number(peak, m->fma_flops / 1e9), m->fma_isa);
    print_head(to, &w);
    for (size_t i = 0; (c = cli_model.khub_bench_at(bench, i)) != NULL; i++) {
        print_case(to, &w, c);
        samples += c->kernel.samples + c->standard.samples;
        outliers += c->kernel.outliers + c->standard.outliers;
    }
    fprintf(to,
            "\nspread: the middle half of the samples, in parts of the median; of copy: of what this machine "
            "copies of as "
            "many bytes.\n%zu of %zu samples are outliers\n",
            outliers, samples);
}

/* ", "NAME": NUMBER", null for what is unknown. */
static void json_number(FILE *to, const char *name, double value, int known)
{
    fprintf(to, ", \"%s\": ", name);
    cli_json_number(to, known ? value : NAN, 9);
}

static void json_text(FILE *to, const char *name, const char *text)
{
    fprintf(to, ", \"%s\": ", name);
    cli_json_text(to, text);
}

static void json_timing(FILE *to, const char *name, const khub_timing *t)
{
    fprintf(to, ", \"%s\": ", name);
    if (!t->samples) {
        fputs("null", to);
        return;
    }
    fprintf(to, "{\"median\": %.9g, \"best\": %.9g, \"q1\": %.9g, \"q3\": %.9g", t->median, t->best, t->q1,
            t->q3);
    fprintf(to, ", \"samples\": %zu, \"outliers\": %zu, \"calls\": %llu}", t->samples, t->outliers,
            (unsigned long long)t->calls);
}

static void json_case(FILE *to, const khub_bench_case *c, int first)
{
    char dtype[32];
    fprintf(to, "%s\n {\"layer\": ", first ? "" : ",");
    cli_json_text(to, c->layer);
    json_text(to, "function", c->function);
    json_text(to, "dtype", c->dtype.lanes ? khub_dtype_name(c->dtype, dtype) : NULL);
    json_text(to, "shape", c->shape);
    json_text(to, "reason", c->reason);
    json_number(to, "bytes", c->bytes, !c->reason);
    json_number(to, "flops", c->flops, c->flops > 0);
    json_timing(to, "kernel", &c->kernel);
    json_timing(to, "standard", &c->standard);
    if (c->standard.samples)
        fprintf(to, ", \"ratio\": {\"median\": %.9g, \"q1\": %.9g, \"q3\": %.9g}", c->ratio, c->ratio_q1,
                c->ratio_q3);
    else
        fputs(", \"ratio\": null", to);
    json_number(to, "bytes_per_second", cli_bench_rate(c->bytes, &c->kernel), c->kernel.median > 0);
    json_number(to, "flops_per_second", cli_bench_rate(c->flops, &c->kernel),
                c->kernel.median > 0 && c->flops > 0);
    json_number(to, "copy_bytes_per_second", c->copy, c->copy > 0);
    json_number(to, "copy_share", c->share, c->share > 0);
    json_number(to, "fma_share", c->peak_share, c->peak_share > 0);
    fputc('}', to);
}

void cli_bench_json(FILE *to, const khub_bench *bench)
{
    const khub_bench_machine *m = cli_model.khub_bench_machine_of(bench);
    const khub_bench_case *c;
    fputs("{\"kernel\": ", to);
    cli_json_text(to, m->kernel);
    json_text(to, "variant", m->variant);
    json_text(to, "isa", m->kernel_isa);
    fputs(", \"machine\": {\"cpu\": ", to);
    cli_json_text(to, m->cpu);
    json_text(to, "device", m->device);
    json_number(to, "threads", m->threads, 1);
    json_text(to, "fma_isa", m->fma_isa);
    json_number(to, "fma_flops", m->fma_flops, m->fma_flops > 0);
    json_number(to, "copy_cache", m->copy_cache, m->copy_cache > 0);
    json_number(to, "copy_memory", m->copy_memory, m->copy_memory > 0);
    fprintf(to, ", \"memory_bytes\": %llu}, \"cases\": [", (unsigned long long)m->memory_bytes);
    for (size_t i = 0; (c = cli_model.khub_bench_at(bench, i)) != NULL; i++)
        json_case(to, c, i == 0);
    fputs("]}\n", to);
}
