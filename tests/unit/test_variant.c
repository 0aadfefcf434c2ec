/* Choosing a build: names, rules, GPU architectures, order, messages. Cases A1, A2, A4, A5 and A6. */
#include "unit.h"

#include "failing_memory.h"

#include "platform/platform.h"
#include "variant/archs.h"
#include "variant/choice.h"

#include <stdio.h>

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static khub_platform *machine(const char *json)
{
    khub_error err = {0};
    khub_platform *p;
    ck_khub_ok(khub_platform_parse(&p, json, strlen(json), "machine.json", &err), &err);
    return p;
}

static khub_choice *choose(const char *const *names, size_t count, const khub_platform *platform)
{
    khub_error err = {0};
    khub_choice *choice;
    ck_khub_ok(khub_choose(&choice, names, count, platform, &err), &err);
    ck_assert_uint_eq(khub_choice_count(choice), count);
    return choice;
}

static const khub_decision *decision_on(const khub_choice *choice, const char *name)
{
    for (size_t i = 0; i < khub_choice_count(choice); i++)
        if (!strcmp(khub_choice_at(choice, i)->name, name)) return khub_choice_at(choice, i);
    ck_abort_msg("%s isn't in the list", name);
    return NULL;
}

/* ---- names ---- */

START_TEST(names_are_taken_apart)
{
    static const struct {
        const char *text;
        khub__framework framework;
        int major, minor, abi;
        const char *backend;
        int backend_major, backend_minor;
        const char *arch, *os;
    } table[] = {
        {"torch29-cu126-x86_64-linux", KHUB__TORCH, 2, 9, -1, "cuda", 12, 6, "x86_64", "linux"},
        {"torch210-cxx11-cu130-aarch64-linux", KHUB__TORCH, 2, 10, 1, "cuda", 13, 0, "aarch64", "linux"},
        {"torch25-cxx98-cpu-x86_64-linux", KHUB__TORCH, 2, 5, 0, "cpu", -1, -1, "x86_64", "linux"},
        {"torch29-metal-aarch64-darwin", KHUB__TORCH, 2, 9, -1, "metal", -1, -1, "aarch64", "darwin"},
        {"torch-stable-abi211-xpu20253-x86_64-windows", KHUB__TORCH_STABLE, 2, 11, -1, "xpu", 2025, 3,
         "x86_64", "windows"},
        {"tvm-ffi01-cpu-x86_64-linux", KHUB__TVM_FFI, 0, 1, -1, "cpu", -1, -1, "x86_64", "linux"},
        {"tvm-ffi110-rocm71-x86_64-linux", KHUB__TVM_FFI, 1, 10, -1, "rocm", 7, 1, "x86_64", "linux"},
        {"torch29-cann85-aarch64-linux", KHUB__TORCH, 2, 9, -1, "cann", 8, 5, "aarch64", "linux"},
        {"torch29-neuron-x86_64-linux", KHUB__TORCH, 2, 9, -1, "neuron", -1, -1, "x86_64", "linux"},
        {"torch29-tpu-x86_64-linux", KHUB__TORCH, 2, 9, -1, "tpu", -1, -1, "x86_64", "linux"},
        {"torch29-cu0126-riscv64-freebsd", KHUB__TORCH, 2, 9, -1, "cuda", 12, 6, "riscv64", "freebsd"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        khub__variant_name n;
        ck_assert_msg(khub__variant_name_parse(&n, table[i].text), "%s", table[i].text);
        ck_assert_int_eq(n.framework, table[i].framework);
        ck_assert_int_eq(n.version.major, table[i].major);
        ck_assert_int_eq(n.version.minor, table[i].minor);
        ck_assert_int_eq(n.cxx11_abi, table[i].abi);
        ck_assert_str_eq(n.backend->name, table[i].backend);
        ck_assert_int_eq(n.backend_version.major, table[i].backend_major);
        ck_assert_int_eq(n.backend_version.minor, table[i].backend_minor);
        ck_assert(khub__word_is(n.arch, table[i].arch));
        ck_assert(khub__word_is(n.os, table[i].os));
    }
}
END_TEST

START_TEST(names_of_python_builds)
{
    static const char *const words[] = {"cpu", "cuda", "metal",  "rocm",      "xpu",
                                        "npu", "tpu",  "neuron", "universal", "later"};
    for (size_t i = 0; i < COUNT(words); i++) {
        char text[64];
        snprintf(text, sizeof(text), "torch-%s", words[i]);
        khub__variant_name n;
        ck_assert_msg(khub__variant_name_parse(&n, text), "%s", text);
        ck_assert_int_eq(n.framework, KHUB__NOARCH);
        ck_assert(khub__word_is(n.noarch, words[i]));
    }
}
END_TEST

START_TEST(names_outside_the_grammar)
{
    static const char *const table[] = {
        "",
        "-",
        "torch",
        "torch-",
        "torch2",
        "tvm-ffi",
        "tvm",
        "README.md",
        ".git",
        "__pycache__",
        "future-abi3-cu140-x86_64-linux",
        "torch-stable-abi99x-cu130-x86_64-linux",
        "torch-stable-abi2-cu130-x86_64-linux",
        "torch-stable-abi",
        "torch-a-b",
        "torch2-cpu-x86_64-linux",
        "torch29-x86_64-linux",
        "torch29-cpu-x86_64",
        "torch29-cpu-x86_64-linux-x",
        "torch29-cpu-x86_64-linux-",
        "torch29-cpu--linux",
        "torch29--cpu-x86_64-linux",
        "torch29-cpu-x86_64-",
        "Torch29-cpu-x86_64-linux",
        "torch29-cxx03-cpu-x86_64-linux",
        "torch29-cxx11-cxx11-cpu-x86_64-linux",
        "torch-stable-abi29-cxx11-cu130-x86_64-linux",
        "tvm-ffi01-cxx11-cpu-x86_64-linux",
        "tvm-ffi1-cpu-x86_64-linux",
        "tvm-ffi0.1-cpu-x86_64-linux",
        "torch29-cu6-x86_64-linux",
        "torch29-cu-x86_64-linux",
        "torch29-cuda-x86_64-linux",
        "torch29-rocm7.1-x86_64-linux",
        "torch29-npu-x86_64-linux",
        "torch29-cpu1-x86_64-linux",
        "torch29-cu99999999999999999999999-x86_64-linux",
        "torch99999999999999999999-cpu-x86_64-linux",
        "torch29-cpu-x86_64-linux\n",
        "torch29-cpu-x86 64-linux",
        "torch\xD9\xA2\xD9\xA9-cpu-x86_64-linux", /* digits, but not ours */
        "\xFF\xFE",
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        khub__variant_name n;
        ck_assert_msg(!khub__variant_name_parse(&n, table[i]), "\"%s\" is understood", table[i]);
    }
    char text[300] = "torch-";
    memset(text + 6, 'a', 249); /* 255 bytes: the longest file name */
    khub__variant_name n;
    ck_assert(khub__variant_name_parse(&n, text));
    text[255] = 'a';
    ck_assert(!khub__variant_name_parse(&n, text));
}
END_TEST

/* ---- rules ---- */

#define LINUX_X86 "\"os\":\"linux\",\"arch\":\"x86_64\""

START_TEST(rules_and_their_reasons)
{
    static const struct {
        const char *machine, *name;
        khub_decision_kind kind;
        const char *a, *b; /* both are in the reason */
    } table[] = {
        /* 1. CPU, then OS */
        {LINUX_X86 ",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"", "tvm-ffi01-cpu-x86_64-linux", KHUB_ACCEPTED,
         "", ""},
        {LINUX_X86 ",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"", "tvm-ffi02-cu126-aarch64-darwin",
         KHUB_REJECTED, "CPU aarch64", "x86_64"},
        {LINUX_X86 ",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"", "tvm-ffi02-cu126-x86_64-darwin", KHUB_REJECTED,
         "OS darwin", "linux"},
        {"\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"", "tvm-ffi01-cpu-x86_64-linux", KHUB_REJECTED, "x86_64",
         "unknown"},
        {"\"os\":\"darwin\",\"arch\":\"arm64\",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"",
         "tvm-ffi01-cpu-aarch64-darwin", KHUB_ACCEPTED, "", ""},
        {"\"os\":\"windows\",\"arch\":\"AMD64\",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"",
         "tvm-ffi01-cpu-x86_64-windows", KHUB_ACCEPTED, "", ""},
        {"\"os\":\"linux\",\"arch\":\"riscv64\",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"",
         "tvm-ffi01-cpu-riscv64-linux", KHUB_ACCEPTED, "", ""},
        /* 2. framework */
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.10.1\"", "torch210-cpu-x86_64-linux", KHUB_ACCEPTED,
         "", ""},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.10\"", "torch29-cpu-x86_64-linux", KHUB_REJECTED,
         "Torch 2.9", "2.10"},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.9\"", "torch210-cpu-x86_64-linux", KHUB_REJECTED,
         "Torch 2.10", "2.9"},
        {LINUX_X86 ",\"backend\":\"cpu\"", "torch29-cpu-x86_64-linux", KHUB_REJECTED, "Torch 2.9", "none"},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.10\"", "torch-stable-abi29-cpu-x86_64-linux",
         KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.10\"", "torch-stable-abi210-cpu-x86_64-linux",
         KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"3.0\"", "torch-stable-abi29-cpu-x86_64-linux",
         KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.10\"", "torch-stable-abi211-cpu-x86_64-linux",
         KHUB_REJECTED, "Torch 2.11 or later", "2.10"},
        {LINUX_X86 ",\"backend\":\"cpu\"", "torch-stable-abi29-cpu-x86_64-linux", KHUB_REJECTED,
         "2.9 or later", "none"},
        {LINUX_X86 ",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1.16\"", "tvm-ffi02-cpu-x86_64-linux", KHUB_REJECTED,
         "tvm-ffi 0.2", "0.1"},
        {LINUX_X86 ",\"backend\":\"cpu\"", "tvm-ffi01-cpu-x86_64-linux", KHUB_REJECTED, "tvm-ffi 0.1",
         "none"},
        {LINUX_X86 ",\"backend\":\"cpu\",\"libraries\":[{\"name\":\"libtorch\",\"presence\":\"found\"}]",
         "torch29-cpu-x86_64-linux", KHUB_REJECTED, "Torch 2.9", "can't use the machine's libtorch"},
        {LINUX_X86 ",\"backend\":\"cpu\",\"libraries\":[{\"name\":\"libtorch\",\"presence\":\"broken\"}]",
         "torch-stable-abi29-cpu-x86_64-linux", KHUB_REJECTED, "Torch 2.9 or later",
         "machine's libtorch can't be used (khub platform"},
        /* the tag of the C++ ABI */
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.9\",\"torch_cxx11_abi\":true",
         "torch29-cxx11-cpu-x86_64-linux", KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.9\",\"torch_cxx11_abi\":true",
         "torch29-cxx98-cpu-x86_64-linux", KHUB_REJECTED, "cxx98", "cxx11"},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.9\",\"torch_cxx11_abi\":false",
         "torch29-cxx98-cpu-x86_64-linux", KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.9\"", "torch29-cxx11-cpu-x86_64-linux", KHUB_REJECTED,
         "cxx11", "unknown"},
        /* 3. backend */
        {LINUX_X86 ",\"backend\":\"cu128\",\"tvm_ffi\":\"0.1\"", "tvm-ffi01-cpu-x86_64-linux", KHUB_REJECTED,
         "cpu", "cu128"},
        {LINUX_X86 ",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"", "tvm-ffi01-cu128-x86_64-linux", KHUB_REJECTED,
         "cu128", "cpu"},
        {LINUX_X86 ",\"backend\":\"rocm71\",\"tvm_ffi\":\"0.1\"", "tvm-ffi01-rocm71-x86_64-linux",
         KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"rocm71\",\"tvm_ffi\":\"0.1\"", "tvm-ffi01-rocm70-x86_64-linux",
         KHUB_REJECTED, "rocm 7.0", "7.1"},
        {LINUX_X86 ",\"backend\":\"xpu20253\",\"tvm_ffi\":\"0.1\"", "tvm-ffi01-xpu20252-x86_64-linux",
         KHUB_REJECTED, "xpu 2025.2", "2025.3"},
        {LINUX_X86 ",\"backend\":\"cann85\",\"tvm_ffi\":\"0.1\"", "tvm-ffi01-cann85-x86_64-linux",
         KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"tvm_ffi\":\"0.1\"", "tvm-ffi01-cpu-x86_64-linux", KHUB_REJECTED, "cpu", "unknown"},
        /* the part of Torch for that backend */
        {LINUX_X86 ",\"backend\":\"cu128\",\"torch\":\"2.9\",\"torch_backend\":\"cu126\"",
         "torch29-cu126-x86_64-linux", KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cu128\",\"torch\":\"2.9\",\"torch_backend\":\"cu126\"",
         "torch-stable-abi29-cu128-x86_64-linux", KHUB_REJECTED, "needs a Torch for cu128", "for cu126"},
        {LINUX_X86 ",\"backend\":\"cu128\",\"torch\":\"2.9\",\"torch_backend\":\"cuda\"",
         "torch29-cu128-x86_64-linux", KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cu128\",\"torch\":\"2.9\",\"torch_backend\":\"cpu\"",
         "torch29-cu128-x86_64-linux", KHUB_REJECTED, "needs a Torch for cu128", "for cpu"},
        {LINUX_X86 ",\"backend\":\"rocm71\",\"torch\":\"2.9\",\"torch_backend\":\"rocm70\"",
         "torch29-rocm71-x86_64-linux", KHUB_REJECTED, "needs a Torch for rocm71", "for rocm70"},
        /* a driver runs what was built for an older major, and Torch brings that runtime; a driver that is
           older than Torch's runtime runs none of it */
        {LINUX_X86 ",\"backend\":\"cu130\",\"torch\":\"2.9\",\"torch_backend\":\"cu128\"",
         "torch29-cu128-x86_64-linux", KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cu130\",\"torch\":\"2.9\",\"torch_backend\":\"cu128\"",
         "torch29-cu130-x86_64-linux", KHUB_REJECTED, "needs a Torch for cu130", "for cu128"},
        {LINUX_X86 ",\"backend\":\"cu124\",\"torch\":\"2.9\",\"torch_backend\":\"cu130\"",
         "torch29-cu130-x86_64-linux", KHUB_REJECTED, "13.0", "driver is for 12.4, which is older"},
        {LINUX_X86 ",\"backend\":\"rocm71\",\"torch\":\"2.9\",\"torch_backend\":\"rocm70\"",
         "torch29-rocm70-x86_64-linux", KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"xpu\",\"torch\":\"2.9\",\"torch_backend\":\"xpu20253\"",
         "torch29-xpu20253-x86_64-linux", KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"2.9\",\"torch_backend\":\"cu126\"",
         "torch29-cpu-x86_64-linux", KHUB_ACCEPTED, "", ""},
        {LINUX_X86 ",\"backend\":\"cu128\",\"tvm_ffi\":\"0.1\",\"torch\":\"2.9\",\"torch_backend\":\"cpu\"",
         "tvm-ffi01-cu128-x86_64-linux", KHUB_ACCEPTED, "", ""},
        /* 4. macOS of Metal builds; case K2 */
        {"\"os\":\"darwin\",\"arch\":\"aarch64\",\"backend\":\"metal\",\"tvm_ffi\":\"0.1\",\"macos\":\"26."
         "0\"",
         "tvm-ffi01-metal-aarch64-darwin", KHUB_ACCEPTED, "", ""},
        {"\"os\":\"darwin\",\"arch\":\"aarch64\",\"backend\":\"metal\",\"tvm_ffi\":\"0.1\",\"macos\":\"26\"",
         "tvm-ffi01-metal-aarch64-darwin", KHUB_ACCEPTED, "", ""},
        {"\"os\":\"darwin\",\"arch\":\"aarch64\",\"backend\":\"metal\",\"tvm_ffi\":\"0.1\",\"macos\":\"15."
         "7\"",
         "tvm-ffi01-metal-aarch64-darwin", KHUB_REJECTED, "needs macOS 26.0", "15.7"},
        {"\"os\":\"darwin\",\"arch\":\"aarch64\",\"backend\":\"metal\",\"tvm_ffi\":\"0.1\"",
         "tvm-ffi01-metal-aarch64-darwin", KHUB_REJECTED, "needs macOS 26.0", "unknown"},
        /* 5. Python builds */
        {LINUX_X86 ",\"backend\":\"cu128\"", "torch-cuda", KHUB_NEEDS_PYTHON, "Python", ""},
        {LINUX_X86 ",\"backend\":\"cu128\"", "torch-universal", KHUB_NEEDS_PYTHON, "Python", ""},
        {LINUX_X86 ",\"backend\":\"cu128\"", "torch-cpu", KHUB_REJECTED, "cpu", "cuda"},
        {LINUX_X86 ",\"backend\":\"cann85\"", "torch-npu", KHUB_NEEDS_PYTHON, "Python", ""},
        {LINUX_X86 ",\"backend\":\"cann85\"", "torch-cann", KHUB_REJECTED, "cann", "npu"},
        /* outside the grammar */
        {LINUX_X86 ",\"backend\":\"cpu\"", "lost+found", KHUB_NOT_UNDERSTOOD, "name", ""},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char json[512];
        snprintf(json, sizeof(json), "{%s}", table[i].machine);
        khub_platform *p = machine(json);
        khub_choice *choice = choose(&table[i].name, 1, p);
        const khub_decision *d = khub_choice_at(choice, 0);
        ck_assert_msg(d->kind == table[i].kind, "%zu: %s on %s: %s: %s", i, d->name, json,
                      khub_decision_kind_name(d->kind), d->reason ? d->reason : "");
        if (!*table[i].a)
            ck_assert_msg(!d->reason, "%s: %s", d->name, d->reason);
        else
            ck_assert_msg(strstr(d->reason, table[i].a) && strstr(d->reason, table[i].b), "%s: %s", d->name,
                          d->reason);
        khub_choice_free(choice);
        khub_platform_free(p);
    }
}
END_TEST

START_TEST(decision_names)
{
    ck_assert_str_eq(khub_decision_kind_name(KHUB_ACCEPTED), "accepted");
    ck_assert_str_eq(khub_decision_kind_name(KHUB_NEEDS_PYTHON), "needs python");
    ck_assert_str_eq(khub_decision_kind_name(KHUB_REJECTED), "rejected");
    ck_assert_str_eq(khub_decision_kind_name(KHUB_NOT_UNDERSTOOD), "not understood");
    ck_assert_str_eq(khub_decision_kind_name((khub_decision_kind)77), "unknown");
}
END_TEST

/* ---- order ---- */

static unsigned random_below(unsigned *state, unsigned n)
{
    *state = *state * 1664525u + 1013904223u; /* Numerical Recipes' generator: the same shuffles every time */
    return (*state >> 8) % n;
}

static void shuffle(const char **names, size_t count, unsigned *state)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = random_below(state, (unsigned)i);
        const char *kept = names[i - 1];
        names[i - 1] = names[j];
        names[j] = kept;
    }
}

/* Whatever the order they come in, the names come out as `expected` has them. */
static void check_order(const char *const *expected, size_t count, const khub_platform *p)
{
    const char *names[32];
    unsigned state = 1;
    memcpy(names, expected, count * sizeof(*names));
    for (int round = 0; round < 100; round++) {
        shuffle(names, count, &state);
        khub_choice *choice = choose(names, count, p);
        for (size_t i = 0; i < count; i++)
            ck_assert_str_eq(khub_choice_at(choice, i)->name, expected[i]);
        ck_assert_ptr_null(khub_choice_at(choice, count));
        khub_choice_free(choice);
    }
}

START_TEST(order_of_preference)
{
    static const char *const expected[] = {
        /* accepted: stable ABI, newest first, then the backend's minor; Torch, untagged first; tvm-ffi */
        "torch-stable-abi210-cu126-x86_64-linux",
        "torch-stable-abi29-cu128-x86_64-linux",
        "torch-stable-abi29-cu126-x86_64-linux",
        "torch210-cu128-x86_64-linux",
        "torch210-cu126-x86_64-linux",
        "torch210-cxx11-cu128-x86_64-linux",
        "tvm-ffi01-cu128-x86_64-linux",
        "tvm-ffi01-cu126-x86_64-linux",
        "tvm-ffi01-cu120-x86_64-linux",
        /* Python only: the backend's own before the universal one */
        "torch-cuda",
        "torch-universal",
        /* rejected, in the same order of kinds; of equal ones by name */
        "torch-stable-abi211-cu128-x86_64-linux",
        "torch210-cu129-aarch64-linux", /* the machine's CPU is another, but its CUDA minor is the highest */
        "torch29-cu128-x86_64-linux",
        "torch210-cxx98-cu128-x86_64-linux",
        "tvm-ffi01-cu129-x86_64-linux",
        "tvm-ffi01-cpu-aarch64-linux",
        "tvm-ffi01-cpu-x86_64-linux",
        "torch-cpu",
        "torch-metal",
        /* not understood, by name */
        "README",
        "future-abi3-cu140-x86_64-linux",
        "torch-a-b",
        "torch-stable-abi29-x",
        "torch29-x",
        "tvm-ffi01-x",
    };
    static const char *const majors[] = {"torch-stable-abi30-cpu-x86_64-linux",
                                         "torch-stable-abi210-cpu-x86_64-linux",
                                         "torch-stable-abi29-cpu-x86_64-linux", "torch31-cpu-x86_64-linux"};
    khub_platform *p =
        machine("{" LINUX_X86 ",\"backend\":\"cu128\",\"torch\":\"2.10\",\"torch_cxx11_abi\":true,"
                "\"tvm_ffi\":\"0.1\",\"archs\":[\"9.0\"]}");
    check_order(expected, COUNT(expected), p);
    khub_platform_free(p);
    p = machine("{" LINUX_X86 ",\"backend\":\"cpu\",\"torch\":\"3.1\"}");
    check_order(majors, COUNT(majors), p);
    khub_platform_free(p);
}
END_TEST

/* ---- cases of user-reports.md ---- */

START_TEST(case_a1_each_name_with_its_reason)
{
    static const struct {
        const char *name, *a, *b;
    } builds[] = {{"torch212-cxx11-cu126-x86_64-linux", "2.12", "2.13"},
                  {"torch212-cxx11-cu130-aarch64-linux", "aarch64", "x86_64"},
                  {"tvm-ffi02-cpu-x86_64-linux", "0.2", "0.1"}};
    const char *names[3];
    for (size_t i = 0; i < 3; i++)
        names[i] = builds[i].name;
    khub_platform *p =
        machine("{" LINUX_X86 ",\"backend\":\"cu130\",\"torch\":\"2.13\",\"torch_cxx11_abi\":true,"
                "\"tvm_ffi\":\"0.1\"}");
    khub_choice *choice = choose(names, 3, p);
    ck_assert_ptr_null(khub_choice_chosen(choice));
    khub_error err = {0};
    ck_assert_int_eq(khub_choice_require(choice, "./k", &err), KHUB_E_NOBUILD);
    ck_assert_ptr_nonnull(strstr(err.message, "./k: no build fits this machine"));
    ck_assert_ptr_null(strstr(err.message, "upgrade"));
    for (size_t i = 0; i < 3; i++) {
        const khub_decision *d = decision_on(choice, builds[i].name);
        ck_assert_int_eq(d->kind, KHUB_REJECTED);
        ck_assert_ptr_nonnull(strstr(d->reason, builds[i].a));
        ck_assert_ptr_nonnull(strstr(d->reason, builds[i].b));
        ck_assert_ptr_nonnull(strstr(err.message, d->name));
        ck_assert_ptr_nonnull(strstr(err.message, d->reason));
    }
    khub_choice_free(choice);
    khub_platform_free(p);
}
END_TEST

START_TEST(case_a2_greatest_minor_not_above_the_machine)
{
    static const char *const builds[] = {"torch29-cu126-x86_64-linux", "torch29-cu128-x86_64-linux",
                                         "torch29-cu130-x86_64-linux"};
    static const struct {
        const char *backend;
        int chosen; /* -1: none */
    } table[] = {{"cu129", 1}, {"cu128", 1}, {"cu127", 0}, {"cu124", -1}, {"cu131", 2}, {"cu118", -1}};
    for (size_t i = 0; i < COUNT(table); i++) {
        char json[200];
        snprintf(json, sizeof(json), "{" LINUX_X86 ",\"torch\":\"2.9\",\"backend\":\"%s\"}",
                 table[i].backend);
        khub_platform *p = machine(json);
        const char *names[3];
        unsigned state = 7;
        memcpy(names, builds, sizeof(names));
        for (int round = 0; round < 100; round++) {
            shuffle(names, 3, &state);
            khub_choice *choice = choose(names, 3, p);
            const khub_decision *chosen = khub_choice_chosen(choice);
            ck_assert_msg((chosen != NULL) == (table[i].chosen >= 0), "%s", table[i].backend);
            if (chosen) ck_assert_str_eq(chosen->name, builds[table[i].chosen]);
            khub_choice_free(choice);
        }
        khub_platform_free(p);
    }
}
END_TEST

START_TEST(case_a4_builds_that_this_version_cannot_read)
{
    static const char *const names[] = {"future-abi3-cu140-x86_64-linux",
                                        "torch-stable-abi99x-cu130-x86_64-linux",
                                        "torch29-cu130-x86_64-linux"};
    khub_platform *p = machine("{" LINUX_X86 ",\"backend\":\"cu130\",\"torch\":\"2.9\"}");
    khub_choice *choice = choose(names, 3, p);
    ck_assert_str_eq(khub_choice_chosen(choice)->name, names[2]);
    ck_assert_int_eq(decision_on(choice, names[0])->kind, KHUB_NOT_UNDERSTOOD);
    ck_assert_int_eq(decision_on(choice, names[1])->kind, KHUB_NOT_UNDERSTOOD);
    ck_assert_int_eq(khub_choice_require(choice, "r", NULL), KHUB_OK);
    khub_choice_free(choice);

    choice = choose(names, 2, p);
    khub_error err = {0};
    ck_assert_int_eq(khub_choice_require(choice, "r", &err), KHUB_E_NOBUILD);
    ck_assert_ptr_nonnull(strstr(err.message, "it has builds that this khub ("));
    ck_assert_ptr_nonnull(strstr(err.message, "can't read"));
    ck_assert_ptr_nonnull(strstr(err.message, "upgrade"));
    ck_assert_ptr_nonnull(strstr(err.message, names[0]));
    ck_assert_ptr_nonnull(strstr(err.message, names[1]));
    khub_choice_free(choice);
    khub_platform_free(p);
}
END_TEST

START_TEST(case_a5_the_backend_asked_for)
{
    static const char *const names[] = {"tvm-ffi01-cpu-aarch64-darwin", "torch29-cpu-aarch64-darwin"};
    khub_error err = {0};
    khub_platform *p =
        machine("{\"os\":\"darwin\",\"arch\":\"arm64\",\"backend\":\"metal\",\"macos\":\"26.1\","
                "\"torch\":\"2.9\",\"tvm_ffi\":\"0.1\"}");
    khub_choice *choice = choose(names, 2, p);
    ck_assert_ptr_null(khub_choice_chosen(choice));
    ck_assert_ptr_nonnull(strstr(decision_on(choice, names[0])->reason, "ask for the backend cpu"));
    khub_choice_free(choice);

    ck_khub_fails(khub_platform_select(p, "cuda", &err), &err, KHUB_E_INVAL, "cpu");
    ck_khub_fails(khub_platform_select(p, "cuda", &err), &err, KHUB_E_INVAL, "metal");
    ck_khub_ok(khub_platform_select(p, "cpu", &err), &err);
    choice = choose(names, 2, p);
    ck_assert_str_eq(khub_choice_chosen(choice)->name, "torch29-cpu-aarch64-darwin");
    khub_choice_free(choice);
    khub_platform_free(p);

    static const char *const xpu = "tvm-ffi01-xpu20253-x86_64-linux";
    p = machine("{" LINUX_X86 ",\"backend\":\"xpu\",\"tvm_ffi\":\"0.1\"}");
    choice = choose(&xpu, 1, p);
    ck_assert_int_eq(khub_choice_at(choice, 0)->kind, KHUB_REJECTED);
    ck_assert_ptr_nonnull(strstr(khub_choice_at(choice, 0)->reason, "version unknown"));
    khub_choice_free(choice);
    khub_platform_free(p);
}
END_TEST

START_TEST(case_a6_only_python_builds)
{
    static const char *const names[] = {"torch-universal", "tvm-ffi01-cpu-x86_64-linux"};
    static const char *const turned[] = {"tvm-ffi01-cpu-x86_64-linux", "torch-universal"};
    khub_platform *p = machine("{" LINUX_X86 ",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"}");
    khub_choice *choice = choose(names, 1, p);
    khub_error err = {0};
    ck_assert_ptr_null(khub_choice_chosen(choice));
    ck_khub_fails(khub_choice_require(choice, "r", &err), &err, KHUB_E_NEEDS_PYTHON, "need Python");
    khub_choice_free(choice);
    for (int i = 0; i < 2; i++) {
        choice = choose(i ? turned : names, 2, p);
        ck_assert_str_eq(khub_choice_chosen(choice)->name, "tvm-ffi01-cpu-x86_64-linux");
        khub_choice_free(choice);
    }
    khub_platform_free(p);
}
END_TEST

/* ---- messages ---- */

START_TEST(a_long_list_is_counted)
{
    enum { N = 200 };
    static char texts[N][64];
    const char *names[N];
    for (int i = 0; i < N; i++) {
        snprintf(texts[i], sizeof(texts[i]), "torch29-cu126-arch%03d-linux", i);
        names[i] = texts[i];
    }
    khub_platform *p = machine("{" LINUX_X86 ",\"backend\":\"cpu\"}");
    khub_choice *choice = choose(names, N, p);
    khub_error err = {0};
    char repository[2000];
    memset(repository, 'r', sizeof(repository) - 1);
    repository[sizeof(repository) - 1] = 0;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(khub_choice_require(choice, i ? repository : "r", &err), KHUB_E_NOBUILD);
        int listed = 0, more = 0;
        for (const char *at = err.message; (at = strstr(at, "built for")); at++)
            listed++;
        ck_assert_ptr_nonnull(strstr(err.message, "; and "));
        ck_assert_int_eq(sscanf(strstr(err.message, "; and "), "; and %d more", &more), 1);
        ck_assert_int_eq(listed + more, N);
        ck_assert_int_gt(listed, 3);
        khub_error_clear(&err);
    }
    khub_choice_free(choice);
    choice = choose(NULL, 0, p);
    ck_khub_fails(khub_choice_require(choice, "r", &err), &err, KHUB_E_NOBUILD, "there are none");
    khub_choice_free(choice);
    khub_platform_free(p);
    ck_khub_fails(khub_choose(&choice, names, 1, NULL, &err), &err, KHUB_E_INVAL, "no platform");
}
END_TEST

START_TEST(reasons_are_cut_and_clean)
{
    static const char *const name = "\x1B[31m\n";
    khub_error err = {0};
    khub_platform *p = machine("{" LINUX_X86 ",\"backend\":\"cpu\"}");
    khub_choice *choice = choose(&name, 1, p);
    ck_assert_str_eq(khub_choice_at(choice, 0)->name, name); /* as it is: whoever prints it cleans it */
    ck_khub_fails(khub_choice_require(choice, "r\n", &err), &err, KHUB_E_NOBUILD, "r?: no build");
    khub_choice_require(choice, "r", &err);
    ck_assert_ptr_null(strchr(err.message, 0x1B));
    khub_choice_free(choice);
    khub_platform_free(p);
    khub__verdict v = {.kind = KHUB_REJECTED};
    khub__verdict_add(&v, "a\x1B[31m\nb");
    ck_assert_str_eq(v.reason, "a?[31m?b");
    for (int i = 0; i < 300; i++)
        khub__verdict_add(&v, "\xC3\xA4");
    ck_assert_uint_lt(strlen(v.reason), sizeof(v.reason));
    ck_assert_str_eq(v.reason + strlen(v.reason) - 3, "...");
    size_t letters = strlen(v.reason) - 8 - 3; /* what lies between the eight bytes above and the dots */
    ck_assert_uint_eq(letters % 2, 0);
}
END_TEST

/* ---- GPU architectures ---- */

START_TEST(cuda_architectures)
{
    static const struct {
        const char *entry, *device;
        khub__arch_fit fit;
    } table[] = {
        {"8.0", "8.0", KHUB__ARCH_FITS},          {"8.0", "8.6", KHUB__ARCH_FITS},
        {"8.6", "8.0", KHUB__ARCH_OTHER},         {"8.0", "9.0", KHUB__ARCH_OTHER},
        {"9.0", "8.0", KHUB__ARCH_OTHER},         {"9.0a", "9.0", KHUB__ARCH_FITS},
        {"9.0a", "9.1", KHUB__ARCH_OTHER},        {"10.0f", "10.3", KHUB__ARCH_FITS},
        {"10.3f", "10.0", KHUB__ARCH_OTHER},      {"10.0f", "12.0", KHUB__ARCH_OTHER},
        {"9.0+PTX", "9.0", KHUB__ARCH_FITS},      {"9.0+PTX", "12.0", KHUB__ARCH_FITS},
        {"9.0+PTX", "8.9", KHUB__ARCH_OTHER},     {"9.3+PTX", "9.0", KHUB__ARCH_OTHER},
        {"9.0a+PTX", "9.0", KHUB__ARCH_FITS},     {"9.0a+PTX", "12.0", KHUB__ARCH_OTHER},
        {"10.0f+PTX", "12.0", KHUB__ARCH_OTHER},  {"10.0", "10.0", KHUB__ARCH_FITS},
        {"", "9.0", KHUB__ARCH_UNREADABLE},       {"9", "9.0", KHUB__ARCH_UNREADABLE},
        {"9.", "9.0", KHUB__ARCH_UNREADABLE},     {".0", "9.0", KHUB__ARCH_UNREADABLE},
        {"sm_90", "9.0", KHUB__ARCH_UNREADABLE},  {"9.0b", "9.0", KHUB__ARCH_UNREADABLE},
        {"9.0 ", "9.0", KHUB__ARCH_UNREADABLE},   {"9.0+ptx", "9.0", KHUB__ARCH_UNREADABLE},
        {"9.0af", "9.0", KHUB__ARCH_UNREADABLE},  {"9.0+PTXa", "9.0", KHUB__ARCH_UNREADABLE},
        {"9999.0", "9.0", KHUB__ARCH_UNREADABLE}, {"-9.0", "9.0", KHUB__ARCH_UNREADABLE},
    };
    for (size_t i = 0; i < COUNT(table); i++)
        ck_assert_msg(khub__cuda_arch_fits(table[i].entry, table[i].device) == table[i].fit, "\"%s\" on %s",
                      table[i].entry, table[i].device);
}
END_TEST

START_TEST(rocm_architectures)
{
    static const struct {
        const char *entry, *device;
        khub__arch_fit fit;
    } table[] = {
        {"gfx942", "gfx942", KHUB__ARCH_FITS},
        {"gfx942", "gfx942:sramecc+:xnack-", KHUB__ARCH_FITS},
        {"gfx90a", "gfx908", KHUB__ARCH_OTHER},
        {"gfx908", "gfx90a", KHUB__ARCH_OTHER},
        {"gfx1100", "gfx1101", KHUB__ARCH_OTHER},
        {"gfx902", "gfx942", KHUB__ARCH_OTHER},
        {"gfx1030", "gfx1130", KHUB__ARCH_OTHER},
        {"gfx90a:xnack+", "gfx90a:sramecc+:xnack+", KHUB__ARCH_FITS},
        {"gfx90a:xnack+", "gfx90a:sramecc+:xnack-", KHUB__ARCH_OTHER},
        {"gfx90a:xnack+", "gfx90a", KHUB__ARCH_OTHER},
        {"gfx90a:xnack-", "gfx90a:sramecc+:xnack-", KHUB__ARCH_FITS},
        {"gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-", KHUB__ARCH_FITS},
        {"gfx90a:xnack-:sramecc+", "gfx90a:sramecc+:xnack-", KHUB__ARCH_FITS},
        {"gfx90a:xnac+", "gfx90a:xnack+", KHUB__ARCH_OTHER},
        {"gfx9-generic", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"9.0", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"gfx", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"gfx90", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"gfx90g", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"gfx90A", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"gfxa0a", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"gfx12345", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"gfx90a:", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"gfx90a:xnack", "gfx90a", KHUB__ARCH_UNREADABLE},
        {"gfx90a:+", "gfx90a", KHUB__ARCH_UNREADABLE},
    };
    for (size_t i = 0; i < COUNT(table); i++)
        ck_assert_msg(khub__rocm_arch_fits(table[i].entry, table[i].device) == table[i].fit, "\"%s\" on %s",
                      table[i].entry, table[i].device);
}
END_TEST

/* Case I2: base, features, steps in hexadecimal. */
START_TEST(case_i2_the_parts_of_a_gfx_name)
{
    static const struct {
        const char *text;
        int major, minor, step;
        const char *features;
    } table[] = {{"gfx90a", 9, 0, 10, ""},
                 {"gfx908", 9, 0, 8, ""},
                 {"gfx942:sramecc+:xnack-", 9, 4, 2, ":sramecc+:xnack-"},
                 {"gfx1103", 11, 0, 3, ""},
                 {"gfx1201", 12, 0, 1, ""}};
    khub__gfx g;
    for (size_t i = 0; i < COUNT(table); i++) {
        ck_assert(khub__gfx_parse(&g, table[i].text));
        ck_assert_int_eq(g.major, table[i].major);
        ck_assert_int_eq(g.minor, table[i].minor);
        ck_assert_int_eq(g.step, table[i].step);
        ck_assert_str_eq(g.features, table[i].features);
    }
    ck_assert(!khub__gfx_parse(&g, "unknown"));
}
END_TEST

START_TEST(architectures_of_a_build)
{
    static const struct {
        const char *machine, *name;
        const char *entries[4];
        khub_decision_kind kind;
        const char *words[3];
    } table[] = {
        {"\"backend\":\"cu128\",\"archs\":[\"9.0\"]",
         "tvm-ffi01-cu128-x86_64-linux",
         {"8.0", "9.0"},
         KHUB_ACCEPTED,
         {NULL}},
        {"\"backend\":\"cu128\",\"archs\":[\"9.0\"]",
         "tvm-ffi01-cu128-x86_64-linux",
         {"7.5", "8.0"},
         KHUB_REJECTED,
         {"9.0", "7.5, 8.0"}},
        {"\"backend\":\"cu128\",\"archs\":[\"8.6\",\"12.0\"]",
         "tvm-ffi01-cu128-x86_64-linux",
         {"12.0"},
         KHUB_REJECTED,
         {"GPU, 8.6 (it does for 12.0: ask for a device, such as cuda:0)", "built for 12.0"}},
        {"\"backend\":\"cu128\",\"archs\":[\"8.6\",\"12.0\"]",
         "tvm-ffi01-cu128-x86_64-linux",
         {"8.0", "9.0+PTX"},
         KHUB_ACCEPTED,
         {NULL}},
        {"\"backend\":\"cu128\",\"archs\":[\"9.0\"]",
         "tvm-ffi01-cu128-x86_64-linux",
         {"9.0", "sm_120"},
         KHUB_ACCEPTED,
         {"ignored", "sm_120"}},
        {"\"backend\":\"cu128\",\"archs\":[\"9.0\"]",
         "tvm-ffi01-cu128-x86_64-linux",
         {"8.0", "sm_120"},
         KHUB_REJECTED,
         {"built for 8.0", "sm_120"}},
        {"\"backend\":\"cu128\",\"archs\":[\"9.0\"]",
         "tvm-ffi01-cu128-x86_64-linux",
         {"sm_90"},
         KHUB_REJECTED,
         {"9.0", "can't read it: sm_90"}},
        {"\"backend\":\"cu128\",\"archs\":[\"9.0\"]",
         "tvm-ffi01-cu128-x86_64-linux",
         {NULL},
         KHUB_ACCEPTED,
         {"doesn't say"}},
        {"\"backend\":\"cu128\"", "tvm-ffi01-cu128-x86_64-linux", {"8.0"}, KHUB_ACCEPTED, {"unknown", "8.0"}},
        {"\"backend\":\"rocm71\",\"archs\":[\"gfx90a:xnack-\"]",
         "tvm-ffi01-rocm71-x86_64-linux",
         {"gfx90a"},
         KHUB_ACCEPTED,
         {NULL}},
        {"\"backend\":\"rocm71\",\"archs\":[\"gfx1201\"]",
         "tvm-ffi01-rocm71-x86_64-linux",
         {"gfx942", "gfx1100"},
         KHUB_REJECTED,
         {"gfx1201", "gfx942, gfx1100"}},
        {"\"backend\":\"cpu\"", "tvm-ffi01-cpu-x86_64-linux", {"9.0"}, KHUB_ACCEPTED, {NULL}},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char json[512];
        snprintf(json, sizeof(json), "{" LINUX_X86 ",%s}", table[i].machine);
        khub_platform *p = machine(json);
        khub__variant_name name;
        ck_assert(khub__variant_name_parse(&name, table[i].name));
        size_t count = 0;
        while (count < 4 && table[i].entries[count])
            count++;
        khub__verdict v = {.kind = KHUB_ACCEPTED};
        khub__archs_decide(&v, &name, p, table[i].entries, count);
        ck_assert_msg(v.kind == table[i].kind, "%zu: %s", i, v.reason);
        ck_assert_msg((v.reason[0] != 0) == (table[i].words[0] != NULL), "%zu: %s", i, v.reason);
        for (size_t w = 0; w < 3 && table[i].words[w]; w++)
            ck_assert_msg(strstr(v.reason, table[i].words[w]) != NULL, "%zu: %s", i, v.reason);
        khub_platform_free(p);
    }
}
END_TEST

/* ---- memory ---- */

static int choose_once(void *platform, khub_error *err)
{
    static const char *const names[] = {"torch29-cu126-x86_64-linux", "torch-universal", "x",
                                        "tvm-ffi01-cpu-x86_64-linux"};
    khub_choice *choice;
    int rc = khub_choose(&choice, names, 4, platform, err);
    ck_assert_int_eq(choice == NULL, rc != KHUB_OK);
    khub_choice_free(choice);
    return rc;
}

START_TEST(every_allocation_fails_in_turn)
{
    khub_platform *p = machine("{" LINUX_X86 ",\"backend\":\"cpu\",\"tvm_ffi\":\"0.1\"}");
    fm_fail_each(choose_once, p);
    khub_platform_free(p);
}
END_TEST

UNIT("variant", names_are_taken_apart, names_of_python_builds, names_outside_the_grammar,
     rules_and_their_reasons, decision_names, order_of_preference, case_a1_each_name_with_its_reason,
     case_a2_greatest_minor_not_above_the_machine, case_a4_builds_that_this_version_cannot_read,
     case_a5_the_backend_asked_for, case_a6_only_python_builds, a_long_list_is_counted,
     reasons_are_cut_and_clean, cuda_architectures, rocm_architectures, case_i2_the_parts_of_a_gfx_name,
     architectures_of_a_build, every_allocation_fails_in_turn)
