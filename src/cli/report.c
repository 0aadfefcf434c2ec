/* What became of the slots of a model, for people and as JSON. */
#include "report.h"

#include "paths.h"
#include "trust.h"

#include <stdlib.h>

static const char *reason_of(const khub_slot_report *line, const char *reason)
{
    return reason && !line->kernel ? reason : line->reason;
}

static int texts_order(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int candidates_order(const khub_slot_report *a, const khub_slot_report *b)
{
    int order = (a->candidate_count > b->candidate_count) - (a->candidate_count < b->candidate_count);
    for (size_t i = 0; !order && i < a->candidate_count; i++) {
        order = texts_order(a->candidates[i].kernel, b->candidates[i].kernel);
        if (!order) order = texts_order(a->candidates[i].reason, b->candidates[i].reason);
    }
    return order;
}

/* Alike: same place in its part of the model, same layer, same decision. */
static int order(const void *x, const void *y)
{
    const khub_slot_report *a = x, *b = y;
    const char *const texts[][2] = {{a->layer, b->layer},     {a->kernel, b->kernel},
                                    {a->variant, b->variant}, {a->function, b->function},
                                    {a->reason, b->reason},   {a->commit, b->commit}};
    const int numbers[][2] = {{!a->parts, !b->parts},
                              {a->run != NULL, b->run != NULL},
                              {a->disabled, b->disabled},
                              {a->deterministic, b->deterministic}};
    int found = cli_paths_order(a->path, b->path);
    for (size_t i = 0; !found && i < sizeof(texts) / sizeof(*texts); i++)
        found = texts_order(texts[i][0], texts[i][1]);
    for (size_t i = 0; !found && i < sizeof(numbers) / sizeof(*numbers); i++)
        found = numbers[i][0] - numbers[i][1];
    return found ? found : candidates_order(a, b);
}

/* A run is told by its parts, unless somebody named a kernel for it in vain. */
static int is_silent(const khub_slot_report *line)
{
    return line->parts && (line->kernel || !line->mapped);
}

/* For each line how many slots it stands for: those alike, at the first of them; 0: it isn't shown. NULL: no
 * memory. */
static size_t *count_alike(const khub_report *report)
{
    size_t lines = khub_report_count(report);
    const void **all = calloc(lines + 1, sizeof(*all));
    for (size_t i = 0; all && i < lines; i++)
        all[i] = khub_report_at(report, i);
    size_t *first = all ? cli_first_alike(all, lines, order) : NULL, *counts = NULL;
    if (first) counts = calloc(lines + 1, sizeof(*counts));
    for (size_t i = 0; counts && i < lines; i++)
        counts[first[i]] += !is_silent(all[i]);
    free(first);
    free(all);
    return counts;
}

typedef struct widths {
    int count, path, layer;
} widths;

static void at_least(int *width, int length)
{
    if (*width < length) *width = length;
}

static widths measure(const khub_report *report, const size_t *counts)
{
    const khub_slot_report *line;
    widths w = {1, 5, 5};
    for (size_t i = 0; (line = khub_report_at(report, i)) != NULL; i++) {
        size_t count = counts[i];
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
    cli_line(to, "%s:%s (%s", line->kernel, line->function, line->variant);
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

/* That there is no signature is no news: most kernels have none. */
static void print_noted(FILE *to, const khub_trust *trust)
{
    const khub_trust_reason *reason;
    int has_signature = khub_trust_signature(trust) != NULL;
    for (size_t i = 0; (reason = khub_trust_at(trust, i)) != NULL; i++)
        if (reason->decision == KHUB_TRUST_NOTED &&
            (has_signature || strcmp(reason->about, "signature") != 0))
            cli_print(to, "%s: %s\n", reason->about, reason->words);
}

/* What is worth knowing of the kernels that serve, though they may be loaded: of each once. */
static void print_trust(FILE *to, const khub_report *report)
{
    enum { MOST = 64 };
    const khub_trust *seen[MOST];
    const khub_slot_report *line;
    size_t count = 0, k;
    for (size_t i = 0; (line = khub_report_at(report, i)) != NULL && count < MOST; i++) {
        if (!line->trust) continue;
        for (k = 0; k < count && seen[k] != line->trust;)
            k++;
        if (k < count) continue;
        print_noted(to, seen[count++] = line->trust);
    }
}

void cli_report_table(FILE *to, const khub_report *report, const char *reason)
{
    const khub_slot_report *line;
    size_t *counts = count_alike(report);
    if (!counts) {
        cli_fail_memory();
        return;
    }
    widths w = measure(report, counts);
    fprintf(to, "%*s   %-*s  %-*s  kernel\n", w.count, "", w.path, "slots", w.layer, "layer");
    for (size_t i = 0; (line = khub_report_at(report, i)) != NULL; i++) {
        size_t count = counts[i];
        if (!count) continue;
        fprintf(to, "%*zu × ", w.count, count);
        int length = cli_print_paths(to, line->path, count);
        cli_line(to, "%*s  %-*s  ", w.path - length, "", w.layer, line->layer);
        print_outcome(to, line, reason);
        print_refused(to, line, w.count + 3);
    }
    free(counts);
    print_trust(to, report);
    fprintf(to, "kernels serve %zu of %zu slots\n", khub_report_filled(report), khub_report_slots(report));
}

/* Of two slots. */
static int slots_order(const void *a, const void *b)
{
    int paths = cli_paths_order(khub_slot_path(a), khub_slot_path(b));
    return paths ? paths : strcmp(khub_slot_layer(a), khub_slot_layer(b));
}

/* The slots whose calls were done again, NULL-terminated; the caller's (free). NULL: no memory. */
static const khub_slot **retried_slots(const khub_layers *layers, size_t *count)
{
    size_t all = khub_layers_count(layers);
    const khub_slot **list = calloc(all + 1, sizeof(*list));
    *count = 0;
    for (size_t i = 0; list && i < all; i++)
        if (khub_slot_retried(khub_layers_at(layers, i))) list[(*count)++] = khub_layers_at(layers, i);
    if (!list) cli_fail_memory();
    return list;
}

void cli_report_retried(FILE *to, const khub_layers *layers)
{
    size_t count;
    const khub_slot **list = retried_slots(layers, &count);
    size_t *first = list ? cli_first_alike((const void *const *)list, count, slots_order) : NULL;
    for (size_t i = 0; first && i < count; i++) {
        uint64_t calls = 0;
        size_t slots = 0;
        for (size_t k = i; first[i] == i && k < count; k++) {
            if (first[k] != i) continue;
            slots++;
            calls += khub_slot_retried(list[k]);
        }
        if (!slots) continue;
        fprintf(to, "%zu × ", slots);
        cli_print_paths(to, khub_slot_path(list[i]), slots);
        cli_print(to, "  %s  the standard function did %llu calls again that the kernel failed in\n",
                  khub_slot_layer(list[i]), (unsigned long long)calls);
    }
    free(first);
    free(list);
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

void cli_report_retried_json(FILE *to, const khub_layers *layers)
{
    size_t count;
    uint64_t calls = 0;
    const khub_slot **list = retried_slots(layers, &count);
    fputs("{\"retried\":[", to);
    for (size_t i = 0; list && i < count; i++) {
        uint64_t own = khub_slot_retried(list[i]);
        calls += own;
        fprintf(to, "%s{\"path\":", i ? "," : "");
        cli_json_text(to, khub_slot_path(list[i]));
        print_field(to, "layer", khub_slot_layer(list[i]));
        fprintf(to, ",\"calls\":%llu}", (unsigned long long)own);
    }
    fprintf(to, "],\"calls\":%llu}\n", (unsigned long long)calls);
    free(list);
}
