#include "layer/report.h"

#include "base/error.h"
#include "base/memory.h"

/* The strings of a line, for what treats them all alike. */
enum { STRINGS = 6 };
static void strings_of(khub_slot_report *line, const char ***out)
{
    out[0] = &line->path, out[1] = &line->layer, out[2] = &line->kernel;
    out[3] = &line->variant, out[4] = &line->function, out[5] = &line->reason;
}

khub_report *khub__report_new(size_t count)
{
    khub_report *report = khub__calloc(1, sizeof(*report));
    if (!report) return NULL;
    report->slots = khub__calloc(count, sizeof(*report->slots));
    if (report->slots) return report;
    khub__free(report);
    return NULL;
}

int khub__report_add(khub_report *report, const khub_slot_report *line, khub_error *err)
{
    khub_slot_report own = *line;
    const char **copies[STRINGS];
    size_t length[STRINGS], all = 0;
    strings_of(&own, copies);
    for (int i = 0; i < STRINGS; i++)
        all += length[i] = *copies[i] ? strlen(*copies[i]) + 1 : 0;
    char *at = khub__malloc(all); /* one block, starting with the path */
    if (!at) return khub__fail_memory(err, "writing a report");
    for (int i = 0; i < STRINGS; i++) {
        if (*copies[i]) *copies[i] = memcpy(at, *copies[i], length[i]);
        at += length[i];
    }
    report->slots[report->count++] = own;
    report->filled += own.kernel != NULL;
    return KHUB_OK;
}

void khub_report_free(khub_report *report)
{
    if (!report) return;
    for (size_t i = 0; i < report->count; i++)
        khub__free((void *)(uintptr_t)report->slots[i].path);
    khub__free(report->slots);
    khub__free(report);
}

size_t khub_report_count(const khub_report *report)
{
    return report->count;
}

size_t khub_report_filled(const khub_report *report)
{
    return report->filled;
}

const khub_slot_report *khub_report_at(const khub_report *report, size_t i)
{
    return i < report->count ? &report->slots[i] : NULL;
}
