#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/path.h"
#include "publish/judge.h"

/* One check under way. */
typedef struct checking {
    khub_check_report *report;
    khub_check_options options;
    khub_error *err;
} checking;

static void judge(const khub__judging *j)
{
    khub__judge_manylinux(j);
    khub__judge_needed(j);
    khub__judge_loading(j);
    khub__judge_undefined(j);
    khub__judge_python(j);
    khub__judge_torch(j);
}

/* A file that can't be read as a library is a finding, unless that is our own fault. */
static int check_content(checking *c, const char *path, const khub__bytes *file)
{
    khub__objects objects;
    khub_error why = {0};
    int rc = khub__objects_read(&objects, file, path, &why);
    if (rc == KHUB_E_FORMAT) {
        size_t n = strlen(path);
        int named = !strncmp(why.message, path, n) && !strncmp(why.message + n, ": ", 2);
        khub__finding(c->report, "file", KHUB_CHECK_LEVEL_ERROR, NULL, NULL, "%s",
                      why.message + (named ? n + 2 : 0));
        return KHUB_OK;
    }
    if (rc != KHUB_OK) return khub__fail(c->err, rc, "%s", why.message);
    for (size_t i = 0; i < objects.count; i++) {
        khub__judging j = {c->report, &objects.items[i], &c->options, path, NULL};
        judge(&j);
    }
    khub__objects_free(&objects);
    return KHUB_OK;
}

static int check_library(checking *c, const char *path)
{
    khub__bytes file;
    int rc = khub__file_map(&file, path, c->err);
    if (rc != KHUB_OK) return rc;
    c->report->file = path;
    rc = check_content(c, path, &file);
    khub__bytes_free(&file);
    return rc;
}

static int start(checking *c, khub_check_report **out, const khub_check_options *options)
{
    int rc = khub__options(&c->options, sizeof(c->options), options, "khub_check_options", c->err);
    if (rc != KHUB_OK) return rc;
    if (!c->options.manylinux) c->options.manylinux = "manylinux_2_28";
    if (!c->options.python) c->options.python = "3.9";
    if (!c->options.macos) c->options.macos = "15.0";
    rc = khub__manylinux_check(c->options.manylinux, c->err);
    if (rc != KHUB_OK) return rc;
    *out = c->report = khub__calloc(1, sizeof(*c->report));
    return *out ? KHUB_OK : khub__fail_memory(c->err, "checking a kernel");
}

int khub_check_kernel(khub_check_report **out, const char *name, const khub_check_options *options,
                      khub_error *err)
{
    int rc = khub__given("khub_check_kernel", out && name, err);
    if (out) *out = NULL;
    if (rc != KHUB_OK) return rc;
    checking c = {.options = {0}, .err = err};
    rc = start(&c, out, options);
    if (rc == KHUB_OK) rc = check_library(&c, name);
    if (rc == KHUB_OK && c.report->failed) rc = khub__fail_memory(err, "checking a kernel");
    if (rc != KHUB_OK) {
        khub_check_report_free(*out);
        *out = NULL;
    } else {
        (*out)->file = NULL;
    }
    return rc;
}
