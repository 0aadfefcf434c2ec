#include "platform/threads.h"

#include <sys/sysctl.h>

unsigned khub__cores_online(const char *root)
{
    int count = 0;
    size_t size = sizeof(count);
    (void)root;
    return sysctlbyname("hw.activecpu", &count, &size, NULL, 0) == 0 && count > 0 ? (unsigned)count : 0;
}

/* macOS keeps no thread to a processor. */
unsigned khub__affinity_count(void)
{
    return 0;
}

uint64_t khub__cgroup_limit(const char *root)
{
    (void)root;
    return 0;
}
