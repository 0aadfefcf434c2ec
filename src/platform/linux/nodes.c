#include "platform/nodes.h"

#include "base/file.h"
#include "base/memory.h"
#include "platform/linux/small.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

size_t khub__names_in(char ***names, const char *dir, khub__pool *pool)
{
    size_t count = 0;
    *names = NULL;
    if (dir && khub__dir_list(names, &count, dir, NULL) == KHUB_E_NOMEM) pool->failed = 1;
    return *names ? count : 0;
}

const char *khub__first_node(const char *root, const char *dir, const char *begin, khub__pool *pool)
{
    char **names;
    const char *node = NULL, *path = khub__pool_textf(pool, "%s%s", root, dir);
    size_t count = khub__names_in(&names, path, pool), length = strlen(begin);
    for (size_t i = 0; i < count && !node; i++)
        if (!strncmp(names[i], begin, length) && isdigit((unsigned char)names[i][length]))
            node = khub__pool_textf(pool, "%s/%s", path, names[i]);
    khub__free(names);
    return node;
}

/* "gfx_target_version 90402" in the properties of a node of the topology: 10000 major + 100 minor + step; a
 * processor's is 0. */
static unsigned long target_of(const char *path)
{
    static const char key[] = "gfx_target_version ";
    char text[8192];
    if (!path || khub__small_read(text, sizeof(text), "", path) <= 0) return 0;
    const char *at = strstr(text, key);
    unsigned long target = at ? strtoul(at + strlen(key), NULL, 10) : 0;
    return target < 1000000 ? target : 0;
}

const char *khub__kfd_list(const char *root, khub__pool *pool)
{
    char **names;
    const char *list = NULL, *dir = khub__pool_textf(pool, "%s/sys/class/kfd/kfd/topology/nodes", root);
    size_t count = khub__names_in(&names, dir, pool);
    for (size_t i = 0; i < count; i++) {
        unsigned long t = target_of(khub__pool_textf(pool, "%s/%s/properties", dir, names[i]));
        if (t)
            list = khub__pool_textf(pool, "%s%sgfx%lu%lx%lx", list ? list : "", list ? ", " : "", t / 10000,
                                    t / 100 % 100, t % 100);
    }
    khub__free(names);
    return list;
}
