/* An ELF file as it lies on disk, looked at before the loader is let near it: every offset is checked. */
#ifndef KERNEL_POSIX_ELF_H
#define KERNEL_POSIX_ELF_H

#include "base/file.h"

#include <link.h>

/* A table in the file. */
typedef struct khub__elf_table {
    uint64_t at, bytes, entry; /* offset, size of all, size of one */
} khub__elf_table;

typedef struct khub__elf {
    const char *path; /* borrowed */
    khub__bytes file;
    ElfW(Ehdr) header;
    khub__elf_table dynamic, strings, symbols, relocations[2];
    int symbolic; /* its own symbols come first for itself */
} khub__elf;

/* Maps and checks the file: KHUB_E_LOAD with what it is instead when it isn't a complete shared library for
 * this process; also KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_FORMAT (no regular file). */
int khub__elf_open(khub__elf *out, const char *path, khub_error *err);
/* The same of an open file of `bytes` bytes, which stays open; `path` stands for it in messages. */
int khub__elf_open_file(khub__elf *out, int fd, size_t bytes, const char *path, khub_error *err);
void khub__elf_close(khub__elf *elf);

/* The i-th library it needs (DT_NEEDED); NULL past the last. Valid until it is closed, as all texts here. */
const char *khub__elf_needed(const khub__elf *elf, size_t i);

/* The library that it wants its symbols from (DT_FILTER, DT_AUXILIARY); NULL: none. */
const char *khub__elf_filter(const khub__elf *elf);

/* Its own search path, DT_RUNPATH or DT_RPATH, as written; NULL: none. */
const char *khub__elf_runpath(const khub__elf *elf);

/* Walks the symbols that it defines strongly, exports, and refers to by name itself: those that another
 * definition in the process could take over. *at starts at 0; NULL at the end. A symbol may come more than
 * once. */
const char *khub__elf_own_reference(const khub__elf *elf, size_t *at);

#endif
