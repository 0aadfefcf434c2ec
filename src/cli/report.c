/* What became of the slots of a model, for people and as JSON. */
#include "report.h"

#include <ctype.h>

static const char *reason_of(const khub_slot_report *line, const char *reason)
{
    return reason && !line->kernel ? reason : line->reason;
}

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Length of the part of a path up to its next "." or its end. */
static size_t part_length(const char *path)
{
    return strcspn(path, ".");
}

static int is_number(const char *part, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)part[i])) return 0;
    return length > 0;
}

/* Paths that differ in nothing but numbers: "layer.0.dense" and "layer.11.dense". */
static int same_path(const char *a, const char *b)
{
    for (;;) {
        size_t n = part_length(a), m = part_length(b);
        if (!(is_number(a, n) && is_number(b, m)) && (n != m || memcmp(a, b, n) != 0)) return 0;
        if (!a[n] || !b[m]) return a[n] == b[m];
        a += n + 1, b += m + 1;
    }
}

/* Same place in its part of the model, same layer, same decision. */
static int alike(const khub_slot_report *a, const khub_slot_report *b)
{
    return same_path(a->path, b->path) && same_text(a->layer, b->layer) && same_text(a->kernel, b->kernel) &&
           same_text(a->variant, b->variant) && same_text(a->function, b->function) &&
           same_text(a->reason, b->reason) && a->deterministic == b->deterministic;
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

/* "encoder.layer.*.dense" for several slots, the path itself for one. `to` NULL: only the length. */
static int print_path(FILE *to, const char *path, size_t count)
{
    int length = 0;
    for (;;) {
        size_t n = part_length(path);
        int star = count > 1 && is_number(path, n), shown = star ? 1 : (int)n;
        if (to) cli_print(to, "%.*s%s", shown, star ? "*" : path, path[n] ? "." : "");
        length += shown + (path[n] == '.');
        if (!path[n]) return length;
        path += n + 1;
    }
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
        at_least(&w.path, print_path(NULL, line->path, count));
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
        int length = print_path(to, line->path, count);
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
