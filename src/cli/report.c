/* What became of the slots of a model, for people and as JSON. */
#include "report.h"

#include "paths.h"
#include "trust.h"

static const char *reason_of(const khub_slot_report *line, const char *reason)
{
    return reason && !line->kernel ? reason : line->reason;
}

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static int same_candidates(const khub_slot_report *a, const khub_slot_report *b)
{
    int same = a->candidate_count == b->candidate_count;
    for (size_t i = 0; same && i < a->candidate_count; i++)
        same = same_text(a->candidates[i].kernel, b->candidates[i].kernel) &&
               same_text(a->candidates[i].reason, b->candidates[i].reason);
    return same;
}

/* Same place in its part of the model, same layer, same decision. */
static int alike(const khub_slot_report *a, const khub_slot_report *b)
{
    return cli_paths_alike(a->path, b->path) && !a->parts == !b->parts && same_text(a->layer, b->layer) &&
           same_text(a->kernel, b->kernel) && same_text(a->variant, b->variant) &&
           same_text(a->function, b->function) && same_text(a->reason, b->reason) &&
           same_text(a->commit, b->commit) && a->disabled == b->disabled &&
           a->deterministic == b->deterministic && same_candidates(a, b);
}

/* A run is told by its parts, unless somebody named a kernel for it in vain. */
static int is_silent(const khub_slot_report *line)
{
    return line->parts && (line->kernel || !line->mapped);
}

/* How many slots are like the i-th; 0 when it isn't the first of them. */
static size_t count_alike(const khub_report *report, size_t i)
{
    const khub_slot_report *line = khub_report_at(report, i), *other;
    size_t count = 0;
    if (is_silent(line)) return 0;
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

static void print_outcome(FILE *to, const khub_slot_report *line, const char *reason)
{
    if (!line->kernel) {
        cli_print(to, "standard: %s\n", reason_of(line, reason));
        return;
    }
    cli_print(to, "%s:%s (%s", line->kernel, line->function, line->variant);
    if (line->commit) cli_print(to, ", commit %.7s", line->commit);
    cli_print(to, ")%s%s%s\n", line->deterministic ? ", deterministic" : "", line->run ? ", in a run" : "",
              line->disabled ? ", switched off" : "");
}

/* Candidates that don't serve; the first one's reason stands in the line above where no kernel serves. */
static void print_refused(FILE *to, const khub_slot_report *line, int indent)
{
    for (size_t i = line->kernel ? 0 : 1; i < line->candidate_count; i++) {
        const khub_slot_candidate *c = &line->candidates[i];
        if (c->reason)
            cli_print(to, "%*snot %s (%s, %s): %s\n", indent, "", c->kernel ? c->kernel : "what is written",
                      c->device, khub_mode_name(c->mode), c->reason);
    }
}

/* What is worth knowing of the kernel that serves, though it may be loaded. */
static void print_noted(FILE *to, const khub_slot_report *line, int indent)
{
    const khub_trust_reason *reason;
    for (size_t i = 0; (reason = khub_trust_at(line->trust, i)) != NULL; i++)
        if (reason->decision == KHUB_TRUST_NOTED)
            cli_print(to, "%*snoted, %s: %s\n", indent, "", reason->about, reason->words);
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
        print_outcome(to, line, reason);
        print_refused(to, line, w.count + 3);
        print_noted(to, line, w.count + 3);
    }
    fprintf(to, "kernels serve %zu of %zu slots\n", khub_report_filled(report), khub_report_slots(report));
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

static void print_candidates(FILE *to, const khub_slot_report *line)
{
    fputs(",\"candidates\":[", to);
    for (size_t i = 0; i < line->candidate_count; i++) {
        const khub_slot_candidate *c = &line->candidates[i];
        fprintf(to, "%s{\"serves\":%s", i ? "," : "", c->serves ? "true" : "false");
        print_field(to, "kernel", c->kernel);
        print_field(to, "layer", c->layer);
        print_field(to, "device", c->device);
        print_field(to, "mode", khub_mode_name(c->mode));
        print_field(to, "from", c->from);
        print_reason(to, c->reason);
        fputc('}', to);
    }
    fputc(']', to);
}

void cli_report_json(FILE *to, const khub_report *report, const char *reason)
{
    const khub_slot_report *line;
    fprintf(to, "{\"filled\":%zu,\"count\":%zu,\"slots\":[", khub_report_filled(report),
            khub_report_slots(report));
    for (size_t i = 0; (line = khub_report_at(report, i)) != NULL; i++) {
        fprintf(to, "%s{\"index\":%zu", i ? "," : "", i);
        print_field(to, "path", line->path);
        print_field(to, "layer", line->layer);
        print_field(to, "kernel", line->kernel);
        print_field(to, "variant", line->variant);
        print_field(to, "function", line->function);
        print_reason(to, reason_of(line, reason));
        print_field(to, "repository", line->repository);
        print_field(to, "commit", line->commit);
        print_field(to, "build", line->build);
        if (line->version < 0)
            fputs(",\"version\":null", to);
        else
            fprintf(to, ",\"version\":%lld", (long long)line->version);
        print_field(to, "run", line->run);
        fprintf(to, ",\"parts\":%zu,\"deterministic\":%s,\"mapped\":%s,\"disabled\":%s", line->parts,
                line->deterministic ? "true" : "false", line->mapped ? "true" : "false",
                line->disabled ? "true" : "false");
        print_candidates(to, line);
        fputs(",\"trust\":", to);
        cli_trust_json(to, line->trust);
        fputc('}', to);
    }
    fputs("]}\n", to);
}
