#include "platform/threads.h"

#include "platform/linux/small.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PATH = 4096, MAX_CORES = 1 << 20 };

/* "0-3,8,10-11" has 7. 0 for anything else. */
static unsigned count_ranges(const char *text)
{
    unsigned long count = 0;
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        if (last < first || last >= MAX_CORES) return 0;
        count += last - first + 1;
        text = *end == ',' ? end + 1 : end;
    }
    return (*text == 0 || *text == '\n') && count < MAX_CORES ? (unsigned)count : 0;
}

unsigned khub__cores_online(const char *root)
{
    char text[4096];
    if (khub__small_read(text, sizeof(text), root, "/sys/devices/system/cpu/online") > 0)
        return count_ranges(text);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < MAX_CORES ? (unsigned)n : 0;
}

unsigned khub__affinity_count(void)
{
#if defined(__linux__)
    /* 65,536 processors: the largest that Linux can be built for is 8,192; a smaller mask than its is refused
     */
    static const size_t bytes = 8192;
    cpu_set_t mask[8192 / sizeof(cpu_set_t)];
    if (sched_getaffinity(0, bytes, mask) == 0) return (unsigned)CPU_COUNT_S(bytes, mask);
#endif
    return 0;
}

/* The least limit seen so far, when `quota` of `period` microseconds is one. */
static uint64_t least(uint64_t so_far, long long quota, long long period)
{
    if (quota <= 0 || period <= 0 || quota > INT64_MAX / 1000) return so_far;
    uint64_t limit = (uint64_t)quota * 1000 / (uint64_t)period;
    if (limit == 0) limit = 1;
    return !so_far || limit < so_far ? limit : so_far;
}

/* The number after blanks at *text, which is moved past it. 0: none, or one too large. */
static long long number(const char **text)
{
    char *end;
    errno = 0;
    long long n = strtoll(*text, &end, 10);
    *text = end;
    return errno ? 0 : n;
}

/* Version 2: "150000 100000", or "max 100000". */
static uint64_t unified_limit(uint64_t so_far, const char *root, const char *dir)
{
    char path[MAX_PATH], text[128];
    const char *at = text;
    snprintf(path, sizeof(path), "%s/cpu.max", dir);
    if (khub__small_read(text, sizeof(text), root, path) <= 0) return so_far;
    long long quota = number(&at), period = number(&at);
    return least(so_far, quota, period);
}

/* Version 1: two files; a quota of -1 is none. */
static uint64_t split_limit(uint64_t so_far, const char *root, const char *dir)
{
    char path[MAX_PATH], quota[64], period[64];
    const char *at_quota = quota, *at_period = period;
    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
    if (khub__small_read(quota, sizeof(quota), root, path) <= 0) return so_far;
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    if (khub__small_read(period, sizeof(period), root, path) <= 0) return so_far;
    return least(so_far, number(&at_quota), number(&at_period));
}

/* Asks the group `group` below `mount` and every group above it. Inside a container the path may not exist,
 * or lead out of what is mounted: then the mount itself is the group. */
static uint64_t walk_up(const char *root, const char *mount, const char *group, size_t length,
                        uint64_t (*limit)(uint64_t, const char *, const char *))
{
    char dir[MAX_PATH];
    uint64_t found = 0;
    size_t start = strlen(mount);
    if (length + start + 32 >= sizeof(dir)) length = 0;
    int n = snprintf(dir, sizeof(dir), "%s%.*s", mount, (int)length, group);
    if (n < 0 || strstr(dir, "/..")) n = (int)start;
    if ((size_t)n == start + 1) n--; /* the group is "/" */
    for (dir[n] = 0; strlen(dir) > start; *strrchr(dir, '/') = 0)
        found = limit(found, root, dir);
    return limit(found, root, mount);
}

/* One line of /proc/self/cgroup, "0::/group" or "4:cpu,cpuacct:/group": where its limits are. */
static uint64_t line_limit(const char *root, const char *line, size_t length, int *decided)
{
    const char *end = line + length, *controllers = memchr(line, ':', length);
    const char *group = controllers ? memchr(controllers + 1, ':', (size_t)(end - controllers - 1)) : NULL;
    if (!group) return 0;
    controllers++;
    size_t n = (size_t)(group++ - controllers);
    if (n == 0) return walk_up(root, "/sys/fs/cgroup", group, (size_t)(end - group), unified_limit);
    char list[128], mount[160];
    if (n >= sizeof(list)) return 0;
    snprintf(list, sizeof(list), ",%.*s,", (int)n, controllers);
    if (!strstr(list, ",cpu,")) return 0;
    *decided = 1; /* version 1 has the controller: the unified line has nothing to say */
    snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%.*s", (int)n, controllers);
    uint64_t found = walk_up(root, mount, group, (size_t)(end - group), split_limit);
    return found || n == 3 ? found
                           : walk_up(root, "/sys/fs/cgroup/cpu", group, (size_t)(end - group), split_limit);
}

uint64_t khub__cgroup_limit(const char *root)
{
    char text[8192];
    uint64_t found = 0;
    int decided = 0;
    if (khub__small_read(text, sizeof(text), root, "/proc/self/cgroup") <= 0) return 0;
    for (const char *line = text; *line && !decided; line += strspn(line, "\n")) {
        size_t length = strcspn(line, "\n");
        uint64_t limit = line_limit(root, line, length, &decided);
        if (limit || decided) found = limit;
        line += length;
    }
    return found;
}
