/* The processor at hand. */
#include "platform/cpu.h"

#include "platform/linux/small.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

size_t khub__cpu_features(const char *names[KHUB__MAX_FEATURES])
{
    khub__x86_registers registers;
    read_registers(&registers);
    return khub__x86_features(names, &registers);
}

const char *khub__cpu_model(char *buffer, size_t size, const char *root)
{
    unsigned words[12];
    (void)root;
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

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

size_t khub__cpu_features(const char *names[KHUB__MAX_FEATURES])
{
    return khub__arm_features(names, getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
}

const char *khub__cpu_model(char *buffer, size_t size, const char *root)
{
    const char *midr = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
    return khub__small_read(buffer, size, root, midr) > 0 ? khub__arm_model(strtoull(buffer, NULL, 16))
                                                          : NULL;
}

#else

size_t khub__cpu_features(const char *names[KHUB__MAX_FEATURES])
{
    (void)names;
    return 0;
}

const char *khub__cpu_model(char *buffer, size_t size, const char *root)
{
    (void)buffer, (void)size, (void)root;
    return NULL;
}
#endif

/* A field of one of cpu0's caches; 0: there is none. */
static int cache_field(char text[32], const char *root, int cache, const char *field)
{
    char path[80];
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", cache, field);
    return khub__small_read(text, 32, root, path) > 0;
}

/* Of cpu0's caches in /sys the one of this level that holds data; 0: it isn't there. */
static uint64_t cache_in_sys(int level, const char *root)
{
    char text[32], *unit;
    for (int i = 0; cache_field(text, root, i, "level"); i++) {
        if (strtol(text, NULL, 10) != level) continue;
        if (!cache_field(text, root, i, "type") || text[0] == 'I') continue; /* Instruction */
        if (!cache_field(text, root, i, "size")) continue;
        uint64_t size = strtoull(text, &unit, 10);
        return *unit == 'K' ? size << 10 : *unit == 'M' ? size << 20 : size;
    }
    return 0;
}

/* The C library asks some processors themselves, and gets all of a machine's third level, or nonsense where a
 * virtual machine has a part of it. */
uint64_t khub__cpu_cache(int level, const char *root)
{
    uint64_t known = cache_in_sys(level, root);
    if (known) return known;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    static const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    long bytes = sysconf(names[level - 1]);
    return bytes > 0 ? (uint64_t)bytes : 0;
#else
    return 0;
#endif
}
