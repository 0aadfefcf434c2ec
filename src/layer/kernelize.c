/* kernelize: for each slot the mapping's kernel, or the reason why the standard function stays. */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "layer/candidates.h"
#include "layer/report.h"
#include "layer/sources.h"

#include <stddef.h>
#include <stdlib.h>

static char upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

/* Equal but for the case of ASCII letters; `capitals` has no small ones. */
static int is_same_word(const char *word, const char *capitals)
{
    while (*word && upper(*word) == *capitals)
        word++, capitals++;
    return !*word && !*capitals;
}

/* The environment variable that forbids kernels; NULL: none does. */
static const char *forbidden_by(void)
{
    static const struct {
        const char *variable, *value;
    } table[] = {{"USE_HUB_KERNELS", "0"}, {"USE_HUB_KERNELS", "OFF"}, {"USE_HUB_KERNELS", "NO"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const char *set = getenv(table[i].variable);
        if (set && is_same_word(set, table[i].value)) return table[i].variable;
    }
    return NULL;
}

/* What became of one slot while it is decided. */
typedef struct outcome {
    khub_filling *filling; /* NULL: standard */
    const char *function;  /* of the kernel */
    const char *variant;
    int deterministic, mapped;
    khub_error why; /* when standard */
} outcome;

/* What the kernel says of the layer: the entry's own words, else its layers.json. */
static int spec_of(const khub_layer_spec **spec, const khub__entry *entry, const khub_slot *slot,
                   const khub__asked *asked, khub_error *why)
{
    *spec = entry->spec;
    return *spec ? KHUB_OK
                 : khub_kernel_layer(spec, asked->source->kernel,
                                     entry->layer ? entry->layer : slot->layer->name, why);
}

static int try_entry(outcome *out, const khub_slot *slot, const khub__entry *entry, khub__sources *sources)
{
    khub_error *why = &out->why;
    if (entry->fault) return khub__fail(why, KHUB_E_FORMAT, "%s", entry->fault);
    if (!*entry->kernel)
        return khub__fail(why, KHUB_E_NOTFOUND, "the mapping leaves %s standard", slot->layer->name);
    const khub__asked *asked;
    const khub_layer_spec *spec;
    int rc = khub__sources_get(&asked, sources, entry->kernel, why);
    if (rc == KHUB_OK && !asked->source) rc = khub__fail(why, asked->why.code, "%s", asked->why.message);
    if (rc == KHUB_OK) rc = spec_of(&spec, entry, slot, asked, why);
    khub__recipe *recipe = NULL;
    if (rc == KHUB_OK)
        rc = khub__recipe_of(&recipe, sources->layers, asked->source, slot->layer, slot->dtype, spec, why);
    if (rc == KHUB_OK) rc = khub__recipe_fill(&out->filling, recipe, slot, why);
    khub__recipe_give_up(recipe);
    if (rc != KHUB_OK) return rc;
    out->function = spec->function;
    out->variant = khub_kernel_variant(asked->source->kernel);
    out->deterministic = spec->deterministic;
    return KHUB_OK;
}

/* The first candidate that serves. Every failure here is a reason in out->why, the first one. */
static int decide(outcome *out, const khub_slot *slot, khub__sources *sources, const char *forbidden)
{
    static const khub__on cpu = {KHUB__DEVICE_CPU, KHUB__CAPABILITY_UNKNOWN};
    khub__candidates all;
    khub__wanted_slot wanted = {slot->layer->name, slot->path, NULL, 0};
    khub__candidates_find(&all, sources->mapping, &wanted, cpu, KHUB_MODE_INFERENCE);
    out->mapped = all.count && khub__entry_names_kernel(all.entry[0]);
    if (forbidden) return khub__fail(&out->why, KHUB_E_NOTFOUND, "kernels are switched off by %s", forbidden);
    if (!all.count)
        return khub__candidates_miss(&out->why, &all, sources->mapping, wanted.layer, cpu,
                                     KHUB_MODE_INFERENCE);
    int rc = KHUB_E_NOTFOUND;
    for (size_t i = 0; i < all.count && rc != KHUB_OK && rc != KHUB_E_NOMEM && rc != KHUB_E_CANCELED; i++) {
        rc = try_entry(out, slot, all.entry[i], sources);
        if (!all.entry[i]->fault && !*all.entry[i]->kernel) return rc; /* standard on purpose */
    }
    return rc;
}

static int add_line(khub_report *report, const khub_slot *slot, const outcome *out, khub_error *err)
{
    khub_slot_report line = {
        slot->path,         slot->layer->name, out->filling ? out->filling->kernel : NULL,
        out->variant,       out->function,     out->filling ? NULL : out->why.message,
        out->deterministic, out->mapped};
    return khub__report_add(report, &line, err);
}

/* Decides every slot; the fillings wait in `fillings` until all is known. */
static int decide_all(khub_filling **fillings, khub_report *report, khub_layers *layers,
                      khub__sources *sources, khub_error *err)
{
    const char *forbidden = forbidden_by();
    for (size_t i = 0; i < layers->count; i++) {
        outcome out; /* a few bytes of it are set, and its kilobyte of words only when there are some */
        memset(&out, 0, offsetof(outcome, why));
        khub_error_clear(&out.why);
        int rc = decide(&out, layers->slots[i], sources, forbidden);
        fillings[i] = out.filling;
        if (rc == KHUB_E_NOMEM || rc == KHUB_E_CANCELED) return khub__fail(err, rc, "%s", out.why.message);
        rc = add_line(report, layers->slots[i], &out, err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* What the mapping names for one layer and didn't get. */
typedef struct misses {
    size_t slots; /* of the layer */
    size_t count; /* of them that the kernel doesn't serve */
    const khub_slot_report *first;
} misses;

static void count_misses(misses found[KHUB__LAYERS], const khub_report *report, const khub_layers *layers)
{
    memset(found, 0, KHUB__LAYERS * sizeof(*found));
    for (size_t i = 0; i < report->count; i++) {
        const khub_slot_report *line = &report->slots[i];
        misses *of = &found[khub__layer_number(layers->slots[i]->layer)];
        of->slots++;
        if (!line->mapped || line->kernel) continue;
        if (!of->count++) of->first = line;
    }
}

/* 1: somebody wrote this key for a layer that no slot has. */
static int is_idle(const khub__mapped *mapped, const misses *found)
{
    int named = 0;
    for (size_t i = 0; i < mapped->count; i++)
        named |= !mapped->entries[i]->built_in && khub__entry_names_kernel(mapped->entries[i]);
    const khub__layer_def *layer = mapped->key ? khub__layer_find(mapped->key->part[0].layer) : NULL;
    return named && (!layer || !found[khub__layer_number(layer)].slots);
}

/* One error for all that the mapping names and that doesn't serve. */
static int check_required(const misses *found, const khub_mapping *mapping, khub_error *err)
{
    khub__text text = {0};
    for (const misses *of = found; of < found + KHUB__LAYERS; of++)
        if (of->count)
            khub__text_addf(&text, "\n  %s (%zu of %zu slots, the first %s): %s", of->first->layer, of->count,
                            of->slots, of->first->path, of->first->reason);
    for (size_t i = 0; i < mapping->key_count; i++)
        if (is_idle(&mapping->keys[i], found))
            khub__text_addf(&text, "\n  %s: no slot is of this layer", mapping->keys[i].text);
    int rc = KHUB_OK;
    if (text.failed)
        rc = khub__fail_memory(err, "filling slots");
    else if (text.length)
        rc = khub__fail(err, KHUB_E_NOBUILD, "%s: required, but no kernel serves:%s", mapping->name,
                        text.data);
    khub__text_free(&text);
    return rc;
}

/* Told once per layer, whatever the number of slots, and when kernels are switched off, once. */
static void log_misses(const misses *found, const khub_mapping *mapping)
{
    const char *forbidden = forbidden_by() ? forbidden_by() : mapping->forbidden_by;
    if (forbidden) {
        khub__log(KHUB_LOG_NOTICE, "layer", forbidden, "switches kernels off");
        return;
    }
    for (const misses *of = found; of < found + KHUB__LAYERS; of++)
        if (of->count)
            khub__log(KHUB_LOG_NOTICE, "layer", of->first->layer, "standard function: %s", of->first->reason);
    for (size_t i = 0; i < mapping->key_count; i++) {
        const khub__mapped *mapped = &mapping->keys[i];
        if (!mapped->key || !khub__layer_find(mapped->key->part[0].layer)) continue; /* it was said already */
        if (is_idle(mapped, found))
            khub__log(KHUB_LOG_NOTICE, "layer", mapping->name,
                      "names a kernel for %s, and no slot is of this layer", mapped->text);
    }
}

/* Everything is known: put the fillings in, give up what was there. */
static void apply(khub_layers *layers, khub_filling **fillings)
{
    for (size_t i = 0; i < layers->count; i++)
        khub__slot_fill(layers, layers->slots[i], fillings[i]);
}

static int run(khub_layers *layers, const khub_kernelize_options *options, khub__sources *sources,
               khub_report *report, khub_error *err)
{
    khub_filling **fillings = khub__calloc(layers->count, sizeof(*fillings));
    if (!fillings) return khub__fail_memory(err, "filling slots");
    misses found[KHUB__LAYERS];
    int rc = decide_all(fillings, report, layers, sources, err);
    count_misses(found, report, layers);
    if (rc == KHUB_OK && options->require) rc = check_required(found, sources->mapping, err);
    if (rc == KHUB_OK) {
        log_misses(found, sources->mapping);
        apply(layers, fillings);
    } else {
        for (size_t i = 0; i < layers->count; i++)
            khub__filling_give_up(layers, fillings[i]);
    }
    khub__layers_settle(layers);
    khub__free(fillings);
    return rc;
}

int khub_kernelize(khub_layers *layers, const khub_kernelize_options *given, khub_report **report,
                   khub_error *err)
{
    khub_kernelize_options options;
    khub__sources *sources;
    if (report) *report = NULL;
    int rc = khub__given("khub_kernelize", layers != NULL, err);
    if (rc == KHUB_OK) rc = khub__options(&options, sizeof(options), given, "khub_kernelize_options", err);
    if (rc != KHUB_OK) return rc;
    rc = khub__sources_new(&sources, layers, &options, err);
    if (rc != KHUB_OK) return rc;
    khub_report *own = khub__report_new(layers->count);
    rc = own ? run(layers, &options, sources, own, err) : khub__fail_memory(err, "writing a report");
    khub__sources_free(sources);
    if (rc == KHUB_OK && report)
        *report = own;
    else
        khub_report_free(own);
    return rc;
}
