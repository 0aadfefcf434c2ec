#include "kernel/posix/elf.h"

#include "base/error.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Copies `bytes` from offset `at` of the file. 0: it ends before. */
static int get(const khub__elf *elf, uint64_t at, void *to, size_t bytes)
{
    if (at > elf->file.length || bytes > elf->file.length - at) return 0;
    memcpy(to, elf->file.data + at, bytes);
    return 1;
}

static int fits(const khub__elf *elf, uint64_t at, uint64_t bytes)
{
    return at <= elf->file.length && bytes <= elf->file.length - at;
}

/* What the file is when it isn't ELF. */
static int fail_as_other(const khub__elf *elf, khub_error *err)
{
    static const struct {
        const char *start, *words;
    } known[] = {
        {"\xCF\xFA\xED\xFE", "a library for macOS"},
        {"\xCA\xFE\xBA\xBE", "a library for macOS"},
        {"MZ", "a library for Windows"},
        {"!<arch>\n", "a static library"},
        {"PK\x03\x04", "a zip archive"},
        {"\x1F\x8B", "a gzip archive"},
        {"<!DOCTYPE", "a web page"},
        {"<html", "a web page"},
        {"#!", "a script"},
    };
    const char *data = elf->file.data;
    size_t n = elf->file.length;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (n >= strlen(known[i].start) && !memcmp(data, known[i].start, strlen(known[i].start)))
            return khub__fail(err, KHUB_E_LOAD, "%s: is %s, not a library for this system", elf->path,
                              known[i].words);
    char text[41];
    size_t length = 0;
    while (length < n && length < 40 && (unsigned char)data[length] >= ' ' && data[length] != 127)
        length++;
    memcpy(text, data, length);
    text[length] = 0;
    if (length == 40 || length == n || (length > 0 && isspace((unsigned char)data[length])))
        return khub__fail(err, KHUB_E_LOAD, "%s: is a text file, not a library; it starts with \"%s\"",
                          elf->path, text);
    return khub__fail(err, KHUB_E_LOAD, "%s: isn't a library: it starts with the bytes %02x %02x", elf->path,
                      (unsigned char)data[0], n > 1 ? (unsigned char)data[1] : 0);
}

/* What git-lfs leaves in the place of a file that wasn't fetched (case F8). */
static int is_lfs_pointer(const khub__elf *elf)
{
    static const char start[] = "version https://git-lfs.github.com/spec/";
    return elf->file.length >= sizeof(start) - 1 && !memcmp(elf->file.data, start, sizeof(start) - 1);
}

static const char *machine_name(unsigned machine, char buffer[16])
{
    static const struct {
        unsigned machine;
        const char *name;
    } known[] = {{EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}, {EM_386, "i386"},  {EM_ARM, "arm"},
                 {EM_PPC64, "ppc64"},   {EM_RISCV, "riscv"},     {EM_S390, "s390"}, {EM_IA_64, "ia64"},
                 {EM_MIPS, "mips"},     {EM_SPARCV9, "sparc64"}, {258, "loongarch"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].machine == machine) return known[i].name;
    snprintf(buffer, 16, "machine %u", machine);
    return buffer;
}

/* The header of the object that this code is in: it is for this process by the fact that it runs. */
static const ElfW(Ehdr) * own_header(void)
{
    Dl_info info;
    return dladdr((void *)(uintptr_t)khub__elf_open, &info) ? info.dli_fbase : NULL;
}

static int check_machine(const khub__elf *elf, khub_error *err)
{
    const ElfW(Ehdr) *own = own_header(), *it = &elf->header; /* the start is the same for both classes */
    if (!own || memcmp(own->e_ident, ELFMAG, SELFMAG) != 0) return KHUB_OK;
    if (it->e_ident[EI_CLASS] == own->e_ident[EI_CLASS] && it->e_ident[EI_DATA] == own->e_ident[EI_DATA] &&
        it->e_machine == own->e_machine)
        return KHUB_OK;
    char a[16], b[16];
    int bits = it->e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32,
        own_bits = own->e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
    unsigned machine = it->e_machine;
    int swapped = it->e_ident[EI_DATA] != own->e_ident[EI_DATA];
    if (swapped) machine = (machine >> 8 | machine << 8) & 0xFFFF;
    return khub__fail(err, KHUB_E_LOAD,
                      "%s: is for another machine: %s, %d bits%s; this process is %s, %d bits", elf->path,
                      machine_name(machine, a), bits, swapped ? ", other byte order" : "",
                      machine_name(own->e_machine, b), own_bits);
}

static int fail_truncated(const khub__elf *elf, const char *what, uint64_t end, khub_error *err)
{
    return khub__fail(err, KHUB_E_LOAD, "%s: is truncated: it has %zu bytes, its %s end at byte %llu",
                      elf->path, elf->file.length, what, (unsigned long long)end);
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int get_segment(const khub__elf *elf, size_t i, ElfW(Phdr) * segment)
{
    return i < elf->header.e_phnum &&
           get(elf, elf->header.e_phoff + i * sizeof(*segment), segment, sizeof(*segment));
}

/* Everything that the headers name lies inside the file. The loader itself wouldn't look at the sections. */
static int check_extent(khub__elf *elf, khub_error *err)
{
    const ElfW(Ehdr) *h = &elf->header;
    if (h->e_type != ET_DYN)
        return khub__fail(err, KHUB_E_LOAD, "%s: is %s, not a shared library", elf->path,
                          h->e_type == ET_REL    ? "an object file"
                          : h->e_type == ET_EXEC ? "a program"
                          : h->e_type == ET_CORE ? "a memory dump"
                                                 : "of an unknown kind");
    uint64_t segments = (uint64_t)h->e_phnum * sizeof(ElfW(Phdr)),
             sections = (uint64_t)h->e_shnum * h->e_shentsize;
    if (h->e_phnum == 0 || h->e_phentsize != sizeof(ElfW(Phdr)))
        return khub__fail(err, KHUB_E_LOAD, "%s: its header is damaged: there are %u segments of %u bytes",
                          elf->path, h->e_phnum, h->e_phentsize);
    if (!fits(elf, h->e_phoff, segments))
        return fail_truncated(elf, "segment headers", add(h->e_phoff, segments), err);
    ElfW(Phdr) segment;
    for (size_t i = 0; get_segment(elf, i, &segment); i++) {
        if (segment.p_type == PT_DYNAMIC)
            elf->dynamic = (khub__elf_table){segment.p_offset, segment.p_filesz, sizeof(ElfW(Dyn))};
        if (!fits(elf, segment.p_offset, segment.p_filesz) && segment.p_type != PT_GNU_STACK)
            return fail_truncated(elf, "segments", add(segment.p_offset, segment.p_filesz), err);
    }
    if (h->e_shoff && !fits(elf, h->e_shoff, sections))
        return fail_truncated(elf, "section headers", add(h->e_shoff, sections), err);
    if (!elf->dynamic.bytes)
        return khub__fail(err, KHUB_E_LOAD, "%s: has no dynamic section: it isn't a shared library",
                          elf->path);
    return KHUB_OK;
}

/* Where in the file an address of the loaded library comes from; 0 is none. */
static uint64_t offset_of(const khub__elf *elf, uint64_t address)
{
    ElfW(Phdr) s;
    for (size_t i = 0; address && get_segment(elf, i, &s); i++)
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
            return s.p_offset + (address - s.p_vaddr);
    return UINT64_MAX;
}

static int get_dynamic(const khub__elf *elf, size_t i, ElfW(Dyn) * entry)
{
    return (i + 1) * sizeof(*entry) <= elf->dynamic.bytes &&
           get(elf, elf->dynamic.at + i * sizeof(*entry), entry, sizeof(*entry)) && entry->d_tag != DT_NULL;
}

static void read_dynamic(khub__elf *elf)
{
    ElfW(Dyn) d;
    khub__elf_table *all = &elf->relocations[0], *plt = &elf->relocations[1];
    plt->entry = sizeof(ElfW(Rela));
    elf->strings.at = UINT64_MAX;
    for (size_t i = 0; get_dynamic(elf, i, &d); i++) {
        uint64_t value = d.d_un.d_val;
        switch (d.d_tag) {
        case DT_STRTAB:
            elf->strings.at = offset_of(elf, value);
            break;
        case DT_STRSZ:
            elf->strings.bytes = value;
            break;
        case DT_SYMTAB:
            elf->symbols.at = offset_of(elf, value);
            break;
        case DT_RELA:
        case DT_REL:
            all->at = offset_of(elf, value);
            break;
        case DT_RELASZ:
        case DT_RELSZ:
            all->bytes = value;
            break;
        case DT_RELAENT:
        case DT_RELENT:
            all->entry = value;
            break;
        case DT_JMPREL:
            plt->at = offset_of(elf, value);
            break;
        case DT_PLTRELSZ:
            plt->bytes = value;
            break;
        case DT_PLTREL:
            plt->entry = value == DT_REL ? sizeof(ElfW(Rel)) : sizeof(ElfW(Rela));
            break;
        case DT_SYMBOLIC:
            elf->symbolic = 1;
            break;
        case DT_FLAGS:
            elf->symbolic |= (value & DF_SYMBOLIC) != 0;
            break;
        default:
            break;
        }
    }
    if (!fits(elf, elf->strings.at, elf->strings.bytes)) elf->strings.bytes = 0;
    for (khub__elf_table *t = elf->relocations; t < elf->relocations + 2; t++)
        if (t->entry < sizeof(ElfW(Rel)) || !fits(elf, t->at, t->bytes)) t->bytes = 0;
}

static int check(khub__elf *elf, khub_error *err)
{
    if (elf->file.length == 0) return khub__fail(err, KHUB_E_LOAD, "%s: is empty: 0 bytes", elf->path);
    if (is_lfs_pointer(elf))
        return khub__fail(err, KHUB_E_LOAD,
                          "%s: is a git-lfs pointer file, not the content: fetch it with `git lfs pull`",
                          elf->path);
    size_t start = elf->file.length < SELFMAG ? elf->file.length : SELFMAG;
    if (memcmp(elf->file.data, ELFMAG, start) != 0) return fail_as_other(elf, err);
    if (elf->file.length < sizeof(elf->header))
        return fail_truncated(elf, "first headers", sizeof(elf->header), err);
    memcpy(&elf->header, elf->file.data, sizeof(elf->header));
    int rc = check_machine(elf, err);
    if (rc == KHUB_OK) rc = check_extent(elf, err);
    if (rc == KHUB_OK) read_dynamic(elf);
    return rc;
}

int khub__elf_open(khub__elf *out, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->path = path;
    int rc = khub__file_map(&out->file, path, err);
    if (rc == KHUB_OK) rc = check(out, err);
    if (rc != KHUB_OK) khub__elf_close(out);
    return rc;
}

int khub__elf_open_file(khub__elf *out, int fd, size_t bytes, const char *path, khub_error *err)
{
    memset(out, 0, sizeof(*out));
    out->path = path;
    int rc = khub__file_map_open(&out->file, fd, bytes, path, err);
    if (rc == KHUB_OK) rc = check(out, err);
    if (rc != KHUB_OK) khub__elf_close(out);
    return rc;
}

void khub__elf_close(khub__elf *elf)
{
    khub__bytes_free(&elf->file);
    memset(elf, 0, sizeof(*elf));
}

/* The text at `offset` of the string table; NULL when it doesn't end inside it. */
static const char *text_at(const khub__elf *elf, uint64_t offset)
{
    if (offset >= elf->strings.bytes) return NULL;
    const char *text = elf->file.data + elf->strings.at + offset;
    return memchr(text, 0, elf->strings.bytes - offset) ? text : NULL;
}

const char *khub__elf_needed(const khub__elf *elf, size_t i)
{
    ElfW(Dyn) d;
    for (size_t at = 0; get_dynamic(elf, at, &d); at++)
        if (d.d_tag == DT_NEEDED && i-- == 0) return text_at(elf, d.d_un.d_val);
    return NULL;
}

const char *khub__elf_filter(const khub__elf *elf)
{
    ElfW(Dyn) d;
    for (size_t at = 0; get_dynamic(elf, at, &d); at++)
        if (d.d_tag == DT_FILTER || d.d_tag == DT_AUXILIARY) return text_at(elf, d.d_un.d_val);
    return NULL;
}

const char *khub__elf_runpath(const khub__elf *elf)
{
    ElfW(Dyn) d;
    const char *rpath = NULL, *runpath = NULL; /* of several the last counts, as the loader has it */
    for (size_t at = 0; get_dynamic(elf, at, &d); at++) {
        if (d.d_tag == DT_RUNPATH) runpath = text_at(elf, d.d_un.d_val);
        if (d.d_tag == DT_RPATH) rpath = text_at(elf, d.d_un.d_val);
    }
    return runpath ? runpath : rpath; /* beside the newer one the older counts for nothing */
}

/* The i-th relocation of both tables; 0 past the last. Rel is the start of Rela. */
static int get_relocation(const khub__elf *elf, size_t i, ElfW(Rel) * out)
{
    for (const khub__elf_table *t = elf->relocations; t < elf->relocations + 2; t++) {
        size_t count = t->bytes ? (size_t)(t->bytes / t->entry) : 0;
        if (i < count) return get(elf, t->at + i * t->entry, out, sizeof(*out));
        i -= count;
    }
    return 0;
}

const char *khub__elf_own_reference(const khub__elf *elf, size_t *at)
{
    ElfW(Rel) relocation;
    ElfW(Sym) symbol;
    while (!elf->symbolic && get_relocation(elf, (*at)++, &relocation)) {
        uint64_t index =
            sizeof(ElfW(Addr)) == 8 ? (uint64_t)relocation.r_info >> 32 : (uint64_t)relocation.r_info >> 8;
        if (index == 0 || !get(elf, add(elf->symbols.at, index * sizeof(symbol)), &symbol, sizeof(symbol)))
            continue;
        if (symbol.st_shndx == SHN_UNDEF || symbol.st_info >> 4 != STB_GLOBAL ||
            (symbol.st_other & 3) != STV_DEFAULT)
            continue;
        const char *name = text_at(elf, symbol.st_name);
        if (name && name[0]) return name;
    }
    return NULL;
}
