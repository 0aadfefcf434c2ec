/* The processor at hand. */
#include "platform/cpu.h"

#include "platform/linux/small.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)

size_t khub__cpu_features(const char *names[KHUB__MAX_FEATURES])
{
    return khub__cpuid_features(names);
}

const char *khub__cpu_model(char *buffer, size_t size, const char *root)
{
    (void)root;
    return khub__cpuid_model(buffer, size);
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
