#include "platform/threads.h"

#include <windows.h>

unsigned khub__cores_online(const char *root)
{
    (void)root;
    return GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
}

/* Of one group of processors; where there are several (more than 64 processors) a mask says nothing of the
 * others. */
unsigned khub__affinity_count(void)
{
    DWORD_PTR mask = 0, all = 0;
    if (GetActiveProcessorGroupCount() != 1 || !GetProcessAffinityMask(GetCurrentProcess(), &mask, &all))
        return 0;
    return (unsigned)__builtin_popcountll(mask);
}

uint64_t khub__cgroup_limit(const char *root)
{
    (void)root;
    return 0;
}
