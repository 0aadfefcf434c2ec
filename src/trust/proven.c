#include "trust/proven.h"

#include "base/error.h"
#include "base/memory.h"

enum { MOST = 10000 };

int khub__proven_add(khub__proven *proven, const char *name, const char *content, khub__held *held,
                     khub_error *err)
{
    char *copy = khub__strdup(name);
    if (!copy || khub__grow((void **)&proven->files, &proven->capacity, proven->count + 1,
                            sizeof(*proven->files), MOST)) {
        khub__free(copy);
        return khub__fail_memory(err, "proving a build");
    }
    khub__proven_file *file = &proven->files[proven->count++];
    *file = (khub__proven_file){.name = copy, .held = *held};
    strncpy(file->content, content, KHUB__HASH_HEX_MAX);
    memset(held, 0, sizeof(*held));
    held->fd = -1;
    return KHUB_OK;
}

const khub__proven_file *khub__proven_find(const khub__proven *proven, const char *name)
{
    for (size_t i = 0; i < proven->count; i++)
        if (!strcmp(proven->files[i].name, name)) return &proven->files[i];
    return NULL;
}

int khub__proven_still(const khub__proven *proven)
{
    for (size_t i = 0; i < proven->count; i++)
        if (!khub__held_still(&proven->files[i].held)) return 0;
    return 1;
}

void khub__proven_drop(khub__proven *proven)
{
    for (size_t i = 0; i < proven->count; i++) {
        khub__held_drop(&proven->files[i].held);
        khub__free(proven->files[i].name);
    }
    khub__free(proven->files);
    khub__free(proven->layers);
    memset(proven, 0, sizeof(*proven));
}
