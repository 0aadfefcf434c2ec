/* PE, of Windows: what a DLL imports and exports. Layouts are those of Microsoft's "PE Format". */
#include "publish/object.h"

#include "base/error.h"
#include "publish/view.h"

#include <stdio.h>

enum { COFF = 24, PE32_PLUS = 0x20B, DLL = 0x2000, IS_RELOCATED = 0x40, NX = 0x100, SECTIONS_MAX = 1024 };

typedef struct pe {
    khub__view view;
    const char *path;
    khub__object *out;
    khub_error *err;
    uint64_t optional, sections; /* where in the file */
    uint64_t section_count;
    uint64_t steps; /* entries of lists, which may lie over each other: no more than the file has room for */
} pe;

static int fail_damaged(const pe *p, const char *what)
{
    return khub__fail(p->err, KHUB_E_FORMAT, "%s: is damaged: %s", p->path, what);
}

static uint32_t u16(pe *p, uint64_t at)
{
    return (uint32_t)khub__view_little(&p->view, at, 2);
}

static uint32_t u32(pe *p, uint64_t at)
{
    return (uint32_t)khub__view_little(&p->view, at, 4);
}

/* Where in the file an address of the loaded library comes from. 0: from nowhere. */
static uint64_t offset_of(pe *p, uint64_t address)
{
    for (uint64_t i = 0; i < p->section_count; i++) {
        uint64_t at = p->sections + i * 40, start = u32(p, at + 12), bytes = u32(p, at + 16);
        if (address >= start && address - start < bytes) return u32(p, at + 20) + (address - start);
    }
    return 0;
}

/* The text at an address; NULL: there is none. */
static const char *text_at(pe *p, uint64_t address)
{
    uint64_t at = offset_of(p, address);
    const char *text = at ? khub__object_text(p->out, khub__view_text(&p->view, at, UINT64_MAX)) : NULL;
    if (!text) p->view.outside = 1;
    return text;
}

/* Where the i-th of the tables that the header lists starts. 0: there is none. */
static uint64_t directory(pe *p, unsigned i)
{
    uint32_t count = u32(p, p->optional + 108), address = i < count ? u32(p, p->optional + 112 + i * 8) : 0;
    uint64_t at = address ? offset_of(p, address) : 0;
    if (address && !at) p->view.outside = 1;
    return at;
}

static void set_arch(khub__object *out, unsigned machine)
{
    if (machine == 0x8664) out->arch = "x86_64";
    if (machine == 0xAA64) out->arch = "aarch64";
    if (out->arch) return;
    snprintf(out->arch_buffer, sizeof(out->arch_buffer), "machine %#x", machine);
    out->arch = out->arch_buffer;
}

static int read_header(pe *p)
{
    uint64_t header = u32(p, 0x3C);
    if (khub__view_little(&p->view, header, 4) != 0x4550)
        return khub__fail(p->err, KHUB_E_FORMAT, "%s: is a program for DOS, or damaged: it has no PE header",
                          p->path);
    set_arch(p->out, u16(p, header + 4));
    p->section_count = u16(p, header + 6);
    if (p->section_count > SECTIONS_MAX) return fail_damaged(p, "it has too many sections");
    p->optional = header + COFF;
    p->sections = p->optional + u16(p, header + 20);
    if (u16(p, p->optional) != PE32_PLUS)
        return khub__fail(p->err, KHUB_E_FORMAT, "%s: is a library for Windows of 32 bits, or damaged",
                          p->path);
    if (!(u16(p, header + 22) & DLL))
        return khub__fail(p->err, KHUB_E_FORMAT, "%s: is a program, not a DLL", p->path);
    if (p->view.outside || !khub__view_has(&p->view, p->sections, p->section_count * 40))
        return fail_damaged(p, "its header ends outside of it");
    uint32_t flags = u16(p, p->optional + 70);
    p->out->executable_stack = !(flags & NX);
    p->out->is_fixed = !(flags & IS_RELOCATED);
    return KHUB_OK;
}

/* A section that may be written and run. */
static void read_sections(pe *p)
{
    static const uint32_t both = 0xA0000000;
    for (uint64_t i = 0; i < p->section_count; i++)
        if ((u32(p, p->sections + i * 40 + 36) & both) == both) p->out->writable_code = 1;
}

/* 0: there can't be another entry of 8 bytes or more. */
static int step(pe *p)
{
    if (++p->steps > p->view.length / 8) p->view.outside = 1;
    return !p->view.outside && !p->out->failed;
}

/* The symbols of one library: a list of addresses of names, which ends with 0. */
static void read_thunks(pe *p, uint64_t address, const char *library)
{
    uint64_t at = address ? offset_of(p, address) : 0;
    if (address && !at) p->view.outside = 1;
    for (; at && step(p); at += 8) {
        uint64_t entry = khub__view_little(&p->view, at, 8);
        if (!entry) return;
        if (entry >> 63) continue; /* by number */
        const char *name = text_at(p, entry + 2);
        if (name && *name)
            khub__object_add(p->out, (khub__object_symbol){.name = name, .library = library, .undefined = 1});
    }
}

/* Descriptors of `size` bytes, with the address of a library's name and that of its symbols in them. */
static void read_imports(pe *p, unsigned table, unsigned size, unsigned name_at, unsigned thunks_at,
                         unsigned other_thunks_at)
{
    uint64_t at = directory(p, table);
    for (; at && step(p); at += size) {
        uint32_t address = u32(p, at + name_at), thunks = u32(p, at + thunks_at);
        if (!address) return;
        const char *name = text_at(p, address);
        if (!name) return;
        khub__names_add(&p->out->needed, name);
        read_thunks(p, thunks ? thunks : u32(p, at + other_thunks_at), name);
    }
}

static void read_exports(pe *p)
{
    uint64_t at = directory(p, 0);
    if (!at) return;
    uint32_t name = u32(p, at + 12), count = u32(p, at + 24);
    uint64_t names = count ? offset_of(p, u32(p, at + 32)) : 0;
    if (name) p->out->own_name = text_at(p, name);
    if (count && (!names || !khub__view_has(&p->view, names, (uint64_t)count * 4))) p->view.outside = 1;
    for (uint32_t i = 0; i < count && !p->view.outside && !p->out->failed; i++) {
        const char *symbol = text_at(p, u32(p, names + (uint64_t)i * 4));
        if (symbol && *symbol) khub__object_add(p->out, (khub__object_symbol){.name = symbol});
    }
}

int khub__pe_read(khub__object *out, const khub__bytes *file, const char *path, khub_error *err)
{
    pe p = {.view = {file->data, file->length, 0}, .path = path, .out = out, .err = err};
    khub__object_begin(out, KHUB__PE, file->length);
    int rc = read_header(&p);
    if (rc != KHUB_OK) return rc;
    read_sections(&p);
    read_imports(&p, 1, 20, 12, 0, 16);
    read_imports(&p, 13, 32, 4, 16, 16); /* those that are loaded at the first call */
    read_exports(&p);
    return p.view.outside ? fail_damaged(&p, "a table that it names lies outside of it") : KHUB_OK;
}
