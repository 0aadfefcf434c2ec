/* Platforms as data: reading, writing, contradictions, narrowing. */
#include "failing_memory.h"

#include "platform/platform.h"

#include <khub/log.h>

#include <stdio.h>

static khub_platform *parse(const char *json)
{
    khub_error err = {0};
    khub_platform *p;
    ck_khub_ok(khub_platform_parse(&p, json, strlen(json), "p.json", &err), &err);
    return p;
}

#define SHORT                                                                                                \
    "{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"cu128\",\"torch\":\"2.10\",\"torch_cxx11_abi\":"    \
    "true,\"tvm_ffi\":\"0.1\",\"macos\":null,\"archs\":[\"9.0\"]}"

START_TEST(short_file)
{
    khub_platform *p = parse(SHORT);
    ck_assert_str_eq(khub_platform_os(p), "linux");
    ck_assert_str_eq(khub_platform_arch(p), "x86_64");
    ck_assert_str_eq(khub_platform_backend(p), "cu128");
    ck_assert_str_eq(p->backend->name, "cuda");
    ck_assert_int_eq(p->backend_version.major, 12);
    ck_assert_int_eq(p->backend_version.minor, 8);
    ck_assert_str_eq(khub_platform_torch(p), "2.10");
    ck_assert_int_eq(p->torch.minor, 10);
    ck_assert_int_eq(p->torch.patch, -1);
    ck_assert_int_eq(p->torch_cxx11_abi, 1);
    ck_assert_str_eq(khub_platform_tvm_ffi(p), "0.1");
    ck_assert_ptr_null(khub_platform_macos(p));
    ck_assert_str_eq(khub_platform_device_arch(p, 0), "9.0");
    ck_assert_ptr_null(khub_platform_device_arch(p, 1));
    ck_assert_uint_eq(khub_platform_threads(p), 0);
    ck_assert_ptr_null(khub_platform_feature(p, 0));
    ck_assert_ptr_null(khub_platform_library(p, 0));
    khub_platform_free(p);
}
END_TEST

START_TEST(empty_file_is_all_unknown)
{
    khub_platform *p = parse("{}");
    ck_assert_ptr_null(khub_platform_os(p));
    ck_assert_ptr_null(khub_platform_arch(p));
    ck_assert_ptr_null(khub_platform_backend(p));
    ck_assert_ptr_null(khub_platform_torch(p));
    ck_assert_int_eq(p->torch_cxx11_abi, -1);
    ck_assert_int_eq(p->macos.major, -1);
    khub_platform_free(p);
}
END_TEST

static const char *const complete[] = {
    SHORT,
    "{}",
    "{\"os\":\"darwin\",\"arch\":\"arm64\",\"backend\":\"metal\",\"macos\":\"26.1\"}",
    "{\"os\":\"linux\",\"arch\":\"aarch64\",\"backend\":\"xpu\",\"tvm_ffi\":\"0.1.16\"}",
    "{\"os\":\"linux\",\"backend\":\"cuda\",\"backend_version\":\"12.10\"}",
    "{\"os\":\"linux\",\"backend\":\"rocm71\",\"archs\":[\"gfx942:sramecc+:xnack-\",\"gfx1036\"]}",
    "{\"torch\":\"2.9.1\",\"torch_cxx11_abi\":false}",
    "{\"torch\":\"2.9.1\",\"torch_backend\":\"cu126\"}",
    "{\"torch\":\"2.9.1\",\"torch_backend\":\"xpu\"}",
    "{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"cu124\",\"archs\":[\"8.6\",\"12.0\"],\"cpu_model\":"
    "\"A "
    "\\\"B\\\" \\\\ \\t "
    "\\u00e4\",\"cpu_features\":[\"avx2\",\"new-one\"],\"cores\":8,\"threads\":2,\"threads_reason\":"
    "\"cgroup quota of "
    "1.5\",\"caches\":{\"l1d\":32768,\"l2\":1048576,\"l3\":null},\"glibc\":\"2.36\",\"libraries\":"
    "[{\"name\":\"libcudart\",\"presence\":\"found\",\"version\":\"12.8.90\",\"path\":\"/"
    "x\",\"how\":\"toolkit\"},"
    "{\"name\":\"libtorch\",\"presence\":\"absent\",\"reason\":\"nowhere\"}],\"accelerators\":[{\"backend\":"
    "\"cuda\","
    "\"presence\":\"found\",\"version\":\"12.4\",\"devices\":[{\"name\":\"a\",\"arch\":\"8.6\",\"memory_"
    "bytes\":"
    "25769803776},{\"name\":null,\"arch\":\"12.0\"}]},{\"backend\":\"xpu\",\"presence\":\"broken\","
    "\"reason\":\"x\"}]}",
};

/* What is written reads back to the same platform: written again it is the same text. */
START_TEST(json_reads_back)
{
    for (size_t i = 0; i < sizeof(complete) / sizeof(*complete); i++) {
        khub_platform *p = parse(complete[i]);
        char *once = khub_platform_json(p);
        khub_platform *q = parse(once);
        char *twice = khub_platform_json(q);
        ck_assert_str_eq(once, twice);
        khub_free(once);
        khub_free(twice);
        khub_platform_free(p);
        khub_platform_free(q);
    }
}
END_TEST

/* … and every field of a complete file is in what is written, with its value. */
START_TEST(json_holds_what_was_read)
{
    const char *given = complete[sizeof(complete) / sizeof(*complete) - 1];
    khub_platform *p = parse(given);
    char *written = khub_platform_json(p);
    json_t *a = json_loads(given, 0, NULL), *b = json_loads(written, 0, NULL), *value;
    const char *key;
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    json_object_foreach (a, key, value) {
        if (strcmp(key, "libraries") != 0 && strcmp(key, "accelerators") != 0)
            ck_assert_msg(json_equal(value, json_object_get(b, key)), "%s differs", key);
    }
    json_t *library = json_array_get(json_object_get(b, "libraries"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(library, "version")), "12.8.90");
    ck_assert(json_is_null(json_object_get(library, "reason")));
    json_t *cuda = json_array_get(json_object_get(b, "accelerators"), 0);
    json_t *device = json_array_get(json_object_get(cuda, "devices"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(device, "memory_bytes")), 25769803776);
    ck_assert_str_eq(json_string_value(json_object_get(b, "backend_version")), "12.4");
    json_decref(a);
    json_decref(b);
    khub_free(written);
    khub_platform_free(p);
}
END_TEST

START_TEST(json_of_bytes_that_are_no_text)
{
    khub_platform *p = parse("{}");
    p->cpu_model = "a\xFF\xC3\xA4\xED\xA0\x80\xF4\x90\x80\x80\xC0\xAF\001z\xE2\x82";
    char *text = khub_platform_json(p);
    json_t *root = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(root);
    /* each byte that belongs to no character is one U+FFFD: 1, then 3, 4, 2, and 2 at the end */
    ck_assert_str_eq(json_string_value(json_object_get(root, "cpu_model")),
                     "a\uFFFD\u00E4\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\001z\uFFFD\uFFFD");
    json_decref(root);
    khub_free(text);
    khub_platform_free(p);
}
END_TEST

START_TEST(bad_files)
{
    static const struct {
        const char *json, *words;
    } table[] = {
        {"{\"backend\":\"cpu\",\"archs\":[\"9.0\"]}", "p.json: \"archs\" lists 9.0, but \"backend\" is cpu"},
        {"{\"backend\":\"metal\",\"os\":\"linux\"}", "\"backend\" is metal, but \"os\" is linux"},
        {"{\"backend\":\"cu128\",\"os\":\"darwin\"}", "\"backend\" is cuda, but \"os\" is darwin"},
        {"{\"torch_backend\":\"cu128\"}", "\"torch_backend\" is cuda, but \"torch\" is unknown"},
        {"{\"torch_cxx11_abi\":true}", "\"torch_cxx11_abi\" is true, but \"torch\" is unknown"},
        {"{\"torch_cxx11_abi\":\"yes\",\"torch\":\"2.10\"}",
         "\"torch_cxx11_abi\" is a string, true or false"},
        {"{\"macos\":\"26.0\",\"os\":\"linux\"}", "\"macos\" is 26.0, but \"os\" is linux"},
        {"{\"backend\":\"cu128\",\"archs\":[\"gfx942\"]}",
         "\"archs\" lists gfx942, but \"backend\" is cu128"},
        {"{\"backend\":\"rocm71\",\"archs\":[\"gfx942\",\"9.0\"]}",
         "\"archs\" lists 9.0, but \"backend\" is rocm71"},
        {"{\"archs\":[\"9.0\"]}", "but \"backend\" is unknown"},
        {"{\"backend\":\"cu\"}", "\"backend\" is \"cu\""},
        {"{\"backend\":\"cu8\"}", "\"backend\" is \"cu8\""},
        {"{\"backend\":\"cu12.8\"}", "\"backend\" is \"cu12.8\""},
        {"{\"backend\":\"CUDA\"}", "\"backend\" is \"CUDA\""},
        {"{\"backend\":\"metal26\"}", "\"backend\" is \"metal26\""},
        {"{\"backend\":\"cu99999999999\"}", "\"backend\" is \"cu99999999999\""},
        {"{\"backend\":\"vulkan\"}", "\"backend\" is \"vulkan\""},
        {"{\"backend\":128}", "\"backend\" is an integer, a string is expected"},
        {"{\"backend\":\"cu128\",\"backend_version\":\"12.6\"}",
         "\"backend\" is cu128, but \"backend_version\" is 12.6"},
        {"{\"backend\":\"cpu\",\"backend_version\":\"12.6\"}", "\"backend\" is cpu, but \"backend_version\""},
        {"{\"backend_version\":\"12.6\"}", "but \"backend\" is unknown"},
        {"{\"torch\":\"2.9\",\"torch_backend\":\"none\"}", "\"torch_backend\" is \"none\", \"cpu\", "},
        {"{\"torch\":\"2\"}", "\"torch\" is \"2\", a version such as"},
        {"{\"torch\":\"two\"}", "\"torch\" is \"two\""},
        {"{\"torch\":2.10}", "\"torch\" is a number, a string is expected"},
        {"{\"tvm_ffi\":\"0.1 \"}", "\"tvm_ffi\" is \"0.1 \""},
        {"{\"tvm_ffi\":\"0.99999999999\"}", "\"tvm_ffi\" is"},
        {"{\"macos\":\"\",\"os\":\"darwin\"}", "\"macos\" is \"\""},
        {"{\"os\":\"\"}", "\"os\" is \"\""},
        {"{\"arch\":\"\"}", "\"arch\" is \"\""},
        {"{\"archs\":\"9.0\"}", "\"archs\" is a string, an array is expected"},
        {"{\"archs\":[9.0]}", "\"archs\"[0] is a number"},
        {"{\"archs\":[\"\"]}", "\"archs\"[0] is \"\""},
        {"{\"cores\":-1}", "\"cores\" is -1"},
        {"{\"cores\":2,\"threads\":3}", "\"threads\" is 3, but \"cores\" is 2"},
        {"{\"cores\":1e300}", "\"cores\" is a number, an integer"},
        {"{\"libraries\":[1]}", "\"libraries\"[0] is an integer, an object"},
        {"{\"libraries\":[{\"presence\":\"found\"}]}", "an entry of \"libraries\" has no \"name\""},
        {"{\"libraries\":[{\"name\":\"x\"}]}", "\"presence\" is \"\""},
        {"{\"libraries\":[{\"name\":\"x\",\"presence\":\"there\"}]}", "\"presence\" is \"there\""},
        {"{\"accelerators\":[{\"backend\":\"cuda\",\"presence\":\"found\",\"devices\":[[]]}]}",
         "\"devices\"[0] is an array"},
        {"{\"accelerators\":[{\"backend\":\"cuda\",\"presence\":\"found\",\"version\":\"x\"}]}",
         "\"version\" is \"x\""},
        {"{\"backend\":\"cu128\",\"accelerators\":[{\"backend\":\"cuda\",\"presence\":\"absent\"}]}",
         "\"backend\" is cu128, but \"accelerators\" has it absent"},
        {"{\"backend\":\"cu128\",\"accelerators\":[{\"backend\":\"xpu\",\"presence\":\"absent\"}]}",
         "\"backend\" is cu128, but \"accelerators\" has it not listed"},
        {"{\"backend\":\"cu128\",\"accelerators\":[{\"backend\":\"cuda\",\"presence\":\"found\",\"version\":"
         "\"12.6\"}]}",
         "\"backend\" is cu128, but \"accelerators\" has cuda with version 12.6"},
        {"[]", "p.json: is an array"},
        {"{", "p.json:1: not valid JSON"},
    };
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_platform *p = (khub_platform *)&err;
        ck_khub_fails(khub_platform_parse(&p, table[i].json, strlen(table[i].json), "p.json", &err), &err,
                      KHUB_E_FORMAT, table[i].words);
        ck_assert_ptr_null(p);
        ck_assert_int_eq(khub_platform_parse(&p, table[i].json, strlen(table[i].json), "p.json", NULL),
                         KHUB_E_FORMAT);
    }
}
END_TEST

START_TEST(files)
{
    char path[] = "/tmp/khub-platform-XXXXXX";
    int fd = mkstemp(path);
    khub_error err = {0};
    khub_platform *p;
    ck_assert_int_eq(write(fd, SHORT, sizeof(SHORT) - 1), sizeof(SHORT) - 1);
    ck_khub_ok(khub_platform_read(&p, path, &err), &err);
    ck_assert_str_eq(khub_platform_backend(p), "cu128");
    khub_platform_free(p);
    ck_assert_int_eq(ftruncate(fd, (1 << 20) + 1), 0);
    ck_khub_fails(khub_platform_read(&p, path, &err), &err, KHUB_E_FORMAT, "at most 1048576");
    close(fd);
    unlink(path);
    ck_khub_fails(khub_platform_read(&p, path, &err), &err, KHUB_E_NOTFOUND, path);
    ck_khub_fails(khub_platform_read(&p, "/", &err), &err, KHUB_E_FORMAT, "directory");
}
END_TEST

static char heard[1024];
static int records;

static void listen(void *user, const khub_log_record *record)
{
    (void)user;
    snprintf(heard, sizeof(heard), "%d %s %s: %s", record->level, record->stage, record->object,
             record->text);
    records++;
}

START_TEST(unknown_fields_are_a_warning)
{
    static const struct {
        const char *json, *words;
    } table[] = {
        {"{\"tvm-ffi\":\"0.1\"}", "0 platform p.json: unknown field \"tvm-ffi\" is ignored"},
        {"{\"libraries\":[{\"name\":\"x\",\"presence\":\"absent\",\"colour\":1}]}",
         "0 platform p.json: unknown field \"colour\" in libraries is ignored"},
        {"{\"caches\":{\"l4\":1}}", "0 platform p.json: unknown field \"l4\" in caches is ignored"},
        {"{\"os\":\"linux\",\"arch\":\"AMD64\"}",
         "0 platform p.json: \"arch\" is \"AMD64\": no build is named after it, but after x86_64, aarch64"},
        {"{\"os\":\"plan9\"}", "0 platform p.json: \"os\" is \"plan9\": no build is named after it, but "
                               "after linux, darwin, windows"},
    };
    khub_set_log(listen, NULL);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        records = 0;
        khub_platform_free(parse(table[i].json));
        ck_assert_int_eq(records, 1);
        ck_assert_str_eq(heard, table[i].words);
    }
    records = 0;
    for (size_t i = 0; i < sizeof(complete) / sizeof(*complete); i++)
        khub_platform_free(parse(complete[i]));
    ck_assert_int_eq(records, 0);
}
END_TEST

START_TEST(names_of_machines)
{
    static const struct {
        const char *json, *arch;
    } table[] = {
        {"{\"os\":\"darwin\",\"arch\":\"arm64\"}", "aarch64"},
        {"{\"os\":\"windows\",\"arch\":\"AMD64\"}", "x86_64"},
        {"{\"os\":\"windows\",\"arch\":\"ARM64\"}", "aarch64"},
        {"{\"os\":\"linux\",\"arch\":\"aarch64\"}", "aarch64"},
        {"{\"os\":\"linux\",\"arch\":\"arm64\"}", "arm64"},
        {"{\"os\":\"darwin\",\"arch\":\"x86_64\"}", "x86_64"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_platform *p = parse(table[i].json);
        ck_assert_str_eq(khub_platform_arch(p), table[i].arch);
        khub_platform_free(p);
    }
}
END_TEST

/* Case K1: macOS shows an old program 10.16 for 11, and 16 for 26. */
START_TEST(macos_versions)
{
    static const struct {
        const char *given;
        const char *meant;
    } table[] = {{"10.16", "11"},  {"16.0", "26.0"}, {"16.2", "26.2"},       {"26.1", "26.1"},
                 {"15.7", "15.7"}, {"9", "9"},       {"10.15.7", "10.15.7"}, {"27.0", "27.0"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char json[100];
        snprintf(json, sizeof(json), "{\"os\":\"darwin\",\"macos\":\"%s\"}", table[i].given);
        khub_platform *p = parse(json);
        ck_assert_str_eq(khub_platform_macos(p), table[i].meant);
        khub_platform_free(p);
    }
    khub__version a, b, c;
    khub__version_parse(&a, "26.1");
    khub__version_parse(&b, "15.7");
    khub__version_parse(&c, "9");
    ck_assert_int_gt(khub__version_compare(a, b), 0);
    ck_assert_int_gt(khub__version_compare(b, c), 0);
    ck_assert_int_lt(khub__version_compare(c, a), 0);
}
END_TEST

START_TEST(versions)
{
    static const struct {
        const char *text;
        int ok, major, minor, patch;
    } table[] = {
        {"2.10", 1, 2, 10, -1},  {"2.10.0+cu128", 1, 2, 10, 0}, {"0.1.15.post2", 1, 0, 1, 15},
        {"26", 1, 26, -1, -1},   {"2.11.0a0", 1, 2, 11, 0},     {"2.9.1-rc1", 1, 2, 9, 1},
        {"1.2.3.4", 1, 1, 2, 3}, {"2.10a", 1, 2, 10, -1},       {"", 0, -1, -1, -1},
        {".1", 0, -1, -1, -1},   {"2.", 0, -1, -1, -1},         {"v2.1", 0, -1, -1, -1},
        {"2.1 ", 0, -1, -1, -1}, {"-1.2", 0, -1, -1, -1},       {"1,2", 0, -1, -1, -1},
        {"2.1+", 0, -1, -1, -1}, {"9999999", 0, -1, -1, -1},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__version v;
        ck_assert_msg((khub__version_parse(&v, table[i].text) == 0) == table[i].ok, "%s", table[i].text);
        ck_assert_msg(v.major == table[i].major && v.minor == table[i].minor && v.patch == table[i].patch,
                      "%s: %d.%d.%d", table[i].text, v.major, v.minor, v.patch);
    }
}
END_TEST

/* facts: the last digit is the minor version, all before it the major one. */
START_TEST(backends)
{
    static const struct {
        const char *text, *name;
        int major, minor;
    } table[] = {
        {"cpu", "cpu", -1, -1},       {"metal", "metal", -1, -1}, {"neuron", "neuron", -1, -1},
        {"tpu", "tpu", -1, -1},       {"cu126", "cuda", 12, 6},   {"cu130", "cuda", 13, 0},
        {"cu92", "cuda", 9, 2},       {"rocm71", "rocm", 7, 1},   {"rocm64", "rocm", 6, 4},
        {"xpu20253", "xpu", 2025, 3}, {"cann83", "cann", 8, 3},   {"cuda", NULL, -1, -1},
        {"cu1", NULL, -1, -1},        {"cu12x", NULL, -1, -1},    {"cpu1", NULL, -1, -1},
        {"", NULL, -1, -1},           {"xpu", NULL, -1, -1},      {"rocm", NULL, -1, -1},
        {"cu 128", NULL, -1, -1},     {"Cpu", NULL, -1, -1},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__version v;
        char text[KHUB__VERSION_TEXT];
        const khub__backend *backend = khub__backend_parse(&v, table[i].text);
        ck_assert_msg((backend != NULL) == (table[i].name != NULL), "%s", table[i].text);
        ck_assert_msg(v.major == table[i].major && v.minor == table[i].minor, "%s", table[i].text);
        if (!backend) continue;
        ck_assert_str_eq(backend->name, table[i].name);
        ck_assert_str_eq(khub__backend_text(backend, v, text), table[i].text);
    }
}
END_TEST

/* Case A5: an XPU machine whose version is null, and what select says. */
START_TEST(select_backend)
{
    khub_error err = {0};
    khub_platform *p = parse("{\"os\":\"linux\",\"backend\":\"xpu\",\"backend_version\":null}");
    ck_assert_str_eq(khub_platform_backend(p), "xpu");
    ck_assert_int_eq(p->backend_version.major, -1);
    ck_khub_fails(khub_platform_select(p, "cuda", &err), &err, KHUB_E_INVAL,
                  "backend cuda: this machine hasn't got it; its backends are: cpu, xpu");
    ck_khub_ok(khub_platform_select(p, "xpu", &err), &err);
    ck_khub_ok(khub_platform_select(p, "cpu", &err), &err);
    ck_assert_str_eq(khub_platform_backend(p), "cpu");
    khub_platform_free(p);

    p = parse("{\"os\":\"darwin\",\"arch\":\"arm64\",\"backend\":\"metal\"}");
    ck_khub_fails(khub_platform_select(p, "cuda", &err), &err, KHUB_E_INVAL, "cpu, metal");
    khub_platform_free(p);

    p = parse(SHORT);
    ck_khub_fails(khub_platform_select(p, "cu126", &err), &err, KHUB_E_INVAL, "cpu, cu128");
    ck_assert_str_eq(khub_platform_device_arch(p, 0), "9.0"); /* as before */
    ck_khub_ok(khub_platform_select(p, "cuda", &err), &err);
    ck_khub_ok(khub_platform_select(p, "cu128", &err), &err);
    ck_assert_str_eq(khub_platform_device_arch(p, 0), "9.0");
    ck_khub_ok(khub_platform_select(p, "cpu", &err), &err);
    ck_assert_ptr_null(khub_platform_device_arch(p, 0));
    khub_platform_free(p);
}
END_TEST

/* With a list of accelerators one can go back and forth; what is narrowed reads back, too. */
START_TEST(select_among_accelerators)
{
    khub_error err = {0};
    khub_platform *p = parse(
        "{\"os\":\"linux\",\"backend\":\"cu128\",\"archs\":[\"9.0\"],\"accelerators\":[{\"backend\":\"cuda\","
        "\"presence\":\"found\",\"version\":\"12.8\",\"devices\":[{\"arch\":\"9.0\"},{\"arch\":\"9.0\"},{}]},"
        "{\"backend\":"
        "\"rocm\",\"presence\":\"found\",\"version\":\"6.4\",\"devices\":[{\"arch\":\"gfx942\"},{\"arch\":"
        "\"gfx90a\"}]},"
        "{\"backend\":\"xpu\",\"presence\":\"broken\"}]}");
    ck_khub_fails(khub_platform_select(p, "xpu", &err), &err, KHUB_E_INVAL, "cpu, cu128, rocm");
    ck_khub_fails(khub_platform_select(p, "rocm71", &err), &err, KHUB_E_INVAL, "cpu, cu128, rocm");
    ck_khub_ok(khub_platform_select(p, "rocm64", &err), &err);
    ck_assert_str_eq(khub_platform_backend(p), "rocm64");
    ck_assert_str_eq(khub_platform_device_arch(p, 1), "gfx90a");
    char *json = khub_platform_json(p);
    khub_platform_free(parse(json));
    khub_free(json);
    ck_khub_ok(khub_platform_select(p, "cpu", &err), &err);
    json = khub_platform_json(p);
    khub_platform_free(parse(json));
    khub_free(json);
    ck_khub_ok(khub_platform_select(p, "cuda", &err), &err);
    ck_assert_str_eq(khub_platform_backend(p), "cu128");
    ck_assert_str_eq(khub_platform_device_arch(p, 0), "9.0");
    ck_assert_ptr_null(khub_platform_device_arch(p, 1)); /* each once */
    khub_platform_free(p);
    ck_khub_fails(khub_platform_select(NULL, "cpu", &err), &err, KHUB_E_INVAL, "NULL");
}
END_TEST

/* Case H5: the driver's version decides, whatever runtime lies about. */
START_TEST(driver_and_runtime)
{
    static const char form[] =
        "{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"%s\",\"libraries\":[{\"name\":\"libcudart\","
        "\"presence\":"
        "\"%s\",\"version\":\"%s\",\"path\":\"/usr/local/cuda/lib64/"
        "libcudart.so\",\"how\":\"toolkit\"}],\"accelerators\":"
        "[{\"backend\":\"cuda\",\"presence\":\"%s\",\"version\":%s,\"path\":\"/usr/lib/libcuda.so.1\"}]}";
    static const struct {
        const char *backend, *runtime, *version, *driver, *driver_version;
    } table[] = {{"cu124", "found", "12.8", "found", "\"12.4\""},
                 {"cu130", "found", "12.6", "found", "\"13.0\""},
                 {"cu124", "absent", "12.8", "found", "\"12.4\""},
                 {"cpu", "found", "12.8", "absent", "null"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char json[1000];
        snprintf(json, sizeof(json), form, table[i].backend, table[i].runtime, table[i].version,
                 table[i].driver, table[i].driver_version);
        khub_platform *p = parse(json);
        ck_assert_str_eq(khub_platform_backend(p), table[i].backend);
        ck_assert_str_eq(khub_platform_library(p, 0)->version, table[i].version);
        khub_platform_free(p);
    }
}
END_TEST

static int do_parse(void *user, khub_error *err)
{
    khub_platform *p;
    int rc = khub_platform_parse(&p, user, strlen(user), "p.json", err);
    khub_platform_free(p);
    return rc;
}

static int do_json(void *user, khub_error *err)
{
    char *json = khub_platform_json(user);
    khub_free(json);
    err->code = json ? KHUB_OK : KHUB_E_NOMEM;
    return err->code;
}

/* A refused select leaves the platform as it was. */
static int do_select(void *user, khub_error *err)
{
    khub_platform *p = user;
    const char *other = strcmp(khub_platform_backend(p), "cpu") == 0 ? "cuda" : "cpu";
    char before[40];
    snprintf(before, sizeof(before), "%s", khub_platform_backend(p));
    int rc = khub_platform_select(p, other, err);
    if (rc != KHUB_OK) ck_assert_str_eq(khub_platform_backend(p), before);
    return rc;
}

START_TEST(memory_runs_out)
{
    const char *big = complete[sizeof(complete) / sizeof(*complete) - 1];
    khub_error err;
    int status, refused = 0;
    fm_install();
    json_set_alloc_funcs(malloc, free);
    for (long n = 1; fm_run(do_parse, (void *)(uintptr_t)big, n, &status, &err); n++, refused++)
        fm_check_nomem(n, status, &err);
    ck_assert_int_gt(refused, 1);
    fm_install(); /* jansson's too: it ignores some failures while it reads a string, so OK is an answer */
    for (long n = 1; fm_run(do_parse, (void *)(uintptr_t)big, n, &status, &err); n++)
        if (status != KHUB_OK) fm_check_nomem(n, status, &err);
    ck_assert_int_eq(atomic_load(&fm_live), 0);
    khub_platform *p = parse(big);
    fm_fail_each(do_json, p);
    khub_platform_free(p);
}
END_TEST

START_TEST(memory_runs_out_in_select)
{
    fm_install();
    khub_platform *p = parse(complete[sizeof(complete) / sizeof(*complete) - 1]);
    khub_error err = {0};
    int refused = 0;
    for (int i = 0; i < 2000; i++) { /* the pool takes a block now and then */
        atomic_store(&fm_count, 0);
        atomic_store(&fm_fail_at, i % 2 + 1);
        int rc = do_select(p, &err);
        ck_assert(rc == KHUB_OK || rc == KHUB_E_NOMEM);
        refused += rc == KHUB_E_NOMEM;
        khub_error_clear(&err);
    }
    atomic_store(&fm_fail_at, 0);
    ck_assert_int_gt(refused, 0);
    ck_khub_ok(do_select(p, &err), &err);
    khub_platform_free(p);
}
END_TEST

/* Those inside the CPU count where there are no others; one of several can be asked for. */
START_TEST(devices_that_count)
{
#define DEVICES                                                                                              \
    "\"devices\":[{\"arch\":\"gfx1036\",\"integrated\":true},{\"arch\":\"gfx1201\"},{\"arch\":\"gfx1100\"}]"
    khub_error err = {0};
    khub_platform *p = parse("{\"os\":\"linux\",\"arch\":\"x86_64\",\"accelerators\":[{\"backend\":\"rocm\","
                             "\"presence\":\"found\",\"version\":\"7.1\"," DEVICES "}]}");
    ck_khub_ok(khub_platform_select(p, "rocm", &err), &err);
    ck_assert_str_eq(khub_platform_device_arch(p, 0), "gfx1201");
    ck_assert_str_eq(khub_platform_device_arch(p, 1), "gfx1100");
    ck_assert_ptr_null(khub_platform_device_arch(p, 2));
    static const char *const each[] = {"gfx1036", "gfx1201", "gfx1100"}, *const names[] = {
                                                                             "rocm:0", "rocm71:1", "rocm:2"};
    for (size_t i = 0; i < 3; i++) {
        ck_khub_ok(khub_platform_select(p, names[i], &err), &err);
        ck_assert_str_eq(khub_platform_device_arch(p, 0), each[i]);
        ck_assert_ptr_null(khub_platform_device_arch(p, 1));
    }
    static const char *const wrong[] = {"rocm:3", "rocm:", "rocm:-1", "rocm:1x", "rocm:99999999999999999999",
                                        "cpu:0"};
    for (size_t i = 0; i < 6; i++) {
        err = (khub_error){0};
        ck_khub_fails(khub_platform_select(p, wrong[i], &err), &err, KHUB_E_INVAL, "counted from 0");
        ck_assert_str_eq(khub_platform_device_arch(p, 0), "gfx1100"); /* as before */
    }
    khub_platform_free(p);
}
END_TEST

UNIT("platform", devices_that_count, short_file, empty_file_is_all_unknown, json_reads_back,
     json_holds_what_was_read, json_of_bytes_that_are_no_text, bad_files, files, unknown_fields_are_a_warning,
     names_of_machines, macos_versions, versions, backends, select_backend, select_among_accelerators,
     driver_and_runtime, memory_runs_out, memory_runs_out_in_select)
