/* kernelize: for each slot the mapping's kernel, or the reason why the standard function stays. */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "layer/idle.h"
#include "layer/report.h"

#include <stdlib.h>

/* The environment variable that forbids kernels; NULL: none does. */
static const char *forbidden_by(void)
{
    static const struct {
        const char *variable, *value;
    } table[] = {{"USE_HUB_KERNELS", "0"}, {"USE_HUB_KERNELS", "OFF"}, {"USE_HUB_KERNELS", "NO"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const char *set = getenv(table[i].variable);
        if (set && khub__is_word(set, strlen(set), table[i].value)) return table[i].variable;
    }
    return NULL;
}

/* 1: the mapping leaves these slots standard and names nothing else. */
static int is_on_purpose(const khub__group *group)
{
    return group->all.count && !group->all.entry[0]->fault && !*group->all.entry[0]->kernel;
}

/* 1: some slots of the group have no kernel, and somebody minds. */
static int is_missed(const khub__group *group, khub_fallback fallback)
{
    if (!group->misses) return 0;
    return group->named || (fallback == KHUB_FALLBACK_REFUSE && !group->of_runs && !is_on_purpose(group));
}

static size_t slots_of(const khub__group *group)
{
    size_t count = 0;
    for (; group; group = group->next)
        count += group->slots;
    return count;
}

static void list_misses(khub__text *text, const khub__decision *d, khub_fallback fallback)
{
    for (size_t i = 0; i < KHUB__LAYERS; i++)
        for (const khub__group *group = d->groups[i]; group; group = group->next)
            if (is_missed(group, fallback))
                khub__text_addf(text, "\n  %s (%zu of %zu slots, the first %s): %s", group->layer->name,
                                group->misses, slots_of(d->groups[i]),
                                d->layers->slots[group->first_miss]->path,
                                khub__choice_why(&d->choices[group->first_miss]));
}

/* Layers alone, each once: what an error has room for where it has none for all reasons. */
static void list_layers(khub__text *text, const khub__decision *d, khub_fallback fallback)
{
    for (size_t i = 0; i < KHUB__LAYERS; i++) {
        size_t misses = 0;
        for (const khub__group *group = d->groups[i]; group; group = group->next)
            if (is_missed(group, fallback)) misses += group->misses;
        if (misses)
            khub__text_addf(text, "\n  %s (%zu of %zu slots)", d->groups[i]->layer->name, misses,
                            slots_of(d->groups[i]));
    }
}

static void list_idle(void *text, const khub__mapped *mapped, const char *why)
{
    khub__text_addf(text, "\n  %s: %s", mapped->text, why);
}

/* Told once per layer, whatever the number of slots. */
static void log_reasons(const khub__decision *d, khub_fallback fallback)
{
    for (size_t i = 0; i < KHUB__LAYERS; i++) {
        const khub__group *group = d->groups[i];
        while (group && !is_missed(group, fallback))
            group = group->next;
        if (group)
            khub__log(KHUB_LOG_NOTICE, "layer", group->layer->name, "%s%s",
                      fallback == KHUB_FALLBACK_ALLOW ? "standard function: " : "",
                      khub__choice_why(&d->choices[group->first_miss]));
    }
}

static void log_idle(void *mapping, const khub__mapped *mapped, const char *why)
{
    if (!mapped->key || !khub__layer_find(mapped->key->part[0].layer)) return; /* it was said already */
    khub__log(KHUB_LOG_NOTICE, "layer", ((const khub_mapping *)mapping)->name,
              "names a kernel for %s, and %s", mapped->text, why);
}

/* As log_reasons; when kernels are switched off, that alone, once. */
static void log_misses(const khub__decision *d)
{
    const khub_mapping *mapping = d->sources->mapping;
    const char *forbidden = d->forbidden ? d->forbidden : mapping->forbidden_by;
    if (forbidden) {
        khub__log(KHUB_LOG_NOTICE, "layer", forbidden, "switches kernels off");
        return;
    }
    log_reasons(d, KHUB_FALLBACK_ALLOW);
    khub__idle_keys(d, log_idle, (void *)(uintptr_t)mapping);
}

/* One error for all that has to be served and isn't. */
static int check_served(const khub__decision *d, khub_fallback fallback, khub_error *err)
{
    const khub_mapping *mapping = d->sources->mapping;
    enum { HEAD = 100 }; /* bytes that stand before the list, but for the mapping's name */
    khub__text text = {0};
    if (fallback == KHUB_FALLBACK_ALLOW) return KHUB_OK;
    list_misses(&text, d, fallback);
    khub__idle_keys(d, list_idle, &text);
    if (err && text.length + strlen(mapping->name) + HEAD > sizeof(err->message)) {
        log_reasons(d, fallback);
        khub__text_free(&text);
        list_layers(&text, d, fallback);
        khub__idle_keys(d, list_idle, &text);
    }
    int rc = KHUB_OK;
    if (text.failed)
        rc = khub__fail_memory(err, "filling slots");
    else if (text.length)
        rc = khub__fail(err, KHUB_E_NOBUILD, "%s: %s, but no kernel serves:%s", mapping->name,
                        fallback == KHUB_FALLBACK_NAMED ? "required" : "no fallback is allowed", text.data);
    khub__text_free(&text);
    return rc;
}

/* Everything is known: put the fillings in, give up what was there. */
static void apply(khub__decision *d, const khub_kernelize_options *options)
{
    for (size_t i = 0; i < d->layers->count; i++) {
        khub_slot *slot = d->layers->slots[i];
        khub__slots_ask_ahead(d->layers, i);
        atomic_store_explicit(&slot->retries, options->on_error == KHUB_ON_ERROR_STANDARD,
                              memory_order_relaxed);
        khub__slot_fill(d->layers, slot, d->choices[i].filling);
        d->choices[i].filling = NULL;
    }
}

static int run(khub__decision *d, const khub_kernelize_options *options, khub_report **report,
               khub_error *err)
{
    int rc = khub__decision_make(d, err);
    if (rc == KHUB_OK) rc = check_served(d, options->fallback, err);
    if (rc == KHUB_OK && report) rc = khub__report_make(report, d, err);
    if (rc == KHUB_OK) {
        log_misses(d);
        apply(d, options);
    }
    khub__decision_free(d);
    return rc;
}

static int check_options(khub_kernelize_options *options, khub_error *err)
{
    if (!options->mode) options->mode = KHUB_MODE_INFERENCE;
    if (!khub__mode_order(options->mode))
        return khub__fail(err, KHUB_E_INVAL, "khub_kernelize: %d is no mode of a slot", options->mode);
    if ((unsigned)options->fallback > KHUB_FALLBACK_REFUSE)
        return khub__fail(err, KHUB_E_INVAL, "khub_kernelize: fallback is %d", (int)options->fallback);
    if ((unsigned)options->on_error > KHUB_ON_ERROR_STANDARD)
        return khub__fail(err, KHUB_E_INVAL, "khub_kernelize: on_error is %d", (int)options->on_error);
    return KHUB_OK;
}

int khub_kernelize(khub_layers *layers, const khub_kernelize_options *given, khub_report **report,
                   khub_error *err)
{
    khub_kernelize_options options;
    khub__sources *sources;
    if (report) *report = NULL;
    int rc = khub__given("khub_kernelize", layers != NULL, err);
    if (rc == KHUB_OK) rc = khub__options(&options, sizeof(options), given, "khub_kernelize_options", err);
    if (rc == KHUB_OK) rc = check_options(&options, err);
    if (rc == KHUB_OK) rc = khub__sources_new(&sources, layers, &options, err);
    if (rc != KHUB_OK) return rc;
    khub__decision decision = {.layers = layers,
                               .sources = sources,
                               .mode = options.mode,
                               .deterministic = options.deterministic,
                               .exact = options.exact,
                               .forbidden = forbidden_by()};
    rc = run(&decision, &options, report, err);
    khub__sources_free(sources);
    khub__layers_settle(layers);
    return rc;
}
