/* Where this code was loaded from. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "base/file.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char library_dir[4096], install_prefix[4096];

static void put(char *to, const char *from)
{
    size_t n = from ? strlen(from) : 0;
    if (n < sizeof(library_dir)) memcpy(to, from ? from : "", n + 1);
}

/* "/a/b" becomes "/a", "/a" becomes "/". */
static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = 0;
}

/* Takes no memory of libkhub's: what a failing allocator left out would be missing for good. */
static void find(void)
{
    Dl_info info;
    char *real = dladdr((void *)(uintptr_t)khub__library_dir, &info) && info.dli_fname
                     ? realpath(info.dli_fname, NULL) /* the C library's memory */
                     : NULL;
    if (!real) real = realpath("/proc/self/exe", NULL); /* a static program: its name may be relative */
    const char *set = getenv("KHUB_PREFIX");
    if (set && *set) {
        put(install_prefix, set);
        snprintf(library_dir, sizeof(library_dir), "%s/lib", set);
    } else if (real) {
        cut_last(real);
        put(library_dir, real);
        cut_last(real);
        put(install_prefix, real);
    }
    free(real);
}

const char *khub__library_dir(void)
{
    pthread_once(&once, find);
    return library_dir[0] ? library_dir : NULL;
}

const char *khub__install_prefix(void)
{
    pthread_once(&once, find);
    return install_prefix[0] ? install_prefix : NULL;
}
