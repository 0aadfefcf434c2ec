#include "base/self.h"

#include <dlfcn.h>
#include <mach-o/dyld.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

char *khub__own_file(int *is_program)
{
    char path[4096];
    uint32_t size = sizeof(path);
    Dl_info info;
    *is_program = 1;
    char *program = _NSGetExecutablePath(path, &size) == 0 ? realpath(path, NULL) : NULL;
    char *file =
        dladdr((const void *)(uintptr_t)khub__own_file, &info) ? realpath(info.dli_fname, NULL) : NULL;
    if (!file) return program;
    *is_program = program && strcmp(file, program) == 0;
    free(program);
    return file;
}
