#include "shadow.h"

#include "model.h"
#include "paths.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

static const char *pattern_of(const cli_shadow *shadow)
{
    return shadow->pattern[0] ? shadow->pattern : NULL;
}

int cli_shadow_begin(cli_shadow *shadow, khub_model *model, khub_error *err)
{
    shadow->model = model;
    return khub_layers_shadow(cli_model.khub_model_layers(model), pattern_of(shadow), 1, err);
}

static int make_room(cli_shadow *shadow, size_t count, khub_error *err)
{
    if (count <= shadow->capacity) return KHUB_OK;
    float *grown = realloc(shadow->rows, count * cli_model.khub_model_width(shadow->model) * sizeof(float));
    if (!grown) return cli_no_memory(err);
    shadow->rows = grown;
    shadow->capacity = count;
    return KHUB_OK;
}

static int compare(cli_shadow *shadow, size_t count, const float *standard, khub_error *err)
{
    const int64_t shape[2] = {(int64_t)count, (int64_t)cli_model.khub_model_width(shadow->model)};
    khub_tensor with = khub_tensor_f32(shadow->rows, 2, shape),
                without = khub_tensor_f32((float *)(uintptr_t)standard, 2, shape);
    return khub_comparison_add(&shadow->output, &with, &without, err);
}

int cli_shadow_embed(cli_shadow *shadow, const char *const *texts, const size_t *lengths, size_t count,
                     const float *standard, khub_error *err)
{
    khub_layers *layers = cli_model.khub_model_layers(shadow->model);
    int rc = make_room(shadow, count, err);
    if (rc == KHUB_OK) rc = khub_layers_shadow(layers, pattern_of(shadow), 0, err);
    if (rc == KHUB_OK)
        rc = cli_model.khub_model_embed(shadow->model, texts, lengths, count, shadow->rows, NULL, err);
    if (rc == KHUB_OK) rc = compare(shadow, count, standard, err);
    if (rc == KHUB_OK) rc = khub_layers_shadow(layers, pattern_of(shadow), 1, err);
    return rc;
}

/* What some slots have in common, summed up. */
typedef struct group {
    const khub_slot *first;
    size_t slots;
    khub_shadow sum;
} group;

/* Adds `other`, of the same layer and so of the same outputs or of some of them. */
static void add(khub_shadow *sum, const khub_shadow *other)
{
    sum->calls += other->calls;
    if (!sum->failed) memcpy(sum->first_failure, other->first_failure, sizeof(sum->first_failure));
    sum->failed += other->failed;
    for (size_t i = 0; i < other->outputs; i++) {
        size_t at = 0;
        while (at < sum->outputs && strcmp(sum->output[at], other->output[i]) != 0)
            at++;
        if (at == sum->outputs) sum->output[sum->outputs++] = other->output[i];
        khub_comparison_merge(&sum->difference[at], &other->difference[i], NULL);
    }
}

/* Alike: same place in its part of the model, same layer. */
static int order(const void *a, const void *b)
{
    int paths = cli_paths_order(khub_slot_path(a), khub_slot_path(b));
    return paths ? paths : strcmp(khub_slot_layer(a), khub_slot_layer(b));
}

/* The slots that were called, in groups of those alike: *groups (the caller's, free), each where the first of
 * its slots is among them. How many there are; of one that no group begins at, slots is 0. */
static size_t group_slots(group **groups, const khub_layers *layers)
{
    size_t all = khub_layers_count(layers), count = 0;
    const void **called = calloc(all + 1, sizeof(*called));
    khub_shadow shadow;
    for (size_t i = 0; called && i < all; i++) {
        const khub_slot *slot = khub_layers_at(layers, i);
        if (khub_slot_shadow(&shadow, slot) && shadow.calls) called[count++] = slot;
    }
    size_t *first = called ? cli_first_alike(called, count, order) : NULL;
    *groups = first ? calloc(count + 1, sizeof(**groups)) : NULL;
    for (size_t i = 0; *groups && i < count; i++) {
        group *g = &(*groups)[first[i]];
        if (!g->slots++) g->first = called[i];
        khub_slot_shadow(&shadow, called[i]);
        add(&g->sum, &shadow);
    }
    free(first);
    free(called);
    return count;
}

static void print_numbers(FILE *to, const khub_comparison *c)
{
    fprintf(to, "%8.3g %%  %9.3g  %9.3g  %9.2e  %9.2e", 100 * c->identical_share, c->ulp.value, c->mean_ulp,
            c->absolute.value, 1 - c->cosine);
    uint64_t unlike = c->count - c->finite - c->both_nan - c->infinity_same;
    if (unlike) fprintf(to, "  %" PRIu64 " NaN or infinite in one alone", unlike);
}

static void print_group(FILE *to, const group *g, int path_width)
{
    for (size_t i = 0; i < g->sum.outputs; i++) {
        fprintf(to, "%4zu × ", g->slots);
        int length = cli_print_paths(to, khub_slot_path(g->first), g->slots);
        cli_print(to, "%*s  %-14s %-5s %7" PRIu64 "  ", path_width - length, "", khub_slot_layer(g->first),
                  g->sum.output[i], g->sum.calls);
        print_numbers(to, &g->sum.difference[i]);
        putc('\n', to);
    }
    if (g->sum.failed)
        cli_print(to, "       failed in %" PRIu64 " of %" PRIu64 " calls; the first: %s\n", g->sum.failed,
                  g->sum.calls, g->sum.first_failure);
}

void cli_shadow_table(FILE *to, const cli_shadow *shadow)
{
    int width = 5;
    group *groups;
    size_t count = group_slots(&groups, cli_model.khub_model_layers(shadow->model));
    if (!groups) {
        cli_fail_memory();
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (groups[i].slots) {
            int length = cli_print_paths(NULL, khub_slot_path(groups[i].first), groups[i].slots);
            if (length > width) width = length;
        }
    fprintf(to, "       %-*s  %-14s %-5s %7s  %10s  %9s  %9s  %9s  %9s\n", width, "slots", "layer", "",
            "calls", "same bits", "worst ULP", "mean ULP", "largest", "1 - cos");
    for (size_t i = 0; i < count; i++)
        if (groups[i].slots) print_group(to, &groups[i], width);
    free(groups);
    const khub_comparison *o = &shadow->output;
    fprintf(
        to,
        "with the kernels the embeddings differ by at most %.2e (%.3g ULP, 1 - cosine %.1e); %.3g %% of the "
        "numbers are the same bits\n",
        o->absolute.value, o->ulp.value, 1 - o->cosine, 100 * o->identical_share);
}

static void json_number(FILE *to, const char *name, double value)
{
    fprintf(to, ",\"%s\":", name);
    cli_json_number(to, value, 17);
}

static void json_worst(FILE *to, const char *name, const khub_worst *worst)
{
    fprintf(to, ",\"%s\":{\"index\":%" PRIu64, name, worst->index);
    json_number(to, "value", worst->value);
    json_number(to, "kernel", worst->a);
    json_number(to, "standard", worst->b);
    putc('}', to);
}

static void json_comparison(FILE *to, const char *name, const khub_comparison *c)
{
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"identical", c->identical},
                  {"first_different", c->first_different},
                  {"zero_signs", c->zero_signs},
                  {"finite", c->finite},
                  {"both_nan", c->both_nan},
                  {"nan_payloads", c->nan_payloads},
                  {"nan_only_kernel", c->nan_only_a},
                  {"nan_only_standard", c->nan_only_b},
                  {"infinity_same", c->infinity_same},
                  {"infinity_opposite", c->infinity_opposite},
                  {"infinity_only_kernel", c->infinity_only_a},
                  {"infinity_only_standard", c->infinity_only_b},
                  {"zero_missed", c->zero_missed},
                  {"rows", c->rows},
                  {"argmax_same", c->argmax_same}};
    fprintf(to, "{\"name\":\"%s\",\"count\":%" PRIu64, name, c->count);
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        fprintf(to, ",\"%s\":%" PRIu64, counts[i].name, counts[i].value);
    json_worst(to, "ulp", &c->ulp);
    json_worst(to, "absolute", &c->absolute);
    json_worst(to, "relative", &c->relative);
    json_number(to, "mean_ulp", c->mean_ulp);
    json_number(to, "mean_absolute", c->mean_absolute);
    json_number(to, "rms", c->rms);
    json_number(to, "cosine", c->cosine);
    putc('}', to);
}

static void json_slot(FILE *to, const khub_slot *slot, const khub_shadow *shadow, const char *before)
{
    fprintf(to, "%s{\"path\":", before);
    cli_json_text(to, khub_slot_path(slot));
    fputs(",\"layer\":", to);
    cli_json_text(to, khub_slot_layer(slot));
    fprintf(to, ",\"calls\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"first_failure\":", shadow->calls,
            shadow->failed);
    cli_json_text(to, shadow->failed ? shadow->first_failure : NULL);
    fputs(",\"outputs\":[", to);
    for (size_t i = 0; i < shadow->outputs; i++) {
        if (i) putc(',', to);
        json_comparison(to, shadow->output[i], &shadow->difference[i]);
    }
    fputs("]}", to);
}

void cli_shadow_json(FILE *to, const cli_shadow *shadow)
{
    const khub_layers *layers = cli_model.khub_model_layers(shadow->model);
    const khub_slot *slot;
    const char *before = "";
    khub_shadow sums;
    fputs("{\"slots\":[", to);
    for (size_t i = 0; (slot = khub_layers_at(layers, i)) != NULL; i++) {
        if (!khub_slot_shadow(&sums, slot)) continue;
        json_slot(to, slot, &sums, before);
        before = ",";
    }
    fputs("],\"embeddings\":", to);
    json_comparison(to, "embeddings", &shadow->output);
    fputs("}\n", to);
}

void cli_shadow_end(cli_shadow *shadow)
{
    free(shadow->rows);
}
