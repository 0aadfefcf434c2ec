/* ELF: what the loader reads (segments and the dynamic table), through libelf. Of the sections, which the
 * loader ignores, only the GPU code is taken, and the number of symbols, which else the hash tables tell. */
#include "publish/object.h"

#include "base/error.h"
#include "base/memory.h"
#include "publish/gpu.h"
#include "publish/libelf.h"
#include "publish/view.h"

#include <stdio.h>

/* A version that is needed, and of which library. */
typedef struct elf_version_name {
    const char *name, *file; /* NULL: nobody told */
} elf_version_name;

typedef struct elf_file {
    const khub__libelf *lib;
    Elf *elf;
    const khub__bytes *file;
    const char *path;
    khub__object *out;
    khub_error *err;
    GElf_Ehdr header;
    GElf_Phdr *segments;
    size_t segment_count;
    uint64_t dynamic_at, dynamic_bytes;
    uint64_t strings, strings_bytes, symbols, versions;    /* where in the file; 0: there are none */
    uint64_t hash, gnu_hash;                               /* likewise */
    uint64_t needed_versions, needed_version_count;        /* address */
    uint64_t name_offset, path_offset;                     /* in the strings; UINT64_MAX: none */
    uint64_t symbol_count;                                 /* 0: not known */
    elf_version_name *version_names;                       /* by version index */
    size_t version_count, version_capacity, version_steps; /* steps: chains may lead over each other */
    uint64_t gpu_bytes;                                    /* of sections that were read */
    int bound_now;
} elf_file;

enum { SEGMENTS_MAX = 1024, VERSIONS_MAX = 0x8000, VERSION_MASK = 0x7FFF, MANY = 1 << 20 };

static int fail_damaged(const elf_file *f, const char *what)
{
    return khub__fail(f->err, KHUB_E_FORMAT, "%s: is damaged: %s", f->path, what);
}

/* The text at `offset` of the dynamic strings; NULL when it doesn't end inside them. */
static const char *text_at(const elf_file *f, uint64_t offset)
{
    if (offset >= f->strings_bytes || f->out->overread) return NULL;
    const char *text = f->file->data + f->strings + offset;
    return memchr(text, 0, f->strings_bytes - offset) ? khub__object_text(f->out, text) : NULL;
}

static int fits(const elf_file *f, uint64_t at, uint64_t bytes)
{
    return at <= f->file->length && bytes <= f->file->length - at;
}

/* Where in the file an address of the loaded library comes from, and how much of its segment follows. 0: from
 * nowhere. */
static uint64_t offset_of(const elf_file *f, uint64_t address, uint64_t *left)
{
    for (size_t i = 0; i < f->segment_count; i++) {
        const GElf_Phdr *s = &f->segments[i];
        if (s->p_type != PT_LOAD || address < s->p_vaddr || address - s->p_vaddr >= s->p_filesz) continue;
        if (!fits(f, s->p_offset, s->p_filesz)) return 0;
        if (left) *left = s->p_filesz - (address - s->p_vaddr);
        return s->p_offset + (address - s->p_vaddr);
    }
    return 0;
}

/* A piece of the file as libelf reads it; NULL: it isn't inside the file. */
static Elf_Data *chunk(const elf_file *f, uint64_t at, uint64_t bytes, Elf_Type type)
{
    if (!bytes || !fits(f, at, bytes)) return NULL;
    return f->lib->elf_getdata_rawchunk(f->elf, (int64_t)at, bytes, type);
}

static void set_arch(khub__object *out, unsigned machine)
{
    static const struct {
        unsigned machine;
        const char *name;
    } known[] = {{EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}, {EM_386, "i386"},  {EM_ARM, "arm"},
                 {EM_PPC64, "ppc64"},   {EM_RISCV, "riscv"},     {EM_S390, "s390"}, {EM_MIPS, "mips"},
                 {EM_CUDA, "cuda"},     {EM_AMDGPU, "amdgpu"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].machine == machine) out->arch = known[i].name;
    if (out->arch) return;
    snprintf(out->arch_buffer, sizeof(out->arch_buffer), "machine %u", machine);
    out->arch = out->arch_buffer;
}

static const char *kind_of(unsigned type)
{
    switch (type) {
    case ET_REL:
        return "an object file";
    case ET_EXEC:
        return "a program";
    case ET_CORE:
        return "a memory dump";
    default:
        return "of an unknown kind";
    }
}

static int read_header(elf_file *f)
{
    if (f->lib->elf_kind(f->elf) != ELF_K_ELF || !f->lib->gelf_getehdr(f->elf, &f->header))
        return fail_damaged(f, "its header can't be read");
    set_arch(f->out, f->header.e_machine);
    if (f->header.e_type != ET_DYN)
        return khub__fail(f->err, KHUB_E_FORMAT, "%s: is %s, not a shared library", f->path,
                          kind_of(f->header.e_type));
    return KHUB_OK;
}

static void read_segment(elf_file *f, const GElf_Phdr *s)
{
    khub__object *out = f->out;
    if (s->p_type == PT_DYNAMIC) f->dynamic_at = s->p_offset, f->dynamic_bytes = s->p_filesz;
    if (s->p_type == PT_GNU_STACK) out->executable_stack = (s->p_flags & PF_X) != 0;
    if (s->p_type == PT_GNU_RELRO) out->relro = KHUB__RELRO_PARTIAL;
    if (s->p_type == PT_LOAD && (s->p_flags & PF_W) && (s->p_flags & PF_X)) out->writable_code = 1;
}

static int read_segments(elf_file *f)
{
    size_t count = 0;
    if (f->lib->elf_getphdrnum(f->elf, &count) != 0 || count == 0)
        return fail_damaged(f, "it has no segments");
    if (count > SEGMENTS_MAX) return fail_damaged(f, "it has too many segments");
    f->segments = khub__calloc(count, sizeof(*f->segments));
    if (!f->segments) return khub__fail_memory(f->err, "reading a library");
    f->out->executable_stack = -1;
    for (; f->segment_count < count; f->segment_count++) {
        GElf_Phdr *s = &f->segments[f->segment_count];
        if (!f->lib->gelf_getphdr(f->elf, (int)f->segment_count, s))
            return fail_damaged(f, "its segment headers end outside of the file");
        if (s->p_type != PT_GNU_STACK && !fits(f, s->p_offset, s->p_filesz))
            return khub__fail(f->err, KHUB_E_FORMAT,
                              "%s: is truncated: it has %zu bytes, a segment of %llu starts at byte %llu",
                              f->path, f->file->length, (unsigned long long)s->p_filesz,
                              (unsigned long long)s->p_offset);
        read_segment(f, s);
    }
    return KHUB_OK;
}

static void read_flags(elf_file *f, const GElf_Dyn *d)
{
    if (d->d_tag == DT_TEXTREL) f->out->text_relocations = 1;
    if (d->d_tag == DT_BIND_NOW) f->bound_now = 1;
    if (d->d_tag == DT_FLAGS) {
        f->out->text_relocations |= (d->d_un.d_val & DF_TEXTREL) != 0;
        f->bound_now |= (d->d_un.d_val & DF_BIND_NOW) != 0;
    }
    if (d->d_tag == DT_FLAGS_1) f->bound_now |= (d->d_un.d_val & DF_1_NOW) != 0;
}

static void read_entry(elf_file *f, const GElf_Dyn *d)
{
    uint64_t value = d->d_un.d_val;
    switch (d->d_tag) {
    case DT_STRTAB:
        f->strings = offset_of(f, value, NULL);
        break;
    case DT_STRSZ:
        f->strings_bytes = value;
        break;
    case DT_SYMTAB:
        f->symbols = offset_of(f, value, NULL);
        break;
    case DT_HASH:
        f->hash = offset_of(f, value, NULL);
        break;
    case DT_GNU_HASH:
        f->gnu_hash = offset_of(f, value, NULL);
        break;
    case DT_VERSYM:
        f->versions = offset_of(f, value, NULL);
        break;
    case DT_VERNEED:
        f->needed_versions = value;
        break;
    case DT_VERNEEDNUM:
        f->needed_version_count = value;
        break;
    case DT_SONAME:
        f->name_offset = value;
        break;
    case DT_RPATH:
        if (f->path_offset == UINT64_MAX) f->path_offset = value, f->out->old_path = 1;
        break;
    case DT_RUNPATH: /* then DT_RPATH counts for nothing */
        f->path_offset = value, f->out->old_path = 0;
        break;
    case DT_INIT_ARRAYSZ:
        f->out->constructors = (size_t)(value / (f->header.e_ident[EI_CLASS] == ELFCLASS64 ? 8 : 4));
        break;
    default:
        read_flags(f, d);
    }
}

/* The i-th entry; 0 past the last. */
static int get_dynamic(const elf_file *f, Elf_Data *table, size_t i, GElf_Dyn *entry)
{
    return i < 65536 && f->lib->gelf_getdyn(table, (int)i, entry) && entry->d_tag != DT_NULL;
}

static int read_dynamic(elf_file *f)
{
    if (!f->dynamic_bytes) return fail_damaged(f, "it has no dynamic section, so it isn't a shared library");
    Elf_Data *table = chunk(f, f->dynamic_at, f->dynamic_bytes, ELF_T_DYN);
    if (!table) return fail_damaged(f, "its dynamic section lies outside of the file");
    GElf_Dyn d;
    f->name_offset = f->path_offset = UINT64_MAX;
    for (size_t i = 0; get_dynamic(f, table, i, &d); i++)
        read_entry(f, &d);
    if (!f->strings || !fits(f, f->strings, f->strings_bytes))
        return fail_damaged(f, "its names lie outside of the file");
    for (size_t i = 0; get_dynamic(f, table, i, &d); i++) {
        if (d.d_tag != DT_NEEDED && d.d_tag != DT_AUXILIARY && d.d_tag != DT_FILTER) continue;
        const char *name = text_at(f, d.d_un.d_val);
        if (!name) return fail_damaged(f, "the name of a library that it needs lies outside of the file");
        khub__names_add(&f->out->needed, name);
    }
    f->out->own_name = text_at(f, f->name_offset);
    const char *paths = text_at(f, f->path_offset);
    if (paths) khub__names_add(&f->out->paths, paths);
    if (f->out->relro == KHUB__RELRO_PARTIAL && f->bound_now) f->out->relro = KHUB__RELRO_FULL;
    return KHUB_OK;
}

/* The name of one version that is needed, under its index. */
static int note_version(elf_file *f, const GElf_Vernaux *version, const char *file)
{
    size_t index = version->vna_other & VERSION_MASK;
    if (khub__grow((void **)&f->version_names, &f->version_capacity, index + 1, sizeof(*f->version_names),
                   VERSIONS_MAX) != 0)
        return khub__fail_memory(f->err, "reading a library");
    while (f->version_count <= index)
        f->version_names[f->version_count++] = (elf_version_name){NULL, NULL};
    f->version_names[index] = (elf_version_name){text_at(f, version->vna_name), file};
    return KHUB_OK;
}

/* What is needed of one library; the entries are chained by distances that only lead forward. */
static int read_version_needs(elf_file *f, Elf_Data *table, uint64_t at, const GElf_Verneed *need)
{
    const char *file = text_at(f, need->vn_file);
    at += need->vn_aux;
    for (unsigned i = 0; i < need->vn_cnt; i++) {
        GElf_Vernaux version;
        if (++f->version_steps > MANY || at > INT32_MAX || !f->lib->gelf_getvernaux(table, (int)at, &version))
            return fail_damaged(f, "a version that it needs lies outside of the file");
        int rc = note_version(f, &version, file);
        if (rc != KHUB_OK || !version.vna_next || f->out->overread) return rc;
        at += version.vna_next;
    }
    return KHUB_OK;
}

static int read_versions(elf_file *f)
{
    uint64_t left, at = offset_of(f, f->needed_versions, &left);
    if (!f->needed_versions) return KHUB_OK;
    Elf_Data *table = at ? chunk(f, at, left, ELF_T_VNEED) : NULL;
    if (!table) return fail_damaged(f, "the versions that it needs lie outside of the file");
    int rc = KHUB_OK;
    at = 0;
    for (uint64_t i = 0; rc == KHUB_OK && i < f->needed_version_count && i < VERSIONS_MAX; i++) {
        GElf_Verneed need;
        if (at > INT32_MAX || !f->lib->gelf_getverneed(table, (int)at, &need))
            return fail_damaged(f, "a version that it needs lies outside of the file");
        rc = read_version_needs(f, table, at, &need);
        if (!need.vn_next) break;
        at += need.vn_next;
    }
    return rc;
}

/* The number of symbols, which the dynamic section doesn't have. */
static void read_section(elf_file *f, const GElf_Shdr *section)
{
    if (section->sh_type != SHT_DYNSYM) return;
    if (section->sh_offset == f->symbols && section->sh_entsize)
        f->symbol_count = section->sh_size / section->sh_entsize;
    else
        khub__names_add(&f->out->remarks, "its section headers show other symbols than the loader would use");
}

static const char OVERLAP[] = "its sections of GPU code are larger than the file, so not all are read";

static void read_gpu_code(elf_file *f, const GElf_Shdr *section, const char *name)
{
    if (section->sh_type == SHT_NOBITS || !fits(f, section->sh_offset, section->sh_size)) return;
    const char *data = f->file->data + section->sh_offset;
    int is_cuda = !strcmp(name, ".nv_fatbin") || !strcmp(name, "__nv_relfatbin");
    if (!is_cuda && strcmp(name, ".hip_fatbin") != 0) return;
    if (section->sh_size > f->file->length - f->gpu_bytes) { /* so that they lie over each other */
        if (!khub__names_have(&f->out->remarks, OVERLAP)) khub__names_add(&f->out->remarks, OVERLAP);
        return;
    }
    f->gpu_bytes += section->sh_size;
    (is_cuda ? khub__cuda_read : khub__hip_read)(f->out, data, (size_t)section->sh_size);
}

static void read_sections(elf_file *f)
{
    GElf_Shdr header;
    Elf_Scn *section = NULL;
    size_t names;
    int named = f->lib->elf_getshdrstrndx(f->elf, &names) == 0;
    for (size_t i = 0; i < 65536 && (section = f->lib->elf_nextscn(f->elf, section)) != NULL; i++) {
        if (!f->lib->gelf_getshdr(section, &header)) continue;
        read_section(f, &header);
        const char *name = named ? f->lib->elf_strptr(f->elf, names, header.sh_name) : NULL;
        if (name) read_gpu_code(f, &header, name);
    }
}

/* The i-th number of 4 bytes from `at` on; one that lies outside of the file is 0. */
static uint32_t word(const elf_file *f, uint64_t at, uint64_t i)
{
    khub__view view = {f->file->data, f->file->length, 0};
    if (i > UINT32_MAX || at > UINT64_MAX - i * 4) return 0;
    return (uint32_t)(f->header.e_ident[EI_DATA] == ELFDATA2MSB ? khub__view_big
                                                                : khub__view_little)(&view, at + i * 4, 4);
}

/* The GNU hash table has no count: the last symbol is at the end of the chain that starts last. */
static uint64_t count_gnu(const elf_file *f)
{
    uint64_t buckets = word(f, f->gnu_hash, 0), first = word(f, f->gnu_hash, 1), last = 0,
             filter = word(f, f->gnu_hash, 2),
             at = f->gnu_hash + 16 + filter * (f->header.e_ident[EI_CLASS] == ELFCLASS64 ? 8 : 4);
    if (!fits(f, at, buckets * 4)) return 0;
    for (uint64_t i = 0; i < buckets; i++)
        if (word(f, at, i) > last) last = word(f, at, i);
    if (last < first) return first;
    uint64_t chain = at + buckets * 4, i = last - first;
    while (fits(f, chain, (i + 1) * 4) && !(word(f, chain, i) & 1))
        i++;
    return fits(f, chain, (i + 1) * 4) ? first + i + 1 : 0;
}

/* By the section, or by the hash table where there is no section or one that hides some. */
static void count_symbols(elf_file *f)
{
    uint64_t hashed = f->hash ? word(f, f->hash, 1) : f->gnu_hash ? count_gnu(f) : 0;
    if (f->symbol_count && hashed > f->symbol_count)
        khub__names_add(&f->out->remarks, "its section headers show fewer symbols than the loader would use");
    if (hashed > f->symbol_count) f->symbol_count = hashed;
    f->out->has_no_symbols = !f->symbol_count;
    if (!f->symbol_count)
        khub__names_add(&f->out->remarks,
                        "it doesn't say how many symbols it has, so nothing is known about them");
}

static void add_symbol(elf_file *f, const GElf_Sym *symbol, unsigned version)
{
    unsigned binding = GELF_ST_BIND(symbol->st_info);
    const char *name = binding == STB_LOCAL ? NULL : text_at(f, symbol->st_name);
    if (!name || !*name) return;
    khub__object_symbol s = {
        .name = name, .undefined = symbol->st_shndx == SHN_UNDEF, .weak = binding == STB_WEAK};
    if (s.undefined && version < f->version_count) {
        s.version = f->version_names[version].name;
        s.library = f->version_names[version].file;
    }
    if (s.undefined || GELF_ST_VISIBILITY(symbol->st_other) != STV_HIDDEN) khub__object_add(f->out, s);
}

static int read_symbols(elf_file *f)
{
    size_t size = f->lib->gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
    count_symbols(f);
    if (!f->symbol_count) return KHUB_OK;
    if (!size || f->symbol_count > f->file->length / size)
        return fail_damaged(f, "its symbols lie outside of the file");
    Elf_Data *symbols = chunk(f, f->symbols, f->symbol_count * size, ELF_T_SYM);
    Elf_Data *versions = f->versions ? chunk(f, f->versions, f->symbol_count * 2, ELF_T_HALF) : NULL;
    if (!symbols || f->symbol_count > INT32_MAX)
        return fail_damaged(f, "its symbols lie outside of the file");
    for (size_t i = 1; i < f->symbol_count && !f->out->failed; i++) {
        GElf_Sym symbol;
        GElf_Versym version = 0;
        if (!f->lib->gelf_getsym(symbols, (int)i, &symbol)) break;
        if (versions && !f->lib->gelf_getversym(versions, (int)i, &version)) version = 0;
        add_symbol(f, &symbol, version & VERSION_MASK);
    }
    return KHUB_OK;
}

static int read_all(elf_file *f)
{
    int rc = read_header(f);
    if (rc == KHUB_OK) rc = read_segments(f);
    if (rc == KHUB_OK) rc = read_dynamic(f);
    if (rc == KHUB_OK) rc = read_versions(f);
    if (rc != KHUB_OK) return rc;
    read_sections(f);
    return read_symbols(f);
}

int khub__elf_read(khub__object *out, const khub__bytes *file, const char *path, khub_error *err)
{
    elf_file f = {.file = file, .path = path, .out = out, .err = err};
    khub__object_begin(out, KHUB__ELF, file->length);
    int rc = khub__libelf_open(&f.lib, err);
    if (rc != KHUB_OK) return rc;
    f.elf = f.lib->elf_memory(file->data, file->length); /* reads only, though it takes a `char *` */
    rc = f.elf ? read_all(&f) : fail_damaged(&f, "its header can't be read");
    if (f.elf) f.lib->elf_end(f.elf);
    khub__free(f.segments);
    khub__free(f.version_names);
    return rc;
}
