/* metadata.json: what is read, what is refused and in which words. Case B3 of old and odd files. */
#include "unit.h"

#include "failing_memory.h"

#include "base/file.h"
#include "kernel/metadata.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A whole file, as a builder of today writes it. */
static const char full[] =
    "{\"name\":\"relu\",\"id\":\"_relu_cuda_30dc0ae\",\"version\":3,\"license\":\"Apache-2.0\","
    "\"upstream\":\"up\",\"source\":\"src\",\"kernels-minver\":\"0.16.0\","
    "\"backend\":{\"type\":\"cuda\",\"archs\":[\"8.0\",\"9.0+PTX\"],\"later\":1},"
    "\"python-depends\":[\"einops\"],"
    "\"kernel-depends\":[{\"repo-id\":\"org/x\",\"version\":0},{\"repo-id\":\"org/"
    "y\",\"revision\":\"main\"}],"
    "\"digest\":{\"algorithm\":\"sha256\",\"files\":{\"a.so\":\"AA==\"}},"
    "\"provenance\":{\"kernel-builder\":{\"version\":\"0.9\",\"commit\":\"c1\",\"dirty\":false},"
    "\"kernel\":{\"sha\":\"c2\",\"dirty\":true}},\"of-tomorrow\":[1,2]}";

/* A small valid file with one member replaced or added: `member` is `"key":value`. */
static const char *with(const char *key, const char *value)
{
    static const char *const base[][2] = {{"name", "\"relu\""},
                                          {"id", "\"_relu\""},
                                          {"version", "1"},
                                          {"license", "\"MIT\""},
                                          {"backend", "{\"type\":\"cpu\"}"},
                                          {"python-depends", "[]"}};
    static char text[4096];
    int known = 0;
    size_t n = (size_t)snprintf(text, sizeof(text), "{");
    for (size_t i = 0; i < sizeof(base) / sizeof(*base); i++) {
        int same = !strcmp(base[i][0], key);
        known |= same;
        if (same && !value) continue; /* left out */
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"%s\":%s", n > 1 ? "," : "", base[i][0],
                              same ? value : base[i][1]);
    }
    if (!known) n += (size_t)snprintf(text + n, sizeof(text) - n, ",\"%s\":%s", key, value);
    snprintf(text + n, sizeof(text) - n, "}");
    return text;
}

static int parse(khub__metadata *out, const char *text, khub_error *err)
{
    return khub__metadata_parse(out, text, strlen(text), "build/x/metadata.json", err);
}

START_TEST(a_whole_file)
{
    khub_error err = {0};
    khub__metadata m;
    ck_khub_ok(parse(&m, full, &err), &err);
    ck_assert_str_eq(m.name, "relu");
    ck_assert_str_eq(m.id, "_relu_cuda_30dc0ae");
    ck_assert_int_eq(m.version, 3);
    ck_assert_str_eq(m.license, "Apache-2.0");
    ck_assert_str_eq(m.upstream, "up");
    ck_assert_str_eq(m.source, "src");
    ck_assert_str_eq(m.kernels_minver, "0.16.0");
    ck_assert_str_eq(m.backend, "cuda");
    ck_assert_uint_eq(m.arch_count, 2);
    ck_assert_str_eq(m.archs[1], "9.0+PTX");
    ck_assert_uint_eq(m.python_depend_count, 1);
    ck_assert_str_eq(m.python_depends[0], "einops");
    ck_assert_uint_eq(m.need_count, 2);
    ck_assert_str_eq(m.needs[0].repo_id, "org/x");
    ck_assert_int_eq(m.needs[0].version, 0);
    ck_assert_ptr_null(m.needs[0].revision);
    ck_assert_int_eq(m.needs[1].version, -1);
    ck_assert_str_eq(m.needs[1].revision, "main");
    ck_assert_str_eq(json_string_value(json_object_get(m.digest, "algorithm")), "sha256");
    ck_assert_str_eq(m.builder_version, "0.9");
    ck_assert_str_eq(m.builder.commit, "c1");
    ck_assert_int_eq(m.builder.dirty, 0);
    ck_assert_str_eq(m.kernel.commit, "c2"); /* "sha", as older builders wrote */
    ck_assert_int_eq(m.kernel.dirty, 1);
    khub__metadata_free(&m);
    khub__metadata_free(&m); /* zeroed: once more does nothing */
}
END_TEST

START_TEST(b3_all_missing_fields_in_one_message)
{
    khub_error err = {0};
    khub__metadata m;
    ck_assert_int_eq(parse(&m, "{\"version\":1,\"license\":\"MIT\",\"python-depends\":[]}", &err),
                     KHUB_E_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(err.message, "build/x/metadata.json: required and missing: name, id, backend "));
    khub_error_clear(&err);
    ck_khub_fails(parse(&m, "{}", &err), &err, KHUB_E_FORMAT,
                  "name, id, version, license, backend, python-depends ");
    ck_khub_fails(parse(&m, with("backend", "{\"archs\":[]}"), &err), &err, KHUB_E_FORMAT,
                  "missing: backend.type ");
    ck_khub_fails(parse(&m, with("backend", "{\"type\":null}"), &err), &err, KHUB_E_FORMAT,
                  "missing: backend.type ");
    ck_khub_fails(parse(&m, with("id", "null"), &err), &err, KHUB_E_FORMAT, "missing: id ");
}
END_TEST

START_TEST(b3_unknown_keys_are_ignored)
{
    khub_error err = {0};
    khub__metadata m;
    static const char *const table[][2] = {{"zzz", "{\"a\":[]}"},
                                           {"backend", "{\"type\":\"cpu\",\"zzz\":1}"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        ck_khub_ok(parse(&m, with(table[i][0], table[i][1]), &err), &err);
        khub__metadata_free(&m);
    }
    ck_khub_fails(parse(&m, with("kernel-depends", "[{\"repo-id\":\"o/x\",\"version\":1,\"zzz\":1}]"), &err),
                  &err, KHUB_E_FORMAT, "\"kernel-depends\"[0] has the unknown key \"zzz\"");
}
END_TEST

START_TEST(b3_wrong_types_are_named)
{
    static const char *const table[][3] = {
        {"version", "\"1\"", "metadata.json: \"version\" is a string, an integer is expected"},
        {"version", "1.0", "\"version\" is a number, an integer is expected"},
        {"version", "-1", "\"version\" is -1"},
        {"version", "99999999999999999999", "not valid JSON"},
        {"name", "7", "\"name\" is an integer, a string is expected"},
        {"id", "[]", "\"id\" is an array, a string is expected"},
        {"license", "1", "\"license\" is an integer"},
        {"upstream", "{}", "\"upstream\" is an object"},
        {"source", "true", "\"source\" is true"},
        {"kernels-minver", "16", "\"kernels-minver\" is an integer"},
        {"backend", "\"cpu\"", "\"backend\" is a string, an object is expected"},
        {"backend", "{\"type\":5}", "\"type\" is an integer, a string is expected"},
        {"backend", "{\"type\":\"CPU\"}", "\"CPU\""},
        {"backend", "{\"type\":\"npu\"}", "\"npu\""},
        {"backend", "{\"type\":\"cuda\",\"archs\":\"9.0\"}", "\"archs\" is a string, an array is expected"},
        {"backend", "{\"type\":\"cuda\",\"archs\":[\"9.0\",9.0]}",
         "\"archs\"[1] is a number, a string is expected"},
        {"python-depends", "\"x\"", "\"python-depends\" is a string, an array is expected"},
        {"python-depends", "[null]", "\"python-depends\"[0] is null, a string is expected"},
        {"kernel-depends", "{}", "\"kernel-depends\" is an object, an array is expected"},
        {"kernel-depends", "[\"o/x\"]", "\"kernel-depends\"[0] is a string, an object is expected"},
        {"kernel-depends", "[{\"version\":1}]", "\"kernel-depends\"[0] has no \"repo-id\""},
        {"kernel-depends", "[{\"repo-id\":\"o/x\"}]", "\"kernel-depends\"[0] has neither"},
        {"kernel-depends", "[{\"repo-id\":\"o/x\",\"version\":1,\"revision\":\"m\"}]", "[0] has both"},
        {"kernel-depends", "[{\"repo-id\":\"o/x\",\"version\":-1}]", "[0] has version -1"},
        {"digest", "\"x\"", "\"digest\" is a string, an object is expected"},
        {"provenance", "[]", "\"provenance\" is an array, an object is expected"},
        {"provenance", "{\"kernel\":1}", "\"kernel\" is an integer"},
        {"provenance", "{\"kernel\":{\"dirty\":\"no\"}}", "\"dirty\" is a string, true or false is expected"},
    };
    khub_error err = {0};
    khub__metadata m;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_khub_fails(parse(&m, with(table[i][0], table[i][1]), &err), &err, KHUB_E_FORMAT, table[i][2]);
}
END_TEST

START_TEST(b3_not_a_metadata_file_at_all)
{
    khub_error err = {0};
    khub__metadata m;
    static char brackets[5000001];
    memset(brackets, '[', 5000000);
    const char *const table[][2] = {{"", "not valid JSON"},
                                    {brackets, "nested deeper"},
                                    {"{\"name\":\"\xFF\"}", "0xff"},
                                    {"\xEF\xBB\xBF{}", "not valid JSON"},
                                    {"[]", "is an array, an object is expected"},
                                    {"{\"name\":\"a\",\"name\":\"b\"}", "duplicate"},
                                    {"version https://git-lfs.github.com/spec/v1\n", "not valid JSON"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_khub_fails(parse(&m, table[i][0], &err), &err, KHUB_E_FORMAT, table[i][1]);
}
END_TEST

START_TEST(names_and_ids)
{
    static const char *const good[] = {"\"ab\"", "\"a9\"", "\"a--b\"", "\"flash-attn3\""};
    static const char *const bad[] = {"\"a\"",   "\"\"",   "\"Ab\"", "\"a-\"",
                                      "\"a_b\"", "\"-a\"", "\"9a\"", "\"a\\nb\""};
    static const char *const bad_ids[] = {"\"\"", "\".\"", "\"../x\"", "\"a/b\"", "\".hidden\""};
    khub_error err = {0};
    khub__metadata m;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        ck_khub_ok(parse(&m, with("name", good[i]), &err), &err);
        khub__metadata_free(&m);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_khub_fails(parse(&m, with("name", bad[i]), &err), &err, KHUB_E_FORMAT, "\"name\" is ");
    for (size_t i = 0; i < sizeof(bad_ids) / sizeof(*bad_ids); i++)
        ck_khub_fails(parse(&m, with("id", bad_ids[i]), &err), &err, KHUB_E_FORMAT, "\"id\" is ");
}
END_TEST

START_TEST(files_that_are_long_or_missing)
{
    khub_error err = {0};
    khub__metadata m;
    char dir[] = "/tmp/khub-metadata-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char path[64];
    snprintf(path, sizeof(path), "%s/metadata.json", dir);
    ck_khub_fails(khub__metadata_read(&m, path, &err), &err, KHUB_E_NOTFOUND, path);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(ftruncate(fd, (off_t)2 << 30), 0); /* sparse: 2 GiB that take no room */
    close(fd);
    ck_khub_fails(khub__metadata_read(&m, path, &err), &err, KHUB_E_FORMAT, "2147483648 bytes long");
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_khub_fails(khub__metadata_read(&m, path, &err), &err, KHUB_E_FORMAT, path);
    ck_assert_int_eq(unlink(path), 0);
    ck_khub_fails(khub__metadata_read(&m, dir, &err), &err, KHUB_E_FORMAT, "is a directory");
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

static int parse_once(void *text, khub_error *err)
{
    khub__metadata m;
    int rc = parse(&m, text, err);
    khub__metadata_free(&m);
    return rc;
}

START_TEST(every_allocation_fails_in_turn)
{
    char text[sizeof(full)];
    memcpy(text, full, sizeof(full));
    fm_fail_each_own(parse_once, text);
}
END_TEST

UNIT("metadata", a_whole_file, b3_all_missing_fields_in_one_message, b3_unknown_keys_are_ignored,
     b3_wrong_types_are_named, b3_not_a_metadata_file_at_all, names_and_ids, files_that_are_long_or_missing,
     every_allocation_fails_in_turn)
