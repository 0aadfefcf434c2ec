/* khub compare: what a kernel does to the numbers. */
#include "hub.h"
#include "model.h"

#include <khub/compare.h>

#include <inttypes.h>
#include <stdlib.h>

static const char *verdict_word(khub_verdict verdict)
{
    return verdict == KHUB_VERDICT_YES ? "yes" : verdict == KHUB_VERDICT_NO ? "no" : "not tried";
}

/* "0.5", "1.27", "3e+06", "-" for nothing. */
static void ulp_text(char text[16], const khub_accuracy *a, double ulp)
{
    snprintf(text, 16, a->elements ? (ulp < 1e5 ? "%.3g" : "%.1e") : "-", ulp);
}

static void print_row(const khub_compare_row *row)
{
    char dtype[32], numbers[4][16], share[16] = "-";
    ulp_text(numbers[0], &row->kernel, row->kernel.worst);
    ulp_text(numbers[1], &row->kernel, row->kernel.mean);
    ulp_text(numbers[2], &row->other, row->other.worst);
    ulp_text(numbers[3], &row->other, row->other.mean);
    if (row->other.elements + row->other.unlike && row->elements)
        snprintf(share, sizeof(share), "%.2f %%", 100.0 * (double)row->identical / (double)row->elements);
    printf("  %-8s  %-10s %6" PRIu64 " %10" PRIu64 "  %9s %9s  %9s %9s  %9s",
           khub_dtype_name(row->dtype, dtype), row->values, row->cases, row->elements, numbers[0], numbers[1],
           numbers[2], numbers[3], share);
    if (row->kernel.unlike || row->other.unlike)
        printf("  %" PRIu64 " / %" PRIu64, row->kernel.unlike, row->other.unlike);
    putchar('\n');
}

static void print_table(const khub_compare_layer *layer)
{
    printf("  %-8s  %-10s %6s %10s  %9s %9s  %9s %9s  %9s  %s\n", "dtype", "values", "cases", "elements",
           "worst ULP", "mean",
           !strcmp(layer->other, "standard") || !strcmp(layer->other, "torch") ? layer->other : "other's",
           "mean", "same bits", "NaN, inf wrong");
    for (size_t i = 0; i < layer->row_count; i++)
        print_row(&layer->rows[i]);
}

static void print_findings(const khub_compare_layer *layer)
{
    for (int i = 0; i < KHUB_CHECKS; i++) {
        const khub_finding *f = &layer->findings[i];
        if (f->verdict != KHUB_VERDICT_NO) continue;
        cli_line(stdout, "  %s: %" PRIu64 " of %" PRIu64 "; first in %s: %s\n",
                 cli_model.khub_check_name((khub_check)i), f->failed, f->tried, f->name, f->words);
    }
}

static void print_argmax(const khub_compare_layer *layer)
{
    uint64_t rows = 0, same = 0;
    for (size_t i = 0; i < layer->row_count; i++) {
        rows += layer->rows[i].rows;
        same += layer->rows[i].argmax_same;
    }
    if (rows)
        printf("  the largest of a row is at the same place in %" PRIu64 " of %" PRIu64 " rows\n", same,
               rows);
}

static void print_promise(const khub_compare_tolerance *t)
{
    if (t->ulp >= 0)
        cli_print(stdout, "  promised: %g ULP in %s\n", t->ulp, t->dtype);
    else
        cli_print(stdout, "  promised: %g of the results' size (root mean square) in %s\n", t->relative,
                  t->dtype);
}

/* Of normal numbers: beside huge ones no others would count. */
static void print_sizes(const khub_compare_layer *layer)
{
    char dtype[32];
    for (size_t i = 0; i < layer->row_count; i++) {
        const khub_compare_row *row = &layer->rows[i];
        if (strcmp(row->values, "normal") != 0 || !row->kernel.elements) continue;
        printf("  %s: normal results are %.3g of their size off (root mean square), cosine %.9g\n",
               khub_dtype_name(row->dtype, dtype), row->kernel.rms, row->kernel.cosine);
    }
}

static void print_verdict(const khub_compare_layer *layer)
{
    const khub_accuracy *w = &layer->worst;
    print_argmax(layer);
    printf("  bit-identical: %s; deterministic: %s%s; batch-invariant: %s\n",
           verdict_word(layer->findings[KHUB_CHECK_IDENTICAL].verdict), verdict_word(layer->is_deterministic),
           layer->deterministic ? " (promised)" : "",
           verdict_word(layer->findings[KHUB_CHECK_BATCHES].verdict));
    for (size_t i = 0; i < layer->tolerance_count; i++)
        print_promise(&layer->tolerances[i]);
    print_sizes(layer);
    if (w->elements)
        printf("  worst: %.4g ULP at %s[%" PRIu64 "] of --case %s: %.9g, exactly %.9g\n", w->worst, w->arg,
               w->index, w->name, w->got, w->exact);
    printf("  %s: %" PRIu64 " cases, %" PRIu64 " calls\n",
           layer->error[0] ? "not compared"
           : layer->broken ? "BROKEN"
           : layer->deterministic || layer->tolerance_count
               ? "fine"
               : "fine, as far as it can be where nothing is promised",
           layer->cases, layer->calls);
}

static void print_layer(const khub_compare_layer *layer)
{
    cli_line(stdout, "%s:%s", layer->kernel, layer->layer);
    if (layer->function[0]) cli_line(stdout, " (%s, %s)", layer->function, layer->variant);
    cli_line(stdout, " beside %s\n", layer->other);
    if (layer->error[0]) cli_print(stdout, "  %s\n", layer->error);
    if (layer->row_count) print_table(layer);
    print_findings(layer);
    print_verdict(layer);
}

/* A number that JSON has no word for becomes a text. */
static void json_number(const char *key, double x)
{
    printf(x - x == 0 ? ", \"%s\": %.17g" : ", \"%s\": \"%.17g\"", key, x);
}

static void json_text(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    cli_json_text(stdout, text);
}

static void json_accuracy(const char *key, const khub_accuracy *a)
{
    printf(", \"%s\": {\"elements\": %" PRIu64 ", \"unlike\": %" PRIu64, key, a->elements, a->unlike);
    if (a->elements) {
        json_number("worst", a->worst);
        json_number("mean", a->mean);
        json_number("absolute", a->absolute);
        json_number("relative", a->relative);
        json_number("rms", a->rms);
        json_number("cosine", a->cosine);
        json_text("case", a->name);
        json_text("arg", a->arg);
        printf(", \"index\": %" PRIu64, a->index);
        json_number("got", a->got);
        json_number("exact", a->exact);
    }
    putchar('}');
}

static void json_rows(const khub_compare_layer *layer)
{
    char dtype[32];
    fputs(", \"rows\": [", stdout);
    for (size_t i = 0; i < layer->row_count; i++) {
        const khub_compare_row *r = &layer->rows[i];
        printf("%s{\"dtype\": \"%s\", \"values\": \"%s\", \"cases\": %" PRIu64 ", \"elements\": %" PRIu64
               ", \"identical\": %" PRIu64 ", \"rows\": %" PRIu64 ", \"argmax_same\": %" PRIu64,
               i ? ",\n   " : "", khub_dtype_name(r->dtype, dtype), r->values, r->cases, r->elements,
               r->identical, r->rows, r->argmax_same);
        json_accuracy("kernel", &r->kernel);
        json_accuracy("other", &r->other);
        putchar('}');
    }
    putchar(']');
}

static const char *json_verdict(khub_verdict verdict)
{
    return verdict == KHUB_VERDICT_YES ? "true" : verdict == KHUB_VERDICT_NO ? "false" : "null";
}

static void json_findings(const khub_compare_layer *layer)
{
    fputs(", \"checks\": {", stdout);
    for (int i = 0; i < KHUB_CHECKS; i++) {
        const khub_finding *f = &layer->findings[i];
        printf("%s\"%s\": {\"kept\": %s, \"tried\": %" PRIu64 ", \"failed\": %" PRIu64, i ? ", " : "",
               cli_model.khub_check_name((khub_check)i), json_verdict(f->verdict), f->tried, f->failed);
        if (f->verdict == KHUB_VERDICT_NO) {
            json_text("case", f->name);
            json_text("what", f->words);
        }
        putchar('}');
    }
    putchar('}');
}

static void json_promises(const khub_compare_layer *layer)
{
    printf(", \"promises\": {\"deterministic\": %s, \"tolerance\": {",
           layer->deterministic ? "true" : "false");
    for (size_t i = 0; i < layer->tolerance_count; i++) {
        if (i) fputs(", ", stdout);
        cli_json_text(stdout, layer->tolerances[i].dtype);
        int in_ulp = layer->tolerances[i].ulp >= 0;
        printf(": {\"%s\": %g}", in_ulp ? "ulp" : "relative",
               in_ulp ? layer->tolerances[i].ulp : layer->tolerances[i].relative);
    }
    fputs("}}", stdout);
}

static void json_layer(const khub_compare_layer *layer)
{
    fputs("{\"kernel\": ", stdout);
    cli_json_text(stdout, layer->kernel);
    json_text("variant", layer->variant);
    json_text("layer", layer->layer);
    json_text("serves", layer->serves);
    json_text("function", layer->function);
    json_text("other", layer->other);
    json_text("error", layer->error[0] ? layer->error : NULL);
    printf(", \"broken\": %s, \"bit_identical\": %s, \"deterministic\": %s, \"batch_invariant\": %s, "
           "\"cases\": %" PRIu64 ", \"calls\": %" PRIu64 ", \"refused\": %" PRIu64,
           layer->broken ? "true" : "false", json_verdict(layer->findings[KHUB_CHECK_IDENTICAL].verdict),
           json_verdict(layer->is_deterministic), json_verdict(layer->findings[KHUB_CHECK_BATCHES].verdict),
           layer->cases, layer->calls, layer->refused);
    json_promises(layer);
    json_accuracy("worst", &layer->worst);
    json_findings(layer);
    json_rows(layer);
    putchar('}');
}

/* 1 when something isn't as it was promised, or couldn't be tried. */
static int print_report(const khub_compare_report *report, int json)
{
    const khub_compare_layer *layer;
    int status = EXIT_DONE;
    if (json) putchar('[');
    for (size_t i = 0; (layer = cli_model.khub_compare_at(report, i)) != NULL; i++) {
        if (i) fputs(json ? ",\n" : "\n", stdout);
        if (json)
            json_layer(layer);
        else
            print_layer(layer);
        if (layer->broken || layer->error[0]) status = EXIT_FAILED;
    }
    if (json) fputs("]\n", stdout);
    return status;
}

/* "out,x,eps" taken apart in place. */
static void parse_args(const char *names[17], char *text)
{
    size_t n = 0;
    for (char *at = text; at && n < 16; n++) {
        names[n] = at;
        at = strchr(at, ',');
        if (at) *at++ = 0;
    }
    names[n] = NULL;
}

static int run(int argc, char **argv)
{
    int json = 0;
    long threads = 0, timeout = 0, seed = 0;
    const char *args = NULL, *names[17];
    khub_compare_options how;
    khub_get_options get;
    khub_error err = {0};
    cli_hub hub;
    KHUB_INIT(&how);
    KHUB_INIT(&get);
    cli_hub_init(&hub);
    const cli_option options[] = {{"--json", CLI_FLAG, &json},
                                  {"--dtype", CLI_TEXT, &how.dtype},
                                  {"--case", CLI_TEXT, &how.case_name},
                                  {"--seed", CLI_NUMBER, &seed},
                                  {"--layer", CLI_TEXT, &how.layer},
                                  {"--args", CLI_TEXT, &args},
                                  {"--threads", CLI_NUMBER, &threads},
                                  {"--standard", CLI_TEXT, &how.standard},
                                  {"--timeout", CLI_NUMBER, &timeout},
                                  {"--save", CLI_TEXT, &how.save},
                                  {"--device", CLI_TEXT, &how.device},
                                  {"--variant", CLI_TEXT, &get.variant},
                                  {"--torch", CLI_TEXT, &get.torch},
                                  {"--no-torch", CLI_FLAG, &get.no_torch},
                                  CLI_HUB_OPTIONS(hub)};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    if (n < 1 || n > 2)
        return cli_usage("compare", n < 1 ? "which kernel?" : "two kernels are compared, \"%s\" is a third",
                         argv[3]);
    if (args && !how.layer) return cli_usage("compare", "--args goes with --layer");
    if (how.layer && !strchr(argv[1], ':'))
        return cli_usage("compare", "--layer goes with REPO:FUNCTION, and \"%s\" names no function", argv[1]);
    const char *wrong = how.save ? cli_not_a_directory(how.save) : NULL;
    if (wrong) {
        cli_print(stderr, "khub: --save %s: %s\n", how.save, wrong);
        return EXIT_FAILED;
    }
    if (args) {
        parse_args(names, (char *)(uintptr_t)args);
        how.args = names;
    }
    how.seed = (uint64_t)seed;
    how.threads = (uint32_t)threads;
    how.timeout_ms = (uint32_t)timeout * 1000;
    get.hub = &hub.options;
    how.get = &get;
    khub_compare_report *report;
    if (cli_hub_begin(&hub, &err) != KHUB_OK) return cli_fail(&err);
    int rc = cli_model.khub_compare(&report, argv[1], n > 1 ? argv[2] : NULL, &how, &err);
    cli_hub_end();
    if (rc != KHUB_OK) return cli_fail(&err);
    int status = print_report(report, json);
    cli_model.khub_compare_free(report);
    return status;
}

const cli_command cli_compare = {
    .name = "compare",
    .summary = "measures what a kernel does to the numbers",
    .help =
        "khub compare REPO[:LAYER] [OTHER[:LAYER]]: what a kernel does to the numbers\n\n"
        "    khub compare khub/norm\n"
        "    khub compare ./mine:fast_gelu --layer GeLU\n\n"
        "Tries every layer of the kernel's layers.json, or the one named, over a sweep of shapes, dtypes "
        "and classes\n"
        "of values, beside the standard implementation (or OTHER, another kernel) and exact results: "
        "errors in ULP,\n"
        "the same bits again, at other places in memory, in slices, in other batches and on several "
        "threads, and\n"
        "whether anything but its arguments is touched. The kernel runs in a process of its own. Exit "
        "status 1: a\n"
        "promise of layers.json is broken, memory was touched, or a call didn't come back "
        "(docs/determinism.md).\n\n"
        "    --json            a list with an object for each layer\n"
        "    --dtype NAME      float32 or bfloat16 alone\n"
        "    --case NAME       one case, as the findings name them: float32/normal/4x33\n"
        "    --seed N          other numbers in the same cases\n"
        "    --layer NAME      what REPO:FUNCTION serves, for a function that no layers.json tells of\n"
        "    --args A,B,...    the layer's arguments in the function's order; with --layer\n"
        "    --threads N       at once (4)\n"
        "    --standard WHOSE  khub's plain implementation (khub) or PyTorch's operators (torch), where it "
        "has one\n"
        "    --timeout N       seconds that a call may take (20)\n"
        "    --save DIR        writes what went into the worst case, or the first that failed, as "
        "LAYER.ARG.npy, and\n"
        "                      the exact result as LAYER.ARG.exact.npy\n"
        "    --device cuda:N   builds for that GPU, called on it; what they leave is looked at on the host\n"
        "    --variant NAME    that build and no other\n" CLI_TORCH_HELP CLI_HUB_HELP,
    .run = run,
    .needs_model = 1,
};
