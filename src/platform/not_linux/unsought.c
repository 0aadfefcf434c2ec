/* What isn't looked for on systems other than Linux, and says so: libraries in reach, whose names and places
 * are others there; device files; and answers of drivers, which are asked anew each time. */
#include "platform/dynamic.h"
#include "platform/loader.h"
#include "platform/nodes.h"
#include "platform/pci.h"
#include "platform/remembered.h"

#include <string.h>

void khub__loader_open(khub__loader *loader, const char *root, const char *library_path)
{
    memset(loader, 0, sizeof(*loader));
    loader->root = root;
    loader->library_path = library_path;
}

void khub__loader_close(khub__loader *loader)
{
    (void)loader;
}

size_t khub__loader_find(const char **paths, size_t max, const khub__loader *loader, const char *name,
                         khub__pool *pool)
{
    (void)paths, (void)max, (void)loader, (void)name, (void)pool;
    return 0;
}

const char *khub__loader_places(const khub__loader *loader, khub__pool *pool)
{
    (void)loader;
    return khub__pool_text(pool, "any place (libraries are looked for on Linux alone)");
}

const char *khub__loaded_path(const char *name, khub__pool *pool)
{
    (void)name, (void)pool;
    return NULL;
}

void *khub__loaded_symbol(const char *path, const char *name)
{
    (void)path, (void)name;
    return NULL;
}

const char *khub__not_a_library(const char *path)
{
    return khub__file_kind(path) == KHUB__FILE_NONE
               ? "isn't there"
               : "can't be judged: libraries are looked at on Linux alone";
}

const char *khub__dynamic_read(khub__dynamic *out, const char *path, khub__pool *pool)
{
    (void)pool;
    memset(out, 0, sizeof(*out));
    return khub__not_a_library(path);
}

int khub__dynamic_has(const khub__dynamic *dynamic, const char *path, const char *piece)
{
    (void)dynamic, (void)path, (void)piece;
    return 0;
}

size_t khub__names_in(char ***names, const char *dir, khub__pool *pool)
{
    (void)dir, (void)pool;
    *names = NULL;
    return 0;
}

const char *khub__first_node(const char *root, const char *dir, const char *begin, khub__pool *pool)
{
    (void)root, (void)dir, (void)begin, (void)pool;
    return NULL;
}

const char *khub__kfd_list(const char *root, khub__pool *pool)
{
    (void)root, (void)pool;
    return NULL;
}

int khub__pci_is_known(const char *backend)
{
    (void)backend;
    return 0;
}

void khub__pci_find(khub_accelerator_info *out, const char *root, khub__pool *pool)
{
    (void)out, (void)root, (void)pool;
}

const char *khub__answer_key(const khub__ask *ask, const char *program, khub__pool *pool)
{
    (void)ask, (void)program, (void)pool;
    return NULL;
}

int khub__recall(khub__ask *ask, const char *key, khub__pool *pool)
{
    (void)ask, (void)key, (void)pool;
    return 0;
}

void khub__remember(const khub__ask *ask, const char *key, khub__pool *pool)
{
    (void)ask, (void)key, (void)pool;
}
