/* What became of the slots of a model, for people and as JSON. */
#include "report.h"

#include "paths.h"

static const char *reason_of(const khub_slot_report *line, const char *reason)
{
    return reason && !line->kernel ? reason : line->reason;
}

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Same place in its part of the model, same layer, same decision. */
static int alike(const khub_slot_report *a, const khub_slot_report *b)
{
    return cli_paths_alike(a->path, b->path) && same_text(a->layer, b->layer) &&
           same_text(a->kernel, b->kernel) && same_text(a->variant, b->variant) &&
           same_text(a->function, b->function) && same_text(a->reason, b->reason) &&
           a->deterministic == b->deterministic;
}

/* How many slots are like the i-th; 0 when it isn't the first of them. */
static size_t count_alike(const khub_report *report, size_t i)
{
    const khub_slot_report *line = khub_report_at(report, i), *other;
    size_t count = 0;
    for (size_t j = 0; (other = khub_report_at(report, j)) != NULL; j++) {
        if (!alike(line, other)) continue;
        if (j < i) return 0;
        count++;
    }
    return count;
}

typedef struct widths {
    int count, path, layer;
} widths;

static void at_least(int *width, int length)
{
    if (*width < length) *width = length;
}

static widths measure(const khub_report *report)
{
    const khub_slot_report *line;
    widths w = {1, 5, 5};
    for (size_t i = 0; (line = khub_report_at(report, i)) != NULL; i++) {
        size_t count = count_alike(report, i);
        if (!count) continue;
        at_least(&w.count, snprintf(NULL, 0, "%zu", count));
        at_least(&w.path, cli_print_paths(NULL, line->path, count));
        at_least(&w.layer, (int)strlen(line->layer));
    }
    return w;
}

void cli_report_table(FILE *to, const khub_report *report, const char *reason)
{
    const khub_slot_report *line;
    widths w = measure(report);
    fprintf(to, "%*s   %-*s  %-*s  kernel\n", w.count, "", w.path, "slots", w.layer, "layer");
    for (size_t i = 0; (line = khub_report_at(report, i)) != NULL; i++) {
        size_t count = count_alike(report, i);
        if (!count) continue;
        fprintf(to, "%*zu × ", w.count, count);
        int length = cli_print_paths(to, line->path, count);
        cli_print(to, "%*s  %-*s  ", w.path - length, "", w.layer, line->layer);
        if (line->kernel)
            cli_print(to, "%s:%s (%s)%s\n", line->kernel, line->function, line->variant,
                      line->deterministic ? ", deterministic" : "");
        else
            cli_print(to, "standard: %s\n", reason_of(line, reason));
    }
    fprintf(to, "kernels serve %zu of %zu slots\n", khub_report_filled(report), khub_report_count(report));
}

static void print_field(FILE *to, const char *name, const char *value)
{
    fprintf(to, ",\"%s\":", name);
    cli_json_text(to, value);
}

static void print_reason(FILE *to, const char *reason)
{
    char words[2048];
    if (reason) {
        snprintf(words, sizeof(words), "%s", reason);
        cli_own_words(words);
    }
    print_field(to, "reason", reason ? words : NULL);
}

void cli_report_json(FILE *to, const khub_report *report, const char *reason)
{
    const khub_slot_report *line;
    fprintf(to, "{\"filled\":%zu,\"count\":%zu,\"slots\":[", khub_report_filled(report),
            khub_report_count(report));
    for (size_t i = 0; (line = khub_report_at(report, i)) != NULL; i++) {
        fprintf(to, "%s{\"index\":%zu", i ? "," : "", i);
        print_field(to, "path", line->path);
        print_field(to, "layer", line->layer);
        print_field(to, "kernel", line->kernel);
        print_field(to, "variant", line->variant);
        print_field(to, "function", line->function);
        print_reason(to, reason_of(line, reason));
        fprintf(to, ",\"deterministic\":%s,\"mapped\":%s}", line->deterministic ? "true" : "false",
                line->mapped ? "true" : "false");
    }
    fputs("]}\n", to);
}
