/* How many threads this process may run. */
#ifndef PLATFORM_THREADS_H
#define PLATFORM_THREADS_H

#include <khub/export.h>

/* `root` stands before every path ("" for the machine at hand), so that a test can bring its own files. */

/* Logical processors switched on; 0: unknown. */
unsigned khub__cores_online(const char *root);

/* Processors in the affinity mask of the calling thread; 0: unknown. */
unsigned khub__affinity_count(void);

/* Processors' worth of time that the control group and those above it allow, in thousandths, since 1.5 is
 * common; 0: no limit. */
uint64_t khub__cgroup_limit(const char *root);

#endif
