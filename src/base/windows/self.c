#include "base/self.h"

#include "base/windows/wide.h"

#include <stdint.h>
#include <stdlib.h>
#include <windows.h>

char *khub__own_file(int *is_program)
{
    enum {
        BY_ADDRESS = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT
    };
    static const DWORD most = 32768; /* the longest path that there is */
    HMODULE module = NULL;
    wchar_t *path = malloc(most * sizeof(*path));
    GetModuleHandleExW(BY_ADDRESS, (const wchar_t *)(uintptr_t)khub__own_file, &module);
    *is_program = module == GetModuleHandleW(NULL);
    DWORD n = path ? GetModuleFileNameW(module, path, most) : 0;
    char *file = n > 0 && n < most ? khub__narrow(path) : NULL;
    for (char *c = file; c && *c; c++)
        if (*c == '\\') *c = '/';
    free(path);
    return file;
}
