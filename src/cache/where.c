/* The cache's directory: what the caller and the environment say. */
#include "base/error.h"
#include "base/home.h"
#include "base/memory.h"
#include "base/path.h"
#include "cache/disk.h"
#include "cache/store.h"

#include <khub/cache.h>

static const char *named(khub__repo_kind kind, const char *cache_dir)
{
    static const char *const variables[] = {"KERNELS_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"};
    const char *found = cache_dir && cache_dir[0] ? cache_dir : NULL;
    for (size_t i = kind != KHUB__REPO_KERNEL; !found && i < sizeof(variables) / sizeof(*variables); i++)
        found = khub__env(variables[i]);
    return found;
}

static int expanded(char **out, const char *path, khub_error *err)
{
    char *full = khub__path_expand(path);
    if (!full) return khub__fail_memory(err, "looking for the cache");
    int rc = KHUB_OK;
    if (full[0] == '~' && (!full[1] || full[1] == '/'))
        rc = khub__fail(err, KHUB_E_NOTFOUND, "%s: there is no home directory: set HOME, or KERNELS_CACHE",
                        path);
    else
        rc = khub__disk_absolute(out, full, err);
    khub__free(full);
    return rc;
}

int khub__cache_dir(char **out, khub__repo_kind kind, const char *cache_dir, khub_error *err)
{
    *out = NULL;
    const char *path = named(kind, cache_dir);
    if (path) return expanded(out, path, err);
    char *home = NULL, *hub = NULL;
    int rc = khub__hf_home(&home, err);
    if (rc == KHUB_OK && !(hub = khub__path_join(home, "hub")))
        rc = khub__fail_memory(err, "looking for the cache");
    if (rc == KHUB_OK) rc = khub__disk_absolute(out, hub, err);
    khub__free(hub);
    khub__free(home);
    return rc;
}

int khub_cache_dir(char **out, const char *cache_dir, khub_error *err)
{
    return khub__cache_dir(out, KHUB__REPO_KERNEL, cache_dir, err);
}
