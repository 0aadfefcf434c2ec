/* What an x86 processor says of itself, on every system. */
#include "platform/cpu.h"

#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* XCR0. Only where OSXSAVE is set: the instruction doesn't exist for a program otherwise. */
static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static void read_registers(khub__x86_registers *r)
{
    unsigned eax, ebx, ecx, edx;
    memset(r, 0, sizeof(*r));
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) r->leaf1_ecx = ecx;
    if (r->leaf1_ecx >> 27 & 1) r->xcr0 = read_xcr0();
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return;
    r->leaf7_ebx = ebx;
    r->leaf7_ecx = ecx;
    r->leaf7_edx = edx;
    if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) r->leaf7_1_eax = eax;
}

size_t khub__cpuid_features(const char *names[KHUB__MAX_FEATURES])
{
    khub__x86_registers registers;
    read_registers(&registers);
    return khub__x86_features(names, &registers);
}

const char *khub__cpuid_model(char *buffer, size_t size)
{
    unsigned words[12];
    if (size < sizeof(words) + 1) return NULL;
    for (unsigned i = 0; i < 3; i++) {
        unsigned *w = words + 4 * i;
        if (!__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3])) return NULL;
    }
    memcpy(buffer, words, sizeof(words));
    buffer[sizeof(words)] = 0;
    khub__squeeze(buffer);
    return *buffer ? buffer : NULL;
}

#else
typedef int khub__no_cpuid; /* a source has to have something in it */
#endif
