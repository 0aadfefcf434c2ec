/* Device files, and what the kernel's drivers say in /sys about their devices. */
#ifndef PLATFORM_NODES_H
#define PLATFORM_NODES_H

#include "platform/pool.h"

#include <stddef.h>

/* The names in a directory, sorted; none where it can't be read. *names is freed with khub__free. */
size_t khub__names_in(char ***names, const char *dir, khub__pool *pool);

/* The path of the first file in `dir` (below `root`) whose name is `begin` and a number; NULL: none. */
const char *khub__first_node(const char *root, const char *dir, const char *begin, khub__pool *pool);

/* The GPUs that the kernel driver of AMD (amdkfd) lists, "gfx942, gfx1036"; NULL: none, or there is no such
 * driver. */
const char *khub__kfd_list(const char *root, khub__pool *pool);

#endif
