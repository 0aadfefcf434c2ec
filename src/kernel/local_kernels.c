#include "kernel/local_kernels.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

#include <stdlib.h>

/* Its entries stand between colons; an empty one is none. */
static const char *next_entry(const char *at, size_t *length)
{
    at += strspn(at, ":");
    *length = strcspn(at, ":");
    return *length ? at : NULL;
}

/* A mistake in any of them is an error, whatever is asked for: a kernel that isn't replaced looks like one
 * that is. */
static int check(const char *list, khub_error *err)
{
    size_t n;
    for (const char *at = list; (at = next_entry(at, &n)) != NULL; at += n) {
        const char *equals = memchr(at, '=', n);
        if (!equals || equals == at || equals + 1 == at + n)
            return khub__fail(err, KHUB_E_INVAL,
                              "LOCAL_KERNELS: \"%.*s\" isn't NAME=PATH (as in org/a=/path:org/b=./path)",
                              (int)(n < 200 ? n : 200), at);
    }
    return KHUB_OK;
}

int khub__local_kernel(char **path, const char *name, khub_error *err)
{
    *path = NULL;
    const char *list = getenv("LOCAL_KERNELS");
    int rc = list ? check(list, err) : KHUB_OK;
    size_t length = strcspn(name, "@"), n;
    for (const char *at = rc == KHUB_OK ? list : NULL; at && (at = next_entry(at, &n)) != NULL; at += n) {
        if (n <= length + 1 || strncmp(at, name, length) != 0 || at[length] != '=') continue;
        *path = khub__strndup(at + length + 1, n - length - 1);
        if (!*path) return khub__fail_memory(err, "reading LOCAL_KERNELS");
        khub__log(KHUB_LOG_NOTICE, "get", name, "LOCAL_KERNELS puts %s in its place", *path);
        return KHUB_OK;
    }
    return rc;
}
