#include "isa.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ISA_NAME(isa, _) #isa,
static const char *const names[ISA_COUNT] = {ISA_LIST(ISA_NAME, _)};

#if defined(__x86_64__) && !defined(KHUB_ISA_CUDA)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* A feature counts when the processor has it and the system saves the registers it needs. */
khub__isa khub__isa_of_x86(uint32_t leaf1_ecx, uint32_t leaf7_ebx, uint64_t xcr0)
{
    const uint32_t ecx_avx2 =
        1u << 12 /* FMA */ | 1u << 27 /* OSXSAVE */ | 1u << 28 /* AVX */ | 1u << 29 /* F16C */;
    const uint32_t ebx_avx2 = 1u << 5;
    const uint32_t ebx_avx512 = 1u << 16 /* F */ | 1u << 17 /* DQ */ | 1u << 30 /* BW */ | 1u << 31 /* VL */;
    const uint64_t saves_ymm = 1u << 1 | 1u << 2,
                   saves_zmm = 1u << 5 | 1u << 6 | 1u << 7; /* opmask, both halves */
    if ((leaf1_ecx & ecx_avx2) != ecx_avx2 || !(leaf7_ebx & ebx_avx2) || (xcr0 & saves_ymm) != saves_ymm)
        return ISA_portable;
    if ((leaf7_ebx & ebx_avx512) != ebx_avx512 || (xcr0 & saves_zmm) != saves_zmm) return ISA_avx2;
    return ISA_avx512;
}

/* 0 where the processor says that the system doesn't use it. */
static uint64_t find_xcr0(uint32_t leaf1_ecx)
{
    uint32_t low = 0, high = 0;
    if (leaf1_ecx & 1u << 27) __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static khub__isa best(void)
{
    uint32_t eax, ebx, ecx, edx, leaf1_ecx;
    if (!__get_cpuid(1, &eax, &ebx, &leaf1_ecx, &edx)) return ISA_portable;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) ebx = 0;
    return khub__isa_of_x86(leaf1_ecx, ebx, find_xcr0(leaf1_ecx));
}

int khub__isa_vnni_of_x86(int isa, uint32_t leaf7_ecx, uint32_t leaf7_1_eax)
{
    if (isa == ISA_avx512) return leaf7_ecx >> 11 & 1; /* AVX512_VNNI */
    return isa == ISA_avx2 && leaf7_1_eax >> 4 & 1;    /* AVX-VNNI */
}

/* Leaf 7's ECX and EDX, and EAX of its subleaf 1; zeros where they aren't. */
static void find_leaf7(uint32_t *ecx, uint32_t *edx, uint32_t *subleaf)
{
    uint32_t most, ebx, unused;
    *ecx = *edx = *subleaf = 0;
    if (__get_cpuid_count(7, 0, &most, &ebx, ecx, edx) && most >= 1)
        __cpuid_count(7, 1, *subleaf, ebx, unused, unused);
}

static int find_vnni(int isa)
{
    uint32_t ecx, edx, subleaf;
    find_leaf7(&ecx, &edx, &subleaf);
    return khub__isa_vnni_of_x86(isa, ecx, subleaf);
}

unsigned khub__isa_extras_of_x86(int isa, uint32_t leaf7_edx, uint32_t leaf7_1_eax, uint64_t xcr0)
{
    const uint64_t saves_tiles = 1u << 17 | 1u << 18; /* their shape, and what is in them */
    unsigned extras = 0;
    if (isa != ISA_avx512) return 0;
    if (leaf7_1_eax >> 5 & 1) extras |= ISA_HAS_AVX512_BF16;
    if (!(leaf7_edx >> 24 & 1) || (xcr0 & saves_tiles) != saves_tiles) return extras; /* AMX-TILE */
    if (leaf7_edx >> 22 & 1) extras |= ISA_HAS_AMX_BF16;
    if (leaf7_edx >> 25 & 1) extras |= ISA_HAS_AMX_INT8;
    return extras;
}

/* Linux keeps the tiles' 8 KB for those processes alone that ask for them; a kernel that knows nothing of it,
 * or a thread whose stack for signals is too small, is a refusal. */
static int ask_for_tiles(void)
{
#if defined(__linux__)
    enum { REQUEST = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILES = 18 /* as in XCR0 */ };
    return (int)syscall(SYS_arch_prctl, REQUEST, TILES);
#else
    return -1;
#endif
}

static unsigned find_extras(int isa)
{
    uint32_t eax, ebx, leaf1_ecx, ecx, edx, subleaf;
    if (!__get_cpuid(1, &eax, &ebx, &leaf1_ecx, &edx)) return 0;
    find_leaf7(&ecx, &edx, &subleaf);
    return khub__isa_permitted(khub__isa_extras_of_x86(isa, edx, subleaf, find_xcr0(leaf1_ecx)),
                               ask_for_tiles);
}
#else
static int find_vnni(int isa)
{
    (void)isa;
    return 0;
}

static unsigned find_extras(int isa)
{
    (void)isa;
    return 0;
}

static khub__isa best(void)
{
    return ISA_COUNT - 1; /* the only one; AArch64 always has NEON */
}
#endif

unsigned khub__isa_permitted(unsigned extras, int (*ask)(void))
{
    const unsigned tiles = ISA_HAS_AMX_BF16 | ISA_HAS_AMX_INT8;
    return extras & tiles && ask() != 0 ? extras & ~tiles : extras;
}

/* Names of the best path together with what it may have besides: of `may` at least one. */
static const struct {
    const char *name;
    unsigned may;
} richer[] = {{"avx512_bf16", ISA_HAS_AVX512_BF16}, {"amx", ISA_HAS_AMX_BF16 | ISA_HAS_AMX_INT8}};
enum { RICHER = sizeof(richer) / sizeof(*richer) };

/* What a name allows besides its path; 0: it is no such name. */
static unsigned extras_of(const char *name)
{
    for (int i = 0; i < RICHER; i++)
        if (!strcmp(richer[i].name, name)) return richer[i].may;
    return 0;
}

/* -1: there is no such name here. */
static int by_name(const char *name)
{
#if defined(__x86_64__) && !defined(KHUB_ISA_CUDA)
    if (extras_of(name)) return ISA_avx512;
#endif
    int i = ISA_COUNT - 1;
    while (i >= 0 && strcmp(names[i], name) != 0)
        i--;
    return i;
}

/* The variable is about processors. */
static const char *asked(void)
{
    if (strcmp(names[0], "cuda") == 0) return NULL;
    const char *name = getenv("KHUB_KERNEL_ISA");
    return name && *name ? name : NULL;
}

int khub__isa_get(void)
{
    static _Atomic int decided; /* the path + 2; 0: not yet decided. Whoever decides comes to the same. */
    int isa = atomic_load_explicit(&decided, memory_order_relaxed);
    if (isa) return isa - 2;
    int most = (int)best();
    isa = asked() ? by_name(asked()) : most;
    if (isa > most || (asked() && extras_of(asked()) && !(extras_of(asked()) & find_extras(isa)))) isa = -1;
    atomic_store_explicit(&decided, isa + 2, memory_order_relaxed);
    return isa;
}

int khub__isa_has_vnni(void)
{
    static _Atomic int decided; /* 1: no, 2: yes; 0: not yet. CPUID takes long where it is emulated. */
    int known = atomic_load_explicit(&decided, memory_order_relaxed);
    if (known) return known - 1;
    known = !asked() && find_vnni(khub__isa_get());
    atomic_store_explicit(&decided, known + 1, memory_order_relaxed);
    return known;
}

unsigned khub__isa_extras(void)
{
    static _Atomic unsigned decided; /* what there is + 1; 0: not yet */
    unsigned known = atomic_load_explicit(&decided, memory_order_relaxed);
    if (known) return known - 1;
    int isa = khub__isa_get();
    known = asked() && !extras_of(asked()) ? 0 : find_extras(isa);
    if (asked()) known &= extras_of(asked());
    atomic_store_explicit(&decided, known + 1, memory_order_relaxed);
    return known;
}

const char *khub__isa_name(int isa)
{
    return names[isa];
}

void khub__isa_why(char *text, size_t size)
{
    const char *name = asked();
    if (name && by_name(name) >= 0) {
        snprintf(text, size, "KHUB_KERNEL_ISA is %s, which this processor or its system lacks", name);
        return;
    }
    size_t used =
        (size_t)snprintf(text, size, "KHUB_KERNEL_ISA is \"%.40s\", known here are", name ? name : "");
    for (int i = 0; i < ISA_COUNT && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s %s", i ? "," : "", names[i]);
    for (int i = 0; i < RICHER && used < size && by_name(richer[i].name) >= 0; i++)
        used += (size_t)snprintf(text + used, size - used, ", %s", richer[i].name);
}
