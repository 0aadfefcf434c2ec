/* libelf, opened when the first ELF file is looked at: its headers at compile time, its functions by name. */
#ifndef PUBLISH_LIBELF_H
#define PUBLISH_LIBELF_H

#include <khub/error.h>

#include <gelf.h>
#include <libelf.h>

#define KHUB__LIBELF_FUNCTIONS(X)                                                                            \
    X(elf_version)                                                                                           \
    X(elf_memory)                                                                                            \
    X(elf_end)                                                                                               \
    X(elf_kind)                                                                                              \
    X(elf_errno)                                                                                             \
    X(elf_errmsg)                                                                                            \
    X(elf_getdata_rawchunk)                                                                                  \
    X(elf_nextscn)                                                                                           \
    X(elf_getphdrnum)                                                                                        \
    X(elf_getshdrstrndx)                                                                                     \
    X(elf_strptr)                                                                                            \
    X(gelf_getehdr)                                                                                          \
    X(gelf_getphdr)                                                                                          \
    X(gelf_getshdr)                                                                                          \
    X(gelf_getdyn)                                                                                           \
    X(gelf_getsym)                                                                                           \
    X(gelf_getversym)                                                                                        \
    X(gelf_getverneed)                                                                                       \
    X(gelf_getvernaux)                                                                                       \
    X(gelf_fsize)

#define KHUB__LIBELF_POINTER(name) __typeof__(&name) name;

/* libelf->elf_end(elf) */
typedef struct khub__libelf {
    KHUB__LIBELF_FUNCTIONS(KHUB__LIBELF_POINTER)
} khub__libelf;

/* Opens it once per process; any thread. KHUB_E_UNSUPPORTED: it isn't there. */
int khub__libelf_open(const khub__libelf **out, khub_error *err);

#endif
