#include "base/self.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* dl_iterate_phdr's: ends it with the file that holds this code. (dladdr looks through all symbols, too.) */
static int is_ours(struct dl_phdr_info *info, size_t size, void *file)
{
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t from_start = (uintptr_t)khub__own_file - info->dlpi_addr - part->p_vaddr;
        if (part->p_type != PT_LOAD || from_start >= part->p_memsz) continue;
        *(const char **)file = info->dlpi_name;
        return 1;
    }
    return 0;
}

/* The file of this program, whose name for the loader is empty. */
static char *program(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n < 0 ? 0 : n] = 0;
    return n > 0 ? strdup(path) : NULL;
}

char *khub__own_file(int *is_program)
{
    const char *file = "";
    dl_iterate_phdr(is_ours, &file);
    *is_program = !*file;
    return *file ? realpath(file, NULL) : program();
}
