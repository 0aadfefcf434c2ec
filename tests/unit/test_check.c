/* <khub/check.h> as a value; and its readers with each byte of a library changed, each end cut off. What is
 * found is tested through the command (tests/cli/test_check.py). */
#include "unit.h"

#include "failing_memory.h"
#include "fakes.h"

#include "base/file.h"
#include "base/memory.h"
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

/* The remark that `object` begins with `start`. */
static int remarks(const khub__object *object, const char *start)
{
    for (size_t i = 0; i < object->remarks.count; i++)
        if (!strncmp(object->remarks.items[i], start, strlen(start))) return 1;
    return 0;
}

static char *put_number(char *at, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        *at++ = (char)(number >> 8 * i);
    return at;
}

static char *put_text(char *at, const char *text)
{
    memcpy(at, text, strlen(text));
    return at + strlen(text);
}

/* One entry of a bundle: 8 bytes each for where its code is and how long that and its name are, then that. */
static char *put_entry(char *at, const char *name, size_t length)
{
    at = put_number(put_number(put_number(at, 0), 0), length);
    memcpy(at, name, length);
    return at + length;
}

static void free_gpu(khub__object *object)
{
    khub_free(object->codes);
    khub__names_free(&object->remarks);
}

/* What stands in the name of one bundle's entry is no other bundle: else n bundles that each hold the rest of
 * the file are read n times. */
START_TEST(bundles_within_each_other)
{
    char inner[96] = {0}, data[256], *end = put_number(put_text(inner, "__CLANG_OFFLOAD_BUNDLE__"), 1);
    size_t length = (size_t)(put_entry(end, "--gfx942", 8) - inner);
    end = put_number(put_text(data, "__CLANG_OFFLOAD_BUNDLE__"), 2);
    end = put_entry(end, "hipv4-a---gfx90a", 16);
    ck_assert_uint_eq((size_t)(end - data) % 8, 0);
    end = put_entry(end, inner, sizeof(inner)); /* too long for an architecture */
    ck_assert_uint_eq(codes_of(inner, length), 1);
    ck_assert_uint_eq(codes_of(data, (size_t)(end - data)), 1);
}
END_TEST

START_TEST(more_gpu_code_than_is_read)
{
    enum { BUNDLES = 65537, BUNDLE = 32, ARCHES = 257, ENTRY = 24 + 10 };
    khub__object object = {0};
    char *data = calloc(BUNDLES, BUNDLE), *end = data, name[16];
    ck_assert_ptr_nonnull(data);
    for (int i = 0; i < BUNDLES; i++)
        end = put_number(put_text(end, "__CLANG_OFFLOAD_BUNDLE__"), 0);
    khub__hip_read(&object, data, (size_t)(end - data) - BUNDLE);
    ck_assert_uint_eq(object.remarks.count, 0);
    khub__hip_read(&object, data, (size_t)(end - data));
    ck_assert(remarks(&object, "it holds more bundles of GPU code than khub reads"));
    end = put_number(put_text(data, "__CLANG_OFFLOAD_BUNDLE__"), ARCHES);
    for (int i = 0; i < ARCHES; i++) {
        snprintf(name, sizeof(name), "--gfx%05d", i);
        end = put_entry(end, name, 10);
    }
    khub__hip_read(&object, data, (size_t)(end - data) - ENTRY);
    ck_assert_uint_eq(object.code_count, ARCHES - 1);
    ck_assert(!remarks(&object, "it holds GPU code for more architectures"));
    khub__hip_read(&object, data, (size_t)(end - data));
    ck_assert_uint_eq(object.code_count, ARCHES - 1);
    ck_assert(remarks(&object, "it holds GPU code for more architectures") && !object.failed);
    free_gpu(&object);
    free(data);
}
END_TEST

/* Mach-O: a header of 32 bytes, the command for symbols of 24, then `count` symbols of 16 bytes that all have
 * the same name of `length` bytes. */
static char *names_over_each_other(size_t *bytes, uint32_t count, uint32_t length)
{
    enum { START = 32 + 24 };
    *bytes = START + (size_t)count * 16 + length;
    char *data = calloc(1, *bytes);
    ck_assert_ptr_nonnull(data);
    const uint32_t header[] = {0xFEEDFACF, 0x01000007, 3, 6, 1, 24, 0, 0},
                   command[] = {2, 24, START, count, START + count * 16, length};
    memcpy(data, header, sizeof(header)); /* the lowest byte first, as this machine has it */
    memcpy(data + 32, command, sizeof(command));
    for (uint32_t i = 0; i < count; i++)
        data[START + i * 16 + 4] = 1; /* for others */
    memset(data + START + (size_t)count * 16, 'n', length - 1);
    return data;
}

START_TEST(more_names_than_bytes)
{
    static const struct {
        uint32_t count, length;
        int rc;
    } table[] = {{200, 100, KHUB_OK}, {200, 4000, KHUB_E_FORMAT}};
    for (size_t i = 0; i < 2; i++) {
        khub__bytes file = {0};
        khub__objects objects;
        khub_error err = {0};
        file.data = names_over_each_other(&file.length, table[i].count, table[i].length);
        ck_assert_int_eq(khub__objects_read(&objects, &file, "k", &err), table[i].rc);
        if (table[i].rc == KHUB_OK)
            ck_assert_uint_eq(objects.items[0].symbol_count, table[i].count);
        else
            ck_assert_ptr_nonnull(
                strstr(err.message, "k: is damaged: it has more names than fit in its 7256"));
        khub__objects_free(&objects);
        free(file.data);
    }
}
END_TEST

/* Numbers of a seed that are changed, each of up to 8 bytes, and what is said then; "": it is read. */
typedef struct change {
    const char *seed;
    size_t padded; /* to so many bytes; 0: as long as it is */
    struct {
        size_t at, bytes; /* bytes 0: no more of them */
        uint64_t value;
    } numbers[4];
    const char *words, *remark; /* remark NULL: none is expected */
} change;

enum { /* where things stand in the seeds; of the PE one relative to its header */
       PROGRAM_HEADER = 64,
       LOAD_1 = PROGRAM_HEADER + 56,
       DYNAMIC = LOAD_1 + 56,
       VERSIONS = 0x288,
       SECTION = 0x6b0,
       CUDA = SECTION + 7 * 64,
       HIP = CUDA + 64,
       PE_AT = 0x3C
};

static void apply(khub__bytes *file, const change *c, size_t base)
{
    if (c->padded > file->length) {
        file->data = khub__realloc(file->data, c->padded);
        ck_assert_ptr_nonnull(file->data);
        memset(file->data + file->length, 0, c->padded - file->length);
        file->length = c->padded;
    }
    for (size_t i = 0; i < 4 && c->numbers[i].bytes; i++)
        for (size_t k = 0; k < c->numbers[i].bytes; k++)
            file->data[base + c->numbers[i].at + k] = (char)(c->numbers[i].value >> 8 * k);
}

static const change changes[] = {
    {"elf/library", 65536, {{56, 2, 1025}}, "it has too many segments", NULL},
    {"elf/library", 0, {{56, 2, 0}}, "it has no segments", NULL},
    {"elf/library", 0, {{16, 2, 2}}, "is a program, not a shared library", NULL},
    {"elf/library", 0, {{LOAD_1 + 32, 8, 1 << 20}}, "is truncated: it has 2608 bytes", NULL},
    {"elf/library", 0, {{LOAD_1 + 8, 8, 0xFFFFFFFFFFFFFF00}}, "is truncated: it has 2608 bytes", NULL},
    {"elf/library", 0, {{LOAD_1 + 8, 8, 0}, {LOAD_1 + 16, 8, 0}, {LOAD_1 + 32, 8, 0x468}}, "", NULL},
    {"elf/library", 0, {{DYNAMIC + 32, 8, 0}}, "it has no dynamic section", NULL},
    {"elf/library", 0, {{VERSIONS + 8, 4, 0xFFFFFF}}, "a version that it needs lies outside", NULL},
    {"elf/library",
     0,
     {{VERSIONS + 2, 2, 2}, {VERSIONS + 28, 4, 0xFFFFFFFF}},
     "a version that it needs lies outside",
     NULL},
    {"elf/library",
     0,
     {{CUDA + 24, 8, 0}, {CUDA + 32, 8, 2608}, {HIP + 24, 8, 0}, {HIP + 32, 8, 2608}},
     "",
     "its sections of GPU code are larger than the file"},
    {"elf/library", 0, {{HIP + 32, 8, 0xFFFFFFFFFFFFFF00}}, "", NULL},
    {"pe/library", 0, {{6, 2, 1025}}, "it has too many sections", NULL},
    {"pe/library", 0, {{6, 2, 1024}}, "its header ends outside of it", NULL},
    {"pe/library", 0, {{24, 2, 0x10B}}, "is a library for Windows of 32 bits", NULL},
    {"pe/library", 0, {{22, 2, 0}}, "is a program, not a DLL", NULL},
    {"pe/library", 0, {{0, 2, 0}}, "it has no PE header", NULL},
    {"pe/library", 0, {{24 + 112, 4, 0x7FFFFFFF}}, "a table that it names lies outside of it", NULL},
    {"pe/library", 0, {{24 + 120, 4, 0x7FFFFFFF}}, "a table that it names lies outside of it", NULL},
    {"pe/library", 0, {{24 + 108, 4, 0}}, "", NULL}};

START_TEST(numbers_out_of_range)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        const change *c = &changes[i];
        khub__bytes file = seed(c->seed);
        khub__objects objects;
        khub_error err = {0};
        apply(&file, c, *c->seed == 'p' ? (unsigned char)file.data[PE_AT] : 0);
        int rc = khub__objects_read(&objects, &file, "k", &err);
        ck_assert_msg((rc == KHUB_OK) == !*c->words && strstr(err.message, c->words), "%zu: %s", i,
                      err.message);
        if (rc == KHUB_OK) ck_assert_msg(!c->remark || remarks(&objects.items[0], c->remark), "%zu", i);
        khub__objects_free(&objects);
        khub__bytes_free(&file);
    }
}
END_TEST

static void put_at(char *data, size_t at, size_t bytes, uint64_t number)
{
    for (size_t i = 0; i < bytes; i++)
        data[at + i] = (char)(number >> 8 * i);
}

/* PE: one section that is the whole file, in it `libraries` descriptors that all have the same name and the
 * same list of `symbols` symbols by number. */
static khub__bytes lists_over_each_other(size_t libraries, size_t symbols)
{
    enum { BYTES = 8192, HEADER = 64, OPTIONAL = HEADER + 24, ADDRESS = 0x10000, NAME = 1000, LIST = 4096 };
    khub__bytes file = {calloc(1, BYTES), BYTES, 0};
    char *data = file.data;
    ck_assert_ptr_nonnull(data);
    memcpy(data, "MZ", 2);
    memcpy(data + HEADER, "PE", 2);
    memcpy(data + NAME, "k.dll", 5);
    put_at(data, 0x3C, 4, HEADER);
    put_at(data, HEADER + 4, 2, 0x8664);
    put_at(data, HEADER + 6, 2, 1);
    put_at(data, HEADER + 20, 2, 240);
    put_at(data, HEADER + 22, 2, 0x2000);
    put_at(data, OPTIONAL, 2, 0x20B);
    put_at(data, OPTIONAL + 108, 4, 16);
    put_at(data, OPTIONAL + 120, 4, ADDRESS + 1024);
    put_at(data, OPTIONAL + 240 + 12, 4, ADDRESS);
    put_at(data, OPTIONAL + 240 + 16, 4, BYTES);
    for (size_t i = 0; i < libraries; i++) {
        put_at(data, 1024 + 20 * i, 4, ADDRESS + LIST);
        put_at(data, 1024 + 20 * i + 12, 4, ADDRESS + NAME);
    }
    for (size_t i = 0; i < symbols; i++)
        put_at(data, LIST + 8 * i, 8, 1ULL << 63 | i);
    return file;
}

/* In all no more entries are read than the file has room for (1024), and the end of each list is one. */
START_TEST(more_entries_than_bytes)
{
    static const struct {
        size_t libraries, symbols;
        int rc;
    } table[] = {{1, 500, KHUB_OK}, {100, 8, KHUB_OK}, {2, 511, KHUB_E_FORMAT}, {100, 500, KHUB_E_FORMAT}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__bytes file = lists_over_each_other(table[i].libraries, table[i].symbols);
        khub__objects objects;
        khub_error err = {0};
        ck_assert_msg(khub__objects_read(&objects, &file, "k", &err) == table[i].rc, "%zu: %s", i,
                      err.message);
        if (table[i].rc == KHUB_OK)
            ck_assert_str_eq(objects.items[0].needed.items[0], "k.dll");
        else
            ck_assert_ptr_nonnull(strstr(err.message, "a table that it names lies outside of it"));
        khub__objects_free(&objects);
        free(file.data);
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

UNIT("check", each_end_cut_off, each_number_changed, gpu_code_cut_off, bundles_within_each_other,
     more_gpu_code_than_is_read, more_names_than_bytes, numbers_out_of_range, more_entries_than_bytes,
     no_memory, a_report, what_is_asked_wrongly)
