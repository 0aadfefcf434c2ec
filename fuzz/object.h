/* What the fuzz targets of libraries share: any bytes are refused with words, or read into an object that
 * holds together, which is then judged. */
#ifndef FUZZ_OBJECT_H
#define FUZZ_OBJECT_H

#include "publish/rules.h"

#include "base/memory.h"

#include <stdlib.h>

static inline void fuzz_check(int holds)
{
    if (!holds) abort();
}

/* A text of the file ends inside it, or is one of ours. */
static inline void fuzz_check_text(const khub__bytes *file, const char *text)
{
    fuzz_check(text != NULL);
    if (text >= file->data && text < file->data + file->length)
        fuzz_check(memchr(text, 0, (size_t)(file->data + file->length - text)) != NULL);
}

static inline void fuzz_check_object(const khub__bytes *file, const khub__object *o)
{
    fuzz_check(o->arch && !o->failed);
    for (size_t i = 0; i < o->needed.count; i++)
        fuzz_check_text(file, o->needed.items[i]);
    for (size_t i = 0; i < o->paths.count; i++)
        fuzz_check_text(file, o->paths.items[i]);
    for (size_t i = 0; i < o->symbol_count; i++) {
        fuzz_check_text(file, o->symbols[i].name);
        fuzz_check(o->symbols[i].name[0]);
        if (o->symbols[i].version) fuzz_check_text(file, o->symbols[i].version);
        if (o->symbols[i].library) fuzz_check_text(file, o->symbols[i].library);
    }
    for (size_t i = 0; i < o->code_count; i++)
        fuzz_check(strlen(o->codes[i].arch) >= 3);
}

/* Asks no question of the disk: what stands beside a library is another test's. */
static inline void fuzz_judge(const khub__object *o)
{
    static void (*const judges[])(const khub__case *) = {
        khub__check_target, khub__check_manylinux, khub__check_loading, khub__check_undefined,
        khub__check_python, khub__check_torch,     khub__check_codes,
    };
    khub__variant_name variant;
    khub_check_options options = {.manylinux = "manylinux_2_17", .python = "3.9", .macos = "13.0"};
    khub_check_report *report = khub__calloc(1, sizeof(*report));
    fuzz_check(report && khub__variant_name_parse(&variant, "torch-stable-abi210-cu128-x86_64-linux"));
    for (int named = 0; named < 2; named++) {
        khub__case j = {report, o, &options, "k", named ? &variant : NULL};
        for (size_t i = 0; i < sizeof(judges) / sizeof(*judges); i++)
            judges[i](&j);
        khub__check_functions(&j, "k");
    }
    fuzz_check(!report->failed);
    for (size_t i = 0; i < report->count; i++)
        fuzz_check(report->findings[i].about && report->findings[i].words[0]);
    khub_check_report_free(report);
}

static inline void fuzz_object(const uint8_t *data, size_t size)
{
    khub__objects objects;
    khub_error err = {0};
    khub__bytes file = {.data = (char *)(uintptr_t)data, .length = size};
    int rc = khub__objects_read(&objects, &file, "k", &err);
    fuzz_check((rc == KHUB_OK) == (err.code == KHUB_OK) && (rc == KHUB_OK) == !err.message[0]);
    fuzz_check(rc == KHUB_OK || (rc == KHUB_E_FORMAT && !objects.count));
    for (size_t i = 0; i < objects.count; i++) {
        fuzz_check_object(&file, &objects.items[i]);
        if (data[size - 1] % 8 == 0)
            fuzz_judge(&objects.items[i]); /* slow beside reading, and short of surprises */
    }
    khub__objects_free(&objects);
}

#endif
