/* kernelize: for each slot the mapping's kernel, or the reason why the standard function stays. */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "layer/fit.h"
#include "layer/report.h"
#include "layer/sources.h"

#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

/* The environment variable that forbids kernels; NULL: none does. */
static const char *forbidden_by(void)
{
    static const struct {
        const char *variable, *value;
    } table[] = {{"USE_HUB_KERNELS", "0"},
                 {"USE_HUB_KERNELS", "OFF"},
                 {"USE_HUB_KERNELS", "NO"},
                 {"DISABLE_KERNEL_MAPPING", "1"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const char *set = getenv(table[i].variable);
        if (set && !strcasecmp(set, table[i].value)) return table[i].variable;
    }
    return NULL;
}

/* What became of one slot while it is decided. */
typedef struct outcome {
    khub__filling *filling; /* NULL: standard */
    const char *function;   /* of the kernel */
    const char *variant;
    int deterministic;
    khub_error why; /* when standard */
} outcome;

/* What the kernel says of the layer: the entry's own words, else its layers.json. */
static int spec_of(const khub_layer_spec **spec, const khub__mapping_entry *entry, const khub__source *source,
                   khub_error *why)
{
    *spec = entry->spec;
    return *spec ? KHUB_OK
                 : khub_kernel_layer(spec, source->kernel, entry->served ? entry->served : entry->layer, why);
}

/* Every failure here is a reason in out->why. */
static int decide(outcome *out, const khub_slot *slot, khub__sources *sources, const char *forbidden)
{
    khub_error *why = &out->why;
    if (forbidden) return khub__fail(why, KHUB_E_NOTFOUND, "kernels are switched off by %s", forbidden);
    const khub__mapping_entry *entry = khub__mapping_find(&sources->mapping, slot->layer->name);
    if (!entry)
        return khub__fail(why, KHUB_E_NOTFOUND, "the mapping has no kernel for %s", slot->layer->name);
    if (entry->fault) return khub__fail(why, KHUB_E_FORMAT, "%s", entry->fault);
    if (!*entry->kernel)
        return khub__fail(why, KHUB_E_NOTFOUND, "the mapping leaves %s standard", slot->layer->name);
    const khub__source *source;
    const khub_layer_spec *spec;
    int rc = khub__sources_get(&source, sources, entry->kernel, why);
    if (rc == KHUB_OK && !source->kernel) rc = khub__fail(why, source->why.code, "%s", source->why.message);
    if (rc == KHUB_OK) rc = spec_of(&spec, entry, source, why);
    if (rc == KHUB_OK) rc = khub__fit(&out->filling, slot, spec, source->kernel, entry->kernel, why);
    if (rc != KHUB_OK) return rc;
    out->function = spec->function;
    out->variant = khub_kernel_variant(source->kernel);
    out->deterministic = spec->deterministic;
    return KHUB_OK;
}

static int add_line(khub_report *report, const khub_slot *slot, const outcome *out, khub_error *err)
{
    khub_slot_report line = {slot->path,        slot->layer->name, out->filling ? out->filling->kernel : NULL,
                             out->variant,      out->function,     out->filling ? NULL : out->why.message,
                             out->deterministic};
    return khub__report_add(report, &line, err);
}

/* Decides every slot; the fillings wait in `fillings` until all is known. */
static int decide_all(khub__filling **fillings, khub_report *report, khub_layers *layers,
                      khub__sources *sources, khub_error *err)
{
    const char *forbidden = forbidden_by();
    for (size_t i = 0; i < layers->count; i++) {
        outcome out; /* a few bytes of it are set, and its kilobyte of words only when there are some */
        memset(&out, 0, offsetof(outcome, why));
        khub_error_clear(&out.why);
        int rc = decide(&out, layers->slots[i], sources, forbidden);
        fillings[i] = out.filling;
        if (rc == KHUB_E_NOMEM) return khub__fail(err, rc, "%s", out.why.message);
        rc = add_line(report, layers->slots[i], &out, err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

/* One error for all slots that stayed standard. */
static int check_required(const khub_report *report, khub_error *err)
{
    if (report->filled == report->count) return KHUB_OK;
    khub__text text = {0};
    for (size_t i = 0; i < report->count; i++)
        if (!report->slots[i].kernel)
            khub__text_addf(&text, "\n  %s (%s): %s", report->slots[i].path, report->slots[i].layer,
                            report->slots[i].reason);
    int rc = khub__fail(err, KHUB_E_NOBUILD, "%zu of %zu slots have no kernel:%s",
                        report->count - report->filled, report->count, text.data ? text.data : "");
    khub__text_free(&text);
    return rc;
}

/* A miss is told once per layer name, whatever the number of slots. */
static void log_misses(const khub_report *report, const khub_layers *layers)
{
    char told[KHUB__LAYERS] = {0};
    for (size_t i = 0; i < report->count; i++) {
        const khub_slot_report *line = &report->slots[i];
        char *this = &told[khub__layer_number(layers->slots[i]->layer)];
        if (!line->kernel && !*this)
            khub__log(KHUB_LOG_NOTICE, "layer", line->layer, "standard function: %s", line->reason);
        *this |= !line->kernel;
    }
}

/* Everything is known: put the fillings in, give up what was there. */
static void apply(khub_layers *layers, khub__filling **fillings, khub__sources *sources)
{
    for (size_t i = 0; i < layers->count; i++)
        khub__slot_fill(layers->slots[i], fillings[i]);
    khub__sources_free(layers->sources);
    layers->sources = sources;
    sources->platform = NULL;
}

static int run(khub_layers *layers, const khub_kernelize_options *options, khub__sources *sources,
               khub_report *report, khub_error *err)
{
    khub__filling **fillings = khub__calloc(layers->count, sizeof(*fillings));
    if (!fillings) return khub__fail_memory(err, "filling slots");
    int rc = decide_all(fillings, report, layers, sources, err);
    if (rc == KHUB_OK && options->require) rc = check_required(report, err);
    if (rc == KHUB_OK) {
        log_misses(report, layers);
        apply(layers, fillings, sources);
    } else {
        for (size_t i = 0; i < layers->count; i++)
            khub__filling_free(fillings[i]);
    }
    khub__free(fillings);
    return rc;
}

int khub_kernelize(khub_layers *layers, const khub_kernelize_options *given, khub_report **report,
                   khub_error *err)
{
    khub_kernelize_options options;
    khub__sources *sources;
    if (report) *report = NULL;
    int rc = khub__options(&options, sizeof(options), given, "khub_kernelize_options", err);
    if (rc != KHUB_OK) return rc;
    rc = khub__sources_new(&sources, options.mapping, options.platform, err);
    if (rc != KHUB_OK) return rc;
    khub_report *own = khub__report_new(layers->count);
    rc = own ? run(layers, &options, sources, own, err) : khub__fail_memory(err, "writing a report");
    if (rc != KHUB_OK) khub__sources_free(sources);
    if (rc == KHUB_OK && report)
        *report = own;
    else
        khub_report_free(own);
    return rc;
}
