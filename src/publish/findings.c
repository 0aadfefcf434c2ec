#include "publish/findings.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

enum { FINDINGS_MAX = 1 << 20 };

const char *khub_check_level_name(khub_check_level level)
{
    static const char *const names[] = {"note", "warning", "error"};
    return (unsigned)level < sizeof(names) / sizeof(*names) ? names[level] : "unknown";
}

/* The pointers with the texts behind them. */
static const char *const *copy_items(const khub__names *names)
{
    size_t bytes = names->count * sizeof(char *);
    for (size_t i = 0; i < names->count; i++)
        bytes += strlen(names->items[i]) + 1;
    char **items = khub__malloc(bytes);
    if (!items) return NULL;
    char *text = (char *)(items + names->count);
    for (size_t i = 0; i < names->count; i++) {
        size_t length = strlen(names->items[i]) + 1;
        memcpy(text, names->items[i], length);
        items[i] = text;
        text += length;
    }
    return (const char *const *)items;
}

static void free_finding(const khub_check_finding *finding)
{
    khub__free((void *)(uintptr_t)finding->file);
    khub__free((void *)(uintptr_t)finding->value);
    khub__free((void *)(uintptr_t)finding->words);
    khub__free((void *)(uintptr_t)finding->items);
}

/* 0: no memory, and nothing is left behind. */
static int fill(khub_check_finding *out, const khub_check_report *report, const char *value,
                const khub__names *items, char *words)
{
    size_t count = items ? items->count : 0;
    out->file = khub__strdup(report->file ? report->file : "");
    out->value = khub__strdup(value);
    out->words = words;
    out->items = count ? copy_items(items) : NULL;
    out->item_count = count;
    if (out->file && words && (out->value || !value) && (out->items || !count)) return 1;
    free_finding(out);
    return 0;
}

static char *format_words(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *words = length < 0 ? NULL : khub__malloc((size_t)length + 1);
    if (words) vsnprintf(words, (size_t)length + 1, format, args);
    return words;
}

/* Takes over `words`; NULL: no memory was found for them. */
static void add(khub_check_report *report, const khub_check_finding *like, const khub__names *items,
                char *words)
{
    khub_check_finding finding = *like;
    int room = !report->failed && words && (!items || !items->failed) &&
               khub__grow((void **)&report->findings, &report->capacity, report->count + 1,
                          sizeof(*report->findings), FINDINGS_MAX) == 0;
    if (!room) khub__free(words);
    if (room && fill(&finding, report, like->value, items, words))
        report->findings[report->count++] = finding;
    else
        report->failed = 1;
}

void khub__finding(khub_check_report *report, const char *about, khub_check_level level, const char *value,
                   const khub__names *items, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    khub_check_finding like = {.about = about, .level = level, .value = value};
    add(report, &like, items, format_words(format, args));
    va_end(args);
}

void khub__finding_of(khub_check_report *report, const char *about, khub_check_level level, const char *value,
                      const khub__names *items, const char *format, ...)
{
    if (!items->count && !items->failed) return;
    va_list args;
    va_start(args, format);
    char *start = format_words(format, args), *list = khub__names_words(items), *words = NULL;
    va_end(args);
    if (start && list) {
        khub__text text = {0};
        khub__text_addf(&text, "%s: %s", start, list);
        words = khub__text_take(&text);
    }
    khub__free(start);
    khub__free(list);
    khub_check_finding like = {.about = about, .level = level, .value = value};
    add(report, &like, items, words);
}

void khub_check_report_free(khub_check_report *report)
{
    if (!report) return;
    for (size_t i = 0; i < report->count; i++)
        free_finding(&report->findings[i]);
    khub__free(report->findings);
    khub__free(report);
}

const khub_check_finding *khub_check_report_at(const khub_check_report *report, size_t i)
{
    return report && i < report->count ? &report->findings[i] : NULL;
}

size_t khub_check_report_count(const khub_check_report *report, khub_check_level level)
{
    size_t n = 0;
    for (size_t i = 0; report && i < report->count; i++)
        n += report->findings[i].level == level;
    return n;
}
