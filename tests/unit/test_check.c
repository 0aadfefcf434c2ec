/* <khub/check.h> as a value; and its readers with each byte of a library changed, each end cut off. What is
 * found is tested through the command (tests/cli/test_check.py). */
#include "unit.h"

#include "failing_memory.h"
#include "fakes.h"

#include "base/file.h"
#include "publish/gpu.h"
#include "publish/object.h"

#include <khub/check.h>

/* A seed of the fuzz targets, the caller's. */
static khub__bytes seed(const char *name)
{
    char path[4096];
    khub_error err = {0};
    khub__bytes bytes;
    snprintf(path, sizeof(path), "%s/fuzz/corpus/%s", getenv("KHUB_SOURCE"), name);
    ck_khub_ok(khub__file_read(&bytes, path, 1 << 20, &err), &err);
    return bytes;
}

static const char *const seeds[] = {"elf/library", "macho/library", "macho/universal", "pe/library"};
enum { SEEDS = sizeof(seeds) / sizeof(*seeds) };

/* Of exactly that length, so that one byte too far is found. 1: it was read as a library. */
static int reads(const char *data, size_t length)
{
    khub__objects objects;
    khub_error err = {0};
    khub__bytes file = {.data = malloc(length ? length : 1), .length = length};
    ck_assert_ptr_nonnull(file.data);
    memcpy(file.data, data, length);
    int rc = khub__objects_read(&objects, &file, "k", &err);
    ck_assert_msg(rc == KHUB_OK || (rc == KHUB_E_FORMAT && !strncmp(err.message, "k: ", 3)), "%s",
                  err.message);
    khub__objects_free(&objects);
    free(file.data);
    return rc == KHUB_OK;
}

START_TEST(each_end_cut_off)
{
    for (int i = 0; i < SEEDS; i++) {
        khub__bytes bytes = seed(seeds[i]);
        ck_assert(reads(bytes.data, bytes.length));
        for (size_t length = 0; length < 64; length++)
            ck_assert_msg(!reads(bytes.data, length), "%s: %zu bytes of it are enough", seeds[i], length);
        for (size_t length = 64; length < bytes.length; length++)
            reads(bytes.data, length);
        khub__bytes_free(&bytes);
    }
}
END_TEST

START_TEST(each_number_changed)
{
    static const unsigned char values[] = {0, 1, 0x7F, 0x80, 0xFF};
    for (int i = 0; i < SEEDS; i++) {
        khub__bytes bytes = seed(seeds[i]);
        for (size_t at = 0; at + 4 <= bytes.length; at += 2)
            for (size_t v = 0; v < sizeof(values); v++) {
                char before[4];
                memcpy(before, bytes.data + at, 4);
                memset(bytes.data + at, values[v], 4);
                reads(bytes.data, bytes.length);
                memcpy(bytes.data + at, before, 4);
                bytes.data[at] = (char)values[v];
                reads(bytes.data, bytes.length);
                memcpy(bytes.data + at, before, 4);
            }
        khub__bytes_free(&bytes);
    }
}
END_TEST

static size_t codes_of(const char *data, size_t length)
{
    khub__object object = {0};
    char *copy = malloc(length ? length : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, length);
    khub__cuda_read(&object, copy, length);
    khub__hip_read(&object, copy, length);
    size_t count = object.code_count;
    khub_free(object.codes);
    khub__names_free(&object.remarks);
    free(copy);
    return count;
}

START_TEST(gpu_code_cut_off)
{
    static const struct {
        const char *name;
        size_t codes;
    } table[] = {{"gpu/cuda", 4}, {"gpu/hip", 2}};
    for (size_t i = 0; i < 2; i++) {
        khub__bytes bytes = seed(table[i].name);
        ck_assert_uint_eq(codes_of(bytes.data, bytes.length), table[i].codes);
        for (size_t length = 0; length < bytes.length; length++)
            ck_assert_uint_lt(codes_of(bytes.data, length), table[i].codes + (length > 0 ? 1 : 0));
        khub__bytes_free(&bytes);
    }
}
END_TEST

static int check_it(void *user, khub_error *err)
{
    khub_check_report *report;
    int rc = khub_check_kernel(&report, user, NULL, err);
    ck_assert_int_eq(rc == KHUB_OK, report != NULL);
    khub_check_report_free(report);
    return rc;
}

START_TEST(no_memory)
{
    char path[4096];
    fake_path(path, "%s", fake_repository("with_sibling"));
    ck_assert_int_eq(check_it(path, NULL), KHUB_OK); /* libelf stays open */
    fm_fail_each_own(check_it, path);
    for (int i = 0; i < SEEDS; i++) {
        snprintf(path, sizeof(path), "%s/fuzz/corpus/%s", getenv("KHUB_SOURCE"), seeds[i]);
        fm_fail_each_own(check_it, path);
    }
}
END_TEST

START_TEST(a_report)
{
    khub_error err = {0};
    const char *path = fake_library("needs_nobody");
    khub_check_report *report;
    ck_khub_ok(khub_check_kernel(&report, path, NULL, &err), &err);
    ck_assert_uint_eq(khub_check_report_count(report, KHUB_CHECK_LEVEL_ERROR), 1);
    size_t i = 0, errors = 0;
    for (const khub_check_finding *f; (f = khub_check_report_at(report, i)); i++) {
        if (f->level != KHUB_CHECK_LEVEL_ERROR) continue;
        errors++;
        ck_assert_str_eq(f->file, path);
        ck_assert_str_eq(f->about, "undefined");
        ck_assert_str_eq(f->value, "nobody");
        ck_assert_uint_eq(f->item_count, 1);
        ck_assert_str_eq(f->items[0], "nobody_has_this");
    }
    ck_assert_uint_eq(errors, 1);
    ck_assert_uint_eq(i, khub_check_report_count(report, KHUB_CHECK_LEVEL_ERROR) +
                             khub_check_report_count(report, KHUB_CHECK_LEVEL_WARNING) +
                             khub_check_report_count(report, KHUB_CHECK_LEVEL_NOTE));
    khub_check_report_free(report);
    ck_assert_str_eq(khub_check_level_name(KHUB_CHECK_LEVEL_WARNING), "warning");
    ck_assert_ptr_null(khub_check_report_at(NULL, 0));
    ck_assert_uint_eq(khub_check_report_count(NULL, KHUB_CHECK_LEVEL_NOTE), 0);
    khub_check_report_free(NULL);
}
END_TEST

START_TEST(what_is_asked_wrongly)
{
    khub_error err = {0};
    khub_check_report *report;
    khub_check_options options;
    KHUB_INIT(&options);
    ck_khub_fails(khub_check_kernel(NULL, "x", NULL, &err), &err, KHUB_E_INVAL, "khub_check_kernel");
    ck_khub_fails(khub_check_kernel(&report, NULL, NULL, &err), &err, KHUB_E_INVAL, "khub_check_kernel");
    ck_assert_ptr_null(report);
    options.manylinux = "manylinux_3";
    ck_khub_fails(khub_check_kernel(&report, "x", &options, &err), &err, KHUB_E_INVAL, "manylinux_2_28");
    options.manylinux = "manylinux2014";
    options.macos = "lion";
    ck_khub_fails(khub_check_kernel(&report, "x", &options, &err), &err, KHUB_E_INVAL, "macos: \"lion\"");
    options.macos = NULL;
    ck_khub_fails(khub_check_kernel(&report, "./nothing/here", &options, &err), &err, KHUB_E_NOTFOUND,
                  "no such");
    ck_khub_fails(khub_check_kernel(&report, "http://x/y", &options, &err), &err, KHUB_E_INVAL, "address");
}
END_TEST

UNIT("check", each_end_cut_off, each_number_changed, gpu_code_cut_off, no_memory, a_report,
     what_is_asked_wrongly)
