#include "publish/checking.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"

int khub__is_library_name(const char *name)
{
    static const char *const ends[] = {".so", ".dylib", ".dll", ".pyd"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        size_t m = strlen(ends[i]);
        if (n > m && !strcmp(name + n - m, ends[i])) return 1;
    }
    const char *versioned = strstr(name, ".so.");
    return versioned && versioned > name && !versioned[4 + strspn(versioned + 4, "0123456789.")];
}

int khub__finding_why(khub__checking *c, const char *about, const char *path, const khub_error *why)
{
    if (why->code != KHUB_E_FORMAT && why->code != KHUB_E_NOTFOUND)
        return khub__fail(c->err, why->code, "%s", why->message);
    const char *words = why->message, *line = "";
    size_t n = strlen(path);
    if (!strncmp(words, path, n) && words[n] == ':') { /* "PATH: …", or "PATH:LINE: …" */
        line = words[n + 1] == ' ' ? "" : "line ";
        words += n + 1 + (words[n + 1] == ' ');
    }
    khub__finding(c->report, about, KHUB_CHECK_LEVEL_ERROR, NULL, NULL, "%s%s", line, words);
    return KHUB_OK;
}

int khub__opened_open(khub__opened *out, khub__checking *c, const char *directory, const char *shown,
                      const char *name)
{
    memset(out, 0, sizeof(*out));
    out->path = khub__path_join(directory, name);
    out->shown = khub__path_join(shown, name);
    if (!out->path || !out->shown) return khub__fail_memory(c->err, "checking a library");
    khub_error why = {0};
    c->report->file = out->shown;
    int rc = khub__file_map(&out->file, out->path, &why);
    if (rc == KHUB_OK) rc = khub__objects_read(&out->objects, &out->file, out->path, &why);
    if (rc != KHUB_OK) rc = khub__finding_why(c, "file", out->path, &why);
    c->report->file = NULL;
    return rc;
}

void khub__opened_close(khub__opened *opened)
{
    khub__objects_free(&opened->objects);
    khub__bytes_free(&opened->file);
    khub__free(opened->path);
    khub__free(opened->shown);
    memset(opened, 0, sizeof(*opened));
}

/* 1 for a part of a universal file that another part stands in for on the build's machine. */
static int is_for_another(const khub__objects *objects, size_t i, const khub__variant_name *variant)
{
    if (khub__word_is(variant->arch, objects->items[i].arch)) return 0;
    for (size_t k = 0; k < objects->count; k++)
        if (khub__word_is(variant->arch, objects->items[k].arch)) return 1;
    return 0;
}

static void judge_object(const khub__opened *opened, size_t i, khub__checking *c,
                         const khub__variant_name *variant)
{
    static void (*const judges[])(const khub__case *) = {
        khub__check_target,    khub__check_manylinux, khub__check_needed, khub__check_loading,
        khub__check_undefined, khub__check_python,    khub__check_torch,  khub__check_codes,
    };
    khub__case j = {c->report, &opened->objects.items[i], &c->options, opened->path, variant};
    khub__text label = {0}; /* "libx.dylib (aarch64)" for a part of a universal file */
    khub__text_add(&label, opened->shown);
    if (opened->objects.count > 1) khub__text_addf(&label, " (%s)", j.object->arch);
    if (label.failed) c->report->failed = 1;
    c->report->file = label.data;
    for (size_t k = 0; !label.failed && k < sizeof(judges) / sizeof(*judges); k++)
        judges[k](&j);
    c->report->file = NULL;
    khub__text_free(&label);
}

void khub__opened_judge(const khub__opened *opened, khub__checking *c, const khub__variant_name *variant)
{
    for (size_t i = 0; i < opened->objects.count; i++)
        if (!variant || !is_for_another(&opened->objects, i, variant)) judge_object(opened, i, c, variant);
}
