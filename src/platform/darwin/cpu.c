/* The processor at hand. */
#include "platform/cpu.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysctl.h>

/* A number of four or eight bytes; 0: there is no such value. */
static uint64_t number(const char *name)
{
    uint64_t value = 0;
    size_t size = sizeof(value);
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

#if defined(__x86_64__)

/* AVX-512's registers are switched on for a program when it first uses them: here it is as if they weren't
 * there. */
size_t khub__cpu_features(const char *names[KHUB__MAX_FEATURES])
{
    return khub__cpuid_features(names);
}

#else

size_t khub__cpu_features(const char *names[KHUB__MAX_FEATURES])
{
    /* by the bits of Linux's AT_HWCAP and AT_HWCAP2; NEON is in every one of these processors */
    static const struct {
        const char *name;
        int word, bit;
    } features[] = {
        {"hw.optional.arm.FEAT_FP16", 0, 10}, {"hw.optional.arm.FEAT_DotProd", 0, 20},
        {"hw.optional.arm.FEAT_I8MM", 1, 13}, {"hw.optional.arm.FEAT_BF16", 1, 14},
        {"hw.optional.arm.FEAT_SME", 1, 23},
    };
    uint64_t words[2] = {1u << 1, 0};
    for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++)
        if (number(features[i].name)) words[features[i].word] |= UINT64_C(1) << features[i].bit;
    return khub__arm_features(names, words[0], words[1]);
}

#endif

const char *khub__cpu_model(char *buffer, size_t size, const char *root)
{
    size_t length = size - 1;
    (void)root;
    memset(buffer, 0, size);
    if (sysctlbyname("machdep.cpu.brand_string", buffer, &length, NULL, 0) != 0) return NULL;
    khub__squeeze(buffer);
    return *buffer ? buffer : NULL;
}

/* Of the fast cores, where there are two kinds. */
uint64_t khub__cpu_cache(int level, const char *root)
{
    static const char *const ends[] = {"l1dcachesize", "l2cachesize", "l3cachesize"};
    char name[48];
    (void)root;
    snprintf(name, sizeof(name), "hw.perflevel0.%s", ends[level - 1]);
    uint64_t bytes = number(name);
    snprintf(name, sizeof(name), "hw.%s", ends[level - 1]);
    return bytes ? bytes : number(name);
}
