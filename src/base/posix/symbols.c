#include "base/symbols.h"

#include "base/error.h"

#include <dlfcn.h>
#include <stdio.h>

/* 1: all of them are there. Else `words` says which isn't. */
static int bind(void *table, const khub__symbol *symbols, void *handle, const char *name, char words[256])
{
    for (; symbols->name; symbols++) {
        void *function = dlsym(handle, symbols->name);
        if (!function) {
            snprintf(words, 256, "%s has no %s", name, symbols->name);
            return 0;
        }
        memcpy((char *)table + symbols->offset, &function, sizeof(function));
    }
    return 1;
}

int khub__symbols_open(void *table, const khub__symbol *symbols, const char *const *names, int missing,
                       khub_error *err)
{
    char first[256] = "", words[256];
    for (size_t i = 0; names[i]; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (handle && bind(table, symbols, handle, names[i], words)) return KHUB_OK;
        if (handle)
            dlclose(handle);
        else
            snprintf(words, sizeof(words), "%s", dlerror());
        if (i == 0) memcpy(first, words, sizeof(first));
    }
    return khub__fail(err, missing, "%s", first);
}
