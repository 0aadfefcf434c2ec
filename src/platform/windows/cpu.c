/* The processor at hand. */
#include "platform/cpu.h"

#include <stdlib.h>
#include <windows.h>

#if defined(__x86_64__)

size_t khub__cpu_features(const char *names[KHUB__MAX_FEATURES])
{
    return khub__cpuid_features(names);
}

const char *khub__cpu_model(char *buffer, size_t size, const char *root)
{
    (void)root;
    return khub__cpuid_model(buffer, size);
}

#else

size_t khub__cpu_features(const char *names[KHUB__MAX_FEATURES])
{
    enum { DOT_PRODUCT = 43 }; /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE; the others Windows doesn't tell */
    uint64_t hwcap = 1u << 1;  /* by the bits of Linux's AT_HWCAP; NEON is in every one of these processors */
    if (IsProcessorFeaturePresent(DOT_PRODUCT)) hwcap |= 1u << 20;
    return khub__arm_features(names, hwcap, 0);
}

/* Only the registry has it. */
const char *khub__cpu_model(char *buffer, size_t size, const char *root)
{
    (void)buffer, (void)size, (void)root;
    return NULL;
}

#endif

typedef SYSTEM_LOGICAL_PROCESSOR_INFORMATION part;

uint64_t khub__cpu_cache(int level, const char *root)
{
    DWORD bytes = 0;
    uint64_t found = 0;
    (void)root;
    GetLogicalProcessorInformation(NULL, &bytes);
    part *parts = bytes ? malloc(bytes) : NULL;
    if (parts && GetLogicalProcessorInformation(parts, &bytes))
        for (size_t i = 0; i < bytes / sizeof(*parts) && !found; i++)
            if (parts[i].Relationship == RelationCache && parts[i].Cache.Level == level &&
                parts[i].Cache.Type != CacheInstruction)
                found = parts[i].Cache.Size;
    free(parts);
    return found;
}
