/* Which instruction set the built-in kernels choose (kernels/common/isa.h), by recorded answers of CPUID and
 * XGETBV. */
#include "unit.h"

#include "../../kernels/common/isa.c"

#if defined(__x86_64__)
/* Leaf 1's ECX, leaf 7's EBX, XCR0: a Skylake server, whole and with parts taken away. */
enum { FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29 };
static const uint32_t skylake_1 = 0x7ffefbff, skylake_7 = 0xd39ffffb;
static const uint64_t all_saved = 0xe7, no_zmm = 0x07, no_opmask = 0xc7, no_ymm = 0x03;

START_TEST(what_system_and_processor_have)
{
    static const struct {
        uint32_t leaf1_ecx, leaf7_ebx;
        uint64_t xcr0;
        khub__isa isa;
    } table[] = {
        {skylake_1, skylake_7, all_saved, ISA_avx512},
        {skylake_1, skylake_7, no_zmm, ISA_avx2}, /* AVX-512 in the processor, not in the system */
        {skylake_1, skylake_7, no_opmask, ISA_avx2},
        {skylake_1, skylake_7, no_ymm, ISA_portable}, /* a system that saves SSE only */
        {skylake_1 & ~(uint32_t)OSXSAVE, skylake_7, 0, ISA_portable},
        {skylake_1 & ~(uint32_t)OSXSAVE, skylake_7, all_saved, ISA_portable},
        {skylake_1 & ~(uint32_t)FMA, skylake_7, all_saved, ISA_portable},
        {skylake_1 & ~(uint32_t)F16C, skylake_7, all_saved, ISA_portable},
        {skylake_1 & ~(uint32_t)AVX, skylake_7, all_saved, ISA_portable},
        {skylake_1, skylake_7 & ~(1u << 5), all_saved, ISA_portable}, /* no AVX2 */
        {skylake_1, skylake_7 & ~(1u << 16), all_saved, ISA_avx2},    /* no AVX-512 F, DQ, BW, VL */
        {skylake_1, skylake_7 & ~(1u << 17), all_saved, ISA_avx2},
        {skylake_1, skylake_7 & ~(1u << 30), all_saved, ISA_avx2},
        {skylake_1, skylake_7 & ~(1u << 31), all_saved, ISA_avx2},
        {0x7ed8320b, 0x219c91a9, 0x07, ISA_avx2}, /* AMD Zen 2 */
        {0, 0, 0, ISA_portable},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_msg(khub__isa_of_x86(table[i].leaf1_ecx, table[i].leaf7_ebx, table[i].xcr0) == table[i].isa,
                      "line %zu", i);
}
END_TEST

START_TEST(who_has_vnni)
{
    static const struct {
        int isa;
        uint32_t leaf7_ecx, leaf7_1_eax;
        int has;
    } table[] = {
        {ISA_avx512, 0x00000800, 0, 1}, /* Cascade Lake: AVX512_VNNI */
        {ISA_avx512, 0x00000008, 0x10, 0},
        {ISA_avx2, 0x00000800, 0, 0},    /* whose system saves no ZMM */
        {ISA_avx2, 0x1840072c, 0x10, 1}, /* Alder Lake: AVX-VNNI */
        {ISA_avx2, 0, 0, 0},
        {ISA_portable, 0x00000800, 0x10, 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_msg(khub__isa_vnni_of_x86(table[i].isa, table[i].leaf7_ecx, table[i].leaf7_1_eax) ==
                          table[i].has,
                      "line %zu", i);
    setenv("KHUB_KERNEL_ISA", "avx2", 1); /* that and nothing more */
    ck_assert_int_eq(khub__isa_has_vnni(), 0);
}
END_TEST
START_TEST(what_else_there_is)
{
    enum { BF16_PAIRS = ISA_HAS_AVX512_BF16, TILES = ISA_HAS_AMX_BF16 | ISA_HAS_AMX_INT8 };
    static const struct {
        int isa;
        uint32_t leaf7_edx, leaf7_1_eax;
        uint64_t xcr0;
        unsigned extras;
    } table[] = {
        {ISA_avx512, 0xffdd4432, 0x1c30, 0x602e7, BF16_PAIRS | TILES}, /* Sapphire Rapids */
        {ISA_avx512, 0xffdd4432, 0x1c30, 0x2e7, BF16_PAIRS},           /* under a system without tiles */
        {ISA_avx512, 0xffdd4432, 0x1c30, 0x202e7, BF16_PAIRS},         /* that saves their shape alone */
        {ISA_avx512, 0xffdd4432 & ~(1u << 24), 0x1c30, 0x602e7, BF16_PAIRS},
        {ISA_avx512, 0xffdd4432 & ~(1u << 22), 0x1c30, 0x602e7, BF16_PAIRS | ISA_HAS_AMX_INT8},
        {ISA_avx512, 0xffdd4432 & ~(1u << 25), 0x1c30, 0x602e7, BF16_PAIRS | ISA_HAS_AMX_BF16},
        {ISA_avx512, 0x10000010, 0x20, 0xe7, BF16_PAIRS}, /* Zen 4 */
        {ISA_avx512, 0xbc000400, 0, 0xe7, 0},             /* Skylake */
        {ISA_avx2, 0xffdd4432, 0x1c30, 0x60007, 0},       /* a system that saves no ZMM */
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        ck_assert_msg(khub__isa_extras_of_x86(table[i].isa, table[i].leaf7_edx, table[i].leaf7_1_eax,
                                              table[i].xcr0) == table[i].extras,
                      "line %zu", i);
}
END_TEST

static int times_asked;
static int grant(void)
{
    times_asked++;
    return 0;
}
static int refuse(void)
{
    times_asked++;
    return -1;
}

/* Tiles are asked for where there are some, and a system that refuses them leaves the rest. */
START_TEST(a_system_may_refuse_tiles)
{
    for (unsigned extras = 0; extras < 8; extras++) {
        int tiles = extras > ISA_HAS_AVX512_BF16;
        times_asked = 0;
        ck_assert_uint_eq(khub__isa_permitted(extras, grant), extras);
        ck_assert_uint_eq(khub__isa_permitted(extras, refuse), extras & ISA_HAS_AVX512_BF16);
        ck_assert_int_eq(times_asked, 2 * tiles);
    }
    uint32_t ecx, edx, subleaf;
    find_leaf7(&ecx, &edx, &subleaf);
    if (!(edx >> 24 & 1)) ck_assert_int_ne(ask_for_tiles(), 0); /* the real system, which has none */
}
END_TEST

/* `may`: what the name allows besides. */
static void decided_by(const char *name, unsigned may)
{
    char why[160];
    unsigned has = find_extras((int)best()) & may;
    int can = best() == ISA_avx512 && (has || !may);
    setenv("KHUB_KERNEL_ISA", name, 1);
    ck_assert_int_eq(khub__isa_get(), can ? ISA_avx512 : -1);
    ck_assert_uint_eq(khub__isa_extras(), has);
    ck_assert_uint_eq(khub__isa_extras(), has);
    khub__isa_why(why, sizeof(why));
    ck_assert_msg(strstr(why, name) && strstr(why, "which this processor or its system lacks"), "%s", why);
}
START_TEST(avx512_and_nothing_more)
{
    decided_by("avx512", 0);
}
END_TEST
START_TEST(avx512_with_pairs_of_bfloat16)
{
    decided_by("avx512_bf16", ISA_HAS_AVX512_BF16);
}
END_TEST
START_TEST(avx512_with_tiles)
{
    decided_by("amx", ISA_HAS_AMX_BF16 | ISA_HAS_AMX_INT8);
}
END_TEST
START_TEST(all_there_is_unless_told)
{
    unsetenv("KHUB_KERNEL_ISA");
    ck_assert_uint_eq(khub__isa_extras(), find_extras((int)best()));
}
END_TEST
#define OF_X86                                                                                               \
    a_system_may_refuse_tiles, avx512_and_nothing_more, avx512_with_pairs_of_bfloat16, avx512_with_tiles,    \
        all_there_is_unless_told
#else
START_TEST(nothing_else)
{
    ck_assert_uint_eq(khub__isa_extras(), 0);
}
END_TEST
#define OF_X86 nothing_else

START_TEST(what_else_there_is)
{
    ck_assert_int_eq(by_name("amx"), -1); /* a name of other processors */
}
END_TEST

START_TEST(who_has_vnni)
{
    ck_assert_int_eq(khub__isa_has_vnni(), 0);
}
END_TEST

START_TEST(what_system_and_processor_have)
{
    ck_assert_int_eq(best(), ISA_COUNT - 1);
}
END_TEST
#endif

/* Each test is a process of its own, so each decides anew. */
START_TEST(the_best_unless_told)
{
    unsetenv("KHUB_KERNEL_ISA");
    ck_assert_int_eq(khub__isa_get(), (int)best());
    setenv("KHUB_KERNEL_ISA", "portable", 1);
    ck_assert_int_eq(khub__isa_get(), (int)best()); /* decided once */
}
END_TEST

START_TEST(an_empty_name_is_none)
{
    setenv("KHUB_KERNEL_ISA", "", 1);
    ck_assert_int_eq(khub__isa_get(), (int)best());
}
END_TEST

START_TEST(a_name_is_obeyed)
{
    setenv("KHUB_KERNEL_ISA", "portable", 1);
    ck_assert_int_eq(khub__isa_get(), ISA_portable);
}
END_TEST

START_TEST(a_name_that_cannot_be_had)
{
    char why[160];
    setenv("KHUB_KERNEL_ISA", "AVX2", 1); /* names are lower case */
    ck_assert_int_eq(khub__isa_get(), -1);
    ck_assert_int_eq(khub__isa_get(), -1);
    khub__isa_why(why, sizeof(why));
    ck_assert_msg(strstr(why, "KHUB_KERNEL_ISA is \"AVX2\", known here are portable") == why, "%s", why);
    setenv("KHUB_KERNEL_ISA", names[ISA_COUNT - 1], 1);
    khub__isa_why(why, sizeof(why));
    ck_assert_msg(strstr(why, "which this processor or its system lacks") != NULL, "%s", why);
}
END_TEST

UNIT("kernels_isa", what_system_and_processor_have, who_has_vnni, what_else_there_is, OF_X86,
     the_best_unless_told, an_empty_name_is_none, a_name_is_obeyed, a_name_that_cannot_be_had)
