/* Where this code was loaded from. */
#include "base/file.h"

#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

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

/* dl_iterate_phdr's: ends it with the file that holds this code. (dladdr looks through all symbols, too.) */
static int is_ours(struct dl_phdr_info *info, size_t size, void *file)
{
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t from_start = (uintptr_t)khub__library_dir - info->dlpi_addr - part->p_vaddr;
        if (part->p_type != PT_LOAD || from_start >= part->p_memsz) continue;
        *(const char **)file = info->dlpi_name;
        return 1;
    }
    return 0;
}

/* From the directory that this code is in, which is changed: that of the library, or of a program. */
static void take(char *dir, int is_program)
{
    static const char *const homes[] = {"/" KHUB_BINDIR, "/" KHUB_LIBEXECDIR "/khub"};
    put(library_dir, dir);
    for (size_t i = 0; is_program && i < sizeof(homes) / sizeof(*homes); i++) {
        size_t n = strlen(dir), tail = strlen(homes[i]);
        if (n <= tail || strcmp(dir + n - tail, homes[i]) != 0) continue;
        dir[n - tail] = 0;
        put(install_prefix, dir);
        snprintf(library_dir, sizeof(library_dir), "%s/" KHUB_LIBDIR, dir);
        return;
    }
    cut_last(dir);
    put(install_prefix, dir);
}

/* The file of this program, whose name for the loader is empty. */
static char *program(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n < 0 ? 0 : n] = 0;
    return n > 0 ? strdup(path) : NULL;
}

/* Takes no memory of libkhub's: what a failing allocator left out would be missing for good. */
static void find(void)
{
    const char *set = getenv("KHUB_PREFIX"), *file = "";
    if (set && *set) {
        put(install_prefix, set);
        snprintf(library_dir, sizeof(library_dir), "%s/" KHUB_LIBDIR, set);
        return;
    }
    dl_iterate_phdr(is_ours, &file);
    char *real = *file ? realpath(file, NULL) : program(); /* the C library's memory */
    if (real) {
        cut_last(real);
        take(real, !*file);
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
