/* What the processor has and the system has switched on; what may run at once. Decisions on recorded values,
 * and the machine at hand against what its kernel says. */
#include "root.h"

#include "platform/cpu.h"
#include "platform/threads.h"

#include <sched.h>
#include <unistd.h>

/* Leaf 1 ecx, leaf 7 ebx, ecx, edx, leaf 7.1 eax, XCR0: the first recorded on the processor itself, the
 * second put together from what the manual says of its family. */
#define MILAN                                                                                                \
    {                                                                                                        \
        0xfffa3203, 0x219c07ab, 0x0040069c, 0x88000010, 0, 0x207                                             \
    } /* EPYC 7003 in a virtual machine */
#define CASCADE                                                                                              \
    {                                                                                                        \
        0x7ffefbff, 0xd39ffffb, 0x00000808, 0xbc000400, 0, 0xff                                              \
    } /* Xeon, second generation: VNNI, no BF16 */

#define OSXSAVE     (1u << 27)
#define AVX_BITS    (1u << 28 | 1u << 29 | 1u << 12 | 1u << 20) /* avx f16c fma sse4.2 */
#define AVX2_BITS   (1u << 5 | 1u << 8)                         /* avx2 bmi2 */
#define AVX512_BITS (1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31)
#define AMX_BITS    (1u << 22 | 1u << 24 | 1u << 25)

/* Case G1. */
START_TEST(x86_features)
{
    static const struct {
        const char *what;
        khub__x86_registers r;
        const char *names;
    } table[] = {
        {"nothing", {0}, ""},
        {"Milan", MILAN, "sse4.2 bmi2 avx f16c fma avx2"},
        {"Cascade Lake", CASCADE,
         "sse4.2 bmi2 avx f16c fma avx2 avx512f avx512cd avx512dq avx512bw avx512vl avx512vnni"},
        {"Cascade Lake, a system that saves no ZMM",
         {0x7ffefbff, 0xd39ffffb, 0x808, 0xbc000400, 0, 0x7},
         "sse4.2 bmi2 avx f16c fma avx2"},
        {"… no opmask",
         {0x7ffefbff, 0xd39ffffb, 0x808, 0xbc000400, 0, 0xc7},
         "sse4.2 bmi2 avx f16c fma avx2"},
        {"… no upper 16 registers",
         {0x7ffefbff, 0xd39ffffb, 0x808, 0xbc000400, 0, 0x67},
         "sse4.2 bmi2 avx f16c fma avx2"},
        {"… ZMM without YMM", {0x7ffefbff, 0xd39ffffb, 0x808, 0xbc000400, 0, 0xe3}, "sse4.2 bmi2"},
        {"AVX2 with OSXSAVE 0", {AVX_BITS, AVX2_BITS, 0, 0, 0, 0x7}, "sse4.2 bmi2"},
        {"AVX2 with OSXSAVE 1",
         {AVX_BITS | OSXSAVE, AVX2_BITS, 0, 0, 0, 0x7},
         "sse4.2 bmi2 avx f16c fma avx2"},
        {"XCR0 without AVX", {AVX_BITS | OSXSAVE, AVX2_BITS, 0, 0, 0, 0x3}, "sse4.2 bmi2"},
        {"XCR0 without SSE", {AVX_BITS | OSXSAVE, AVX2_BITS, 0, 0, 0, 0x5}, "sse4.2 bmi2"},
        {"AVX2 without AVX", {OSXSAVE | 1u << 12, AVX2_BITS, 0, 0, 0, 0x7}, "bmi2"},
        {"AVX2 without FMA and F16C", {OSXSAVE | 1u << 28, AVX2_BITS, 0, 0, 0, 0x7}, "bmi2 avx avx2"},
        {"AVX-512 parts without its foundation",
         {OSXSAVE | AVX_BITS, AVX2_BITS | (AVX512_BITS & ~(1u << 16)), 1u << 11, 1u << 23, 1u << 5, 0xe7},
         "sse4.2 bmi2 avx f16c fma avx2"},
        {"everything",
         {OSXSAVE | AVX_BITS, AVX2_BITS | AVX512_BITS, 1u << 11, AMX_BITS | 1u << 23, 1u << 4 | 1u << 5,
          0x600e7},
         "sse4.2 bmi2 avx f16c fma avx2 avx_vnni avx512f avx512cd avx512dq avx512bw avx512vl avx512vnni "
         "avx512bf16 "
         "avx512fp16 amx-tile amx-int8 amx-bf16"},
        {"AMX not switched on",
         {OSXSAVE | AVX_BITS, AVX2_BITS | AVX512_BITS, 0, AMX_BITS, 0, 0xe7},
         "sse4.2 bmi2 avx f16c fma avx2 avx512f avx512cd avx512dq avx512bw avx512vl"},
        {"AMX half switched on",
         {OSXSAVE | AVX_BITS, AVX2_BITS, 0, AMX_BITS, 0, 0x20007},
         "sse4.2 bmi2 avx f16c fma avx2"},
        {"AVX-VNNI on a processor without AVX-512",
         {OSXSAVE | AVX_BITS, AVX2_BITS, 0, 0, 1u << 4, 0x7},
         "sse4.2 bmi2 avx f16c fma avx2 avx_vnni"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const char *names[KHUB__MAX_FEATURES];
        char text[1024] = "";
        size_t count = khub__x86_features(names, &table[i].r);
        for (size_t j = 0; j < count; j++)
            sprintf(text + strlen(text), "%s%s", j ? " " : "", names[j]);
        ck_assert_msg(!strcmp(text, table[i].names), "%s: %s", table[i].what, text);
    }
}
END_TEST

START_TEST(arm_features)
{
    const char *names[KHUB__MAX_FEATURES];
    ck_assert_uint_eq(khub__arm_features(names, 0, 0), 0);
    /* Neoverse-V1, from its kernel: asimd asimddp sve in the first word, i8mm bf16 in the second */
    ck_assert_uint_eq(khub__arm_features(names, 1u << 0 | 1u << 1 | 1u << 20 | 1u << 22, 1u << 13 | 1u << 14),
                      5);
    ck_assert_str_eq(names[0], "neon");
    ck_assert_str_eq(names[1], "dotprod");
    ck_assert_str_eq(names[2], "sve");
    ck_assert_str_eq(names[3], "i8mm");
    ck_assert_str_eq(names[4], "bf16");
    ck_assert_str_eq(khub__arm_model(0x411fd401), "ARM Neoverse-V1");
    ck_assert_ptr_null(khub__arm_model(0));
}
END_TEST

START_TEST(blanks_in_a_model)
{
    char text[] = "  Intel(R)  Xeon(R)   CPU @ 2.00GHz ", none[] = "   ";
    khub__squeeze(text);
    ck_assert_str_eq(text, "Intel(R) Xeon(R) CPU @ 2.00GHz");
    khub__squeeze(none);
    ck_assert_str_eq(none, "");
}
END_TEST

static int listed(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return 1;
    return 0;
}

/* Our names and Linux's. */
#if defined(__aarch64__)
#define FLAGS "\nFeatures"
static const char *const same[][2] = {{"neon", "asimd"}, {"fp16", "asimdhp"}, {"dotprod", "asimddp"},
                                      {"sve", "sve"},    {"sve2", "sve2"},    {"i8mm", "i8mm"},
                                      {"bf16", "bf16"},  {"sme", "sme"}};
#else
#define FLAGS "\nflags"
static const char *const same[][2] = {{"sse4.2", "sse4_2"},
                                      {"bmi2", "bmi2"},
                                      {"avx", "avx"},
                                      {"f16c", "f16c"},
                                      {"fma", "fma"},
                                      {"avx2", "avx2"},
                                      {"avx_vnni", "avx_vnni"},
                                      {"avx512f", "avx512f"},
                                      {"avx512cd", "avx512cd"},
                                      {"avx512dq", "avx512dq"},
                                      {"avx512bw", "avx512bw"},
                                      {"avx512vl", "avx512vl"},
                                      {"avx512vnni", "avx512_vnni"},
                                      {"avx512bf16", "avx512_bf16"},
                                      {"avx512fp16", "avx512_fp16"},
                                      {"amx-tile", "amx_tile"},
                                      {"amx-int8", "amx_int8"},
                                      {"amx-bf16", "amx_bf16"}};
#endif

/* Linux lists a flag when the processor has it and Linux has switched it on: the very same question. */
START_TEST(features_as_linux_sees_them)
{
    static char text[65536];
    FILE *file = fopen("/proc/cpuinfo", "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 2, file)] = 0;
    fclose(file);
    char *flags = strstr(text, FLAGS), *model = strstr(text, "\nmodel name\t: ");
    ck_assert_ptr_nonnull(flags);
    *strchr(flags + 1, '\n') = ' ';
    const char *names[KHUB__MAX_FEATURES];
    size_t count = khub__cpu_features(names);
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
        char word[40];
        snprintf(word, sizeof(word), " %s ", same[i][1]);
        const char *at = strstr(flags + 1, word);
        ck_assert_msg(listed(names, count, same[i][0]) == (at && at < strchr(flags + 1, '\n')), "%s",
                      same[i][0]);
    }
    if (!model) return; /* aarch64's kernel has no name for it */
    char buffer[64];
    *strchr(model + 1, '\n') = 0;
    ck_assert_str_eq(khub__cpu_model(buffer, sizeof(buffer), ""), model + strlen("\nmodel name\t: "));
}
END_TEST

/* Each row: up to four files, and the limit in thousandths of a processor. */
START_TEST(control_groups)
{
    static const struct {
        const char *what, *files[4][2];
        uint64_t limit;
    } table[] = {
        {"no files", {{NULL}}, 0},
        {"unified, in a container",
         {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "150000 100000\n"}},
         1500},
        {"unified, no limit",
         {{"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"}},
         0},
        {"unified, own limit",
         {{"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"}},
         4000},
        {"unified, the parent's is less",
         {{"/proc/self/cgroup", "0::/a/b\n"},
          {"/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"},
          {"/sys/fs/cgroup/a/cpu.max", "25000 50000\n"}},
         500},
        {"unified, only the grandparent has one",
         {{"/proc/self/cgroup", "0::/a/b/c\n"},
          {"/sys/fs/cgroup/a/cpu.max", "300000 100000"},
          {"/sys/fs/cgroup/a/b/c/cpu.max", "max 100000"}},
         3000},
        {"unified, a path outside of what is mounted",
         {{"/proc/self/cgroup", "0::/../x\n"},
          {"/sys/fs/cgroup/cpu.max", "200000 100000\n"},
          {"/sys/fs/x/cpu.max", "1 100000\n"}},
         2000},
        {"split, own limit",
         {{"/proc/self/cgroup", "12:pids:/q\n4:cpu,cpuacct:/a\n0::/q\n"},
          {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n"},
          {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"}},
         2500},
        {"split, mounted under the short name",
         {{"/proc/self/cgroup", "4:cpu,cpuacct:/a\n"},
          {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"},
          {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
         500},
        {"split, no limit",
         {{"/proc/self/cgroup", "4:cpu:/a\n0::/a\n"},
          {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"},
          {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"},
          {"/sys/fs/cgroup/cpu.max", "1 100000\n"}},
         0},
        {"cpuset is not cpu",
         {{"/proc/self/cgroup", "4:cpuset:/\n"},
          {"/sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "50000\n"},
          {"/sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000\n"}},
         0},
        {"almost nothing", {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "1 1000000\n"}}, 1},
        {"period 0", {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "1000 0\n"}}, 0},
        {"not numbers", {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "lots of it\n"}}, 0},
        {"a huge number",
         {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "9223372036854775807 1\n"}},
         0},
        {"lines of another kind",
         {{"/proc/self/cgroup", "\n\n:\nx\n0:\n0::\n::/\n"}, {"/sys/fs/cgroup/cpu.max", "100 100\n"}},
         1000},
        {"empty", {{"/proc/self/cgroup", ""}, {"/sys/fs/cgroup/cpu.max", "100 100\n"}}, 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        make_root();
        for (int f = 0; f < 4 && table[i].files[f][0]; f++)
            put(table[i].files[f][0], table[i].files[f][1]);
        uint64_t limit = khub__cgroup_limit(root);
        ck_assert_msg(limit == table[i].limit, "%s: %llu", table[i].what, (unsigned long long)limit);
        remove_root();
    }
}
END_TEST

START_TEST(a_very_long_group)
{
    static char text[8000], path[7000];
    make_root();
    for (size_t i = 0; i < sizeof(path) - 1; i++)
        path[i] = i % 50 ? 'a' : '/';
    snprintf(text, sizeof(text), "0::%s\n", path);
    put("/proc/self/cgroup", text);
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    ck_assert_uint_eq(khub__cgroup_limit(root), 1000);
    remove_root();
}
END_TEST

START_TEST(processors_online)
{
    static const struct {
        const char *text;
        unsigned count;
    } table[] = {{"0-3\n", 4}, {"0\n", 1},   {"0-1,4,6-7\n", 5},     {"0-127", 128}, {"", 0},
                 {"x\n", 0},   {"3-1\n", 0}, {"0-99999999999\n", 0}, {"0-3,x\n", 0}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        make_root();
        put("/sys/devices/system/cpu/online", table[i].text);
        /* an empty file is like none: then the C library is asked */
        unsigned expected = *table[i].text ? table[i].count : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
        ck_assert_msg(khub__cores_online(root) == expected, "\"%s\"", table[i].text);
        remove_root();
    }
    ck_assert_uint_eq(khub__cores_online(""), (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
}
END_TEST

START_TEST(caches)
{
    static const char *const files[][2] = {
        {"index0/level", "1\n"}, {"index0/type", "Instruction\n"}, {"index0/size", "64K\n"},
        {"index1/level", "1\n"}, {"index1/type", "Data\n"},        {"index1/size", "32K\n"},
        {"index2/level", "2\n"}, {"index2/type", "Unified\n"},     {"index2/size", "2M\n"},
        {"index3/level", "3\n"}, {"index3/type", "Unified\n"},     {"index3/size", "32768K\n"}};
    make_root();
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char path[80];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/%s", files[i][0]);
        put(path, files[i][1]);
    }
    ck_assert_uint_eq(khub__cpu_cache(1, root), 32 << 10);
    ck_assert_uint_eq(khub__cpu_cache(2, root), 2 << 20);
    ck_assert_uint_eq(khub__cpu_cache(3, root), 32 << 20);
    remove_root();
}
END_TEST

START_TEST(affinity)
{
    cpu_set_t mask;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(mask), &mask), 0);
    ck_assert_uint_eq(khub__affinity_count(), (unsigned)CPU_COUNT(&mask));
    int first = 0;
    while (!CPU_ISSET(first, &mask))
        first++;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(mask), &mask), 0);
    ck_assert_uint_eq(khub__affinity_count(), 1);
}
END_TEST

UNIT("platform_machine", x86_features, arm_features, blanks_in_a_model, features_as_linux_sees_them,
     control_groups, a_very_long_group, processors_online, caches, affinity)
