/* A library's file of any bytes, by the two readers of what it tells the loader: the quick one, of machines,
 * and the strict one, before a kernel is loaded. What the strict one takes, the other reads the same. Then
 * the bytes as an ld.so.cache. */
#include "kernel/posix/search.h"
#include "platform/dynamic.h"
#include "platform/loader.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static void check_same(const char *a, const char *b)
{
    check(a && b && strcmp(a, b) == 0);
}

static void check_needed(const khub__elf *elf, const khub__dynamic *dynamic)
{
    for (size_t i = 0; i < dynamic->needed_count; i++)
        check_same(khub__elf_needed(elf, i), dynamic->needed[i]);
    const char *path = dynamic->runpath ? dynamic->runpath : dynamic->rpath;
    if (path) check_same(khub__elf_runpath(elf), path);
}

static void walk_symbols(const khub__elf *elf)
{
    for (size_t at = 0, count = 0; khub__elf_own_reference(elf, &at); count++)
        check(count <= elf->file.length);
}

static void read_file(int fd, size_t size)
{
    char path[32];
    khub__elf elf;
    khub__dynamic dynamic;
    khub__pool pool = {0};
    khub_error err = {0};
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const char *wrong = khub__dynamic_read(&dynamic, path, &pool);
    check(wrong || (dynamic.names_at <= size && dynamic.names_bytes <= size - dynamic.names_at));
    if (!wrong) khub__dynamic_has(&dynamic, path, "_ZN3c10");
    if (khub__elf_open_file(&elf, fd, size, "k.so", &err) == KHUB_OK) {
        if (!wrong) check_needed(&elf, &dynamic);
        walk_symbols(&elf);
        khub__search_check(&elf, NULL, NULL, NULL);
        khub__elf_close(&elf);
    } else {
        check(err.message[0]);
    }
    check(!pool.failed);
    khub__pool_free(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0) fd = memfd_create("library", MFD_CLOEXEC);
    check(fd >= 0 && ftruncate(fd, (off_t)size) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    read_file(fd, size);
    const char *found = khub__loader_cache_find((const char *)data, size, "libc.so.6");
    if (found) check(found >= (const char *)data && found + strlen(found) < (const char *)data + size);
    return 0;
}
