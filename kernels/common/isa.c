#include "isa.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ISA_NAME(isa, _) #isa,
static const char *const names[ISA_COUNT] = {ISA_LIST(ISA_NAME, _)};

#if defined(__x86_64__) && !defined(KHUB_ISA_CUDA)
#include <cpuid.h>

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

static khub__isa best(void)
{
    uint32_t eax, ebx, ecx, edx, leaf1_ecx, xcr0_low = 0, xcr0_high = 0;
    if (!__get_cpuid(1, &eax, &ebx, &leaf1_ecx, &edx)) return ISA_portable;
    if (leaf1_ecx & 1u << 27) __asm__ volatile("xgetbv" : "=a"(xcr0_low), "=d"(xcr0_high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) ebx = 0;
    return khub__isa_of_x86(leaf1_ecx, ebx, (uint64_t)xcr0_high << 32 | xcr0_low);
}

int khub__isa_vnni_of_x86(int isa, uint32_t leaf7_ecx, uint32_t leaf7_1_eax)
{
    if (isa == ISA_avx512) return leaf7_ecx >> 11 & 1; /* AVX512_VNNI */
    return isa == ISA_avx2 && leaf7_1_eax >> 4 & 1;    /* AVX-VNNI */
}

static int find_vnni(int isa)
{
    uint32_t eax, ebx, ecx, edx, subleaf = 0;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return 0;
    if (eax >= 1) { /* the highest subleaf */
        uint32_t leaf7_ecx = ecx;
        __cpuid_count(7, 1, subleaf, ebx, ecx, edx);
        ecx = leaf7_ecx;
    }
    return khub__isa_vnni_of_x86(isa, ecx, subleaf);
}
#else
static int find_vnni(int isa)
{
    (void)isa;
    return 0;
}

static khub__isa best(void)
{
    return ISA_COUNT - 1; /* the only one; AArch64 always has NEON */
}
#endif

static int by_name(const char *name)
{
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
    if (isa > most) isa = -1;
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
}
