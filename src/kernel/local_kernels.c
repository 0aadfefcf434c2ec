#include "kernel/local_kernels.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

#include <stdlib.h>

int khub__local_kernel(char **path, const char *name, khub_error *err)
{
    *path = NULL;
    size_t length = strcspn(name, "@"), n;
    const char *at = getenv("LOCAL_KERNELS");
    for (; at && *at; at += n + (at[n] == ':')) {
        n = strcspn(at, ":");
        if (n <= length + 1 || strncmp(at, name, length) != 0 || at[length] != '=') continue;
        *path = khub__strndup(at + length + 1, n - length - 1);
        if (!*path) return khub__fail_memory(err, "reading LOCAL_KERNELS");
        khub__log(KHUB_LOG_NOTICE, "get", name, "LOCAL_KERNELS puts %s in its place", *path);
        return KHUB_OK;
    }
    return KHUB_OK;
}
