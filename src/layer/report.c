#include "layer/report.h"

#include "base/error.h"
#include "base/memory.h"
#include "platform/pool.h"
#include "trust/trust.h"

/* All that it says stands in the pool. Slots that became the same share their texts. */
struct khub_report {
    khub__pool pool;
    khub_slot_report *lines;
    size_t count, filled, slots;
};

static void show_candidate(khub_slot_candidate *out, khub__pool *pool, const khub__choice *choice, size_t i)
{
    const khub__entry *entry = choice->group->all.entry[i];
    char device[KHUB__TARGET_MAX];
    out->kernel = khub__pool_text(pool, entry->kernel);
    out->layer = khub__pool_text(pool, entry->layer);
    out->device = khub__pool_text(pool, khub__target_text(device, &entry->target));
    out->mode = entry->line.mode;
    out->from = khub__pool_text(pool, entry->from);
    out->serves = choice->filling && i == choice->at;
    out->reason = khub__pool_text(pool, khub__choice_reason(choice, i));
}

static void show_candidates(khub_slot_report *line, khub__pool *pool, const khub__choice *choice)
{
    size_t count = choice->group->all.count;
    khub_slot_candidate *list = khub__pool_take(pool, count, sizeof(*list));
    for (size_t i = 0; list && i < count; i++)
        show_candidate(&list[i], pool, choice, i);
    line->candidates = list;
    line->candidate_count = list ? count : 0;
}

static void show_kernel(khub_slot_report *line, khub__pool *pool, const khub_filling *filling)
{
    const khub_kernel *kernel = filling->recipe->source->kernel;
    const char *name = khub_kernel_name(kernel);
    line->kernel = khub__pool_text(pool, name);
    if (khub_name_kind_of(name) == KHUB_NAME_HUB)
        line->repository = khub__pool_textf(pool, "%.*s", (int)strcspn(name, "@"), name);
    line->version = khub_kernel_version(kernel);
    line->trust = khub_kernel_trust(kernel);
    line->commit = khub__pool_text(pool, khub_kernel_commit(kernel));
    line->build = khub__pool_text(pool, khub_kernel_build(kernel));
    line->variant = khub__pool_text(pool, khub_kernel_variant(kernel));
    line->function = khub__pool_text(pool, filling->recipe->name);
    line->deterministic = filling->recipe->deterministic;
}

/* The line of a slot but for what is the slot's own. */
static khub_slot_report *show(khub__pool *pool, const khub__choice *choice)
{
    khub_slot_report *line = khub__pool_take(pool, 1, sizeof(*line));
    if (!line) return NULL;
    line->layer = choice->group->layer->name; /* static */
    line->mapped = choice->group->named;
    line->version = -1;
    if (choice->filling) show_kernel(line, pool, choice->filling);
    line->reason = khub__pool_text(pool, khub__choice_why(choice));
    show_candidates(line, pool, choice);
    return line;
}

static const khub_slot_report *line_of(khub__pool *pool, const khub__choice *choice)
{
    const void **shown = &choice->group->shown[choice->at];
    if (choice->own) return show(pool, choice);
    if (!*shown) *shown = show(pool, choice);
    return *shown;
}

static void fill(khub_report *report, const khub__decision *d)
{
    for (size_t i = 0; i < d->layers->count && !report->pool.failed; i++) {
        const khub__choice *choice = &d->choices[i], *run = choice->run;
        const khub_slot *slot = d->layers->slots[i];
        khub__slots_ask_ahead(d->layers, i);
        const khub_slot_report *line = line_of(&report->pool, run ? run : choice);
        if (!line) return;
        khub_slot_report *own = &report->lines[i];
        *own = *line;
        own->trust = khub__trust_share(line->trust);
        report->count = i + 1;
        own->path = khub__pool_text(&report->pool, slot->path);
        own->layer = slot->layer->name;
        own->disabled = slot->disabled;
        own->mapped &= !choice->broken;
        own->parts = slot->part_count;
        if (run) own->run = khub__pool_text(&report->pool, d->layers->slots[run - d->choices]->path);
        report->slots += !slot->parts;
        report->filled += !slot->parts && own->kernel;
    }
}

int khub__report_make(khub_report **out, khub__decision *d, khub_error *err)
{
    khub_report *report = khub__calloc(1, sizeof(*report));
    if (!report) return khub__fail_memory(err, "writing a report");
    report->lines = khub__pool_room(&report->pool, d->layers->count, sizeof(*report->lines));
    if (!report->pool.failed) fill(report, d);
    if (report->pool.failed) {
        khub_report_free(report);
        return khub__fail_memory(err, "writing a report");
    }
    *out = report;
    return KHUB_OK;
}

void khub_report_free(khub_report *report)
{
    if (!report) return;
    for (size_t i = 0; i < report->count; i++)
        khub_trust_free((khub_trust *)(uintptr_t)report->lines[i].trust);
    khub__pool_free(&report->pool);
    khub__free(report);
}

size_t khub_report_count(const khub_report *report)
{
    return report->count;
}

size_t khub_report_slots(const khub_report *report)
{
    return report->slots;
}

size_t khub_report_filled(const khub_report *report)
{
    return report->filled;
}

const khub_slot_report *khub_report_at(const khub_report *report, size_t i)
{
    return i < report->count ? &report->lines[i] : NULL;
}
