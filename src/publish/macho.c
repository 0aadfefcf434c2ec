/* Mach-O, of macOS: load commands and the table of symbols; a universal file holds several. Numbers and
 * layouts are those of <mach-o/loader.h>, <mach-o/nlist.h> and <mach-o/fat.h>. */
#include "publish/object.h"

#include "base/error.h"
#include "publish/view.h"

#include <stdio.h>

enum { HEADER = 32, DYLIB = 6, BUNDLE = 8, STACK_EXECUTION = 0x20000, MACOS = 1 };

static const uint32_t MAGIC_64 = 0xFEEDFACF;

typedef struct macho {
    khub__view view; /* of one of the file's parts */
    const char *path;
    khub__object *out;
    khub_error *err;
    uint64_t symbols, symbol_count, strings, strings_bytes; /* 0: there are none */
    int has_build_version;                                  /* which counts more than the older command */
} macho;

static int fail_damaged(const macho *m, const char *what)
{
    return khub__fail(m->err, KHUB_E_FORMAT, "%s: is damaged: %s", m->path, what);
}

static uint32_t u32(macho *m, uint64_t at)
{
    return (uint32_t)khub__view_little(&m->view, at, 4);
}

static void set_arch(khub__object *out, uint32_t cpu)
{
    if (cpu == 0x01000007) out->arch = "x86_64";
    if (cpu == 0x0100000C) out->arch = "aarch64";
    if (out->arch) return;
    snprintf(out->arch_buffer, sizeof(out->arch_buffer), "cpu %#x", (unsigned)cpu);
    out->arch = out->arch_buffer;
}

/* ---- load commands: `at` and `bytes` of one ---- */

typedef int take_fn(macho *m, uint64_t at, uint32_t bytes);

/* The text of a command, whose offset from its start stands at its byte 8. */
static const char *command_text(macho *m, uint64_t at, uint32_t bytes)
{
    uint32_t offset = u32(m, at + 8);
    return offset < bytes ? khub__view_text(&m->view, at + offset, at + bytes) : NULL;
}

static int take_needed(macho *m, uint64_t at, uint32_t bytes)
{
    const char *name = command_text(m, at, bytes);
    if (!name) return fail_damaged(m, "the name of a library that it needs doesn't end");
    khub__names_add(&m->out->needed, name);
    return KHUB_OK;
}

static int take_name(macho *m, uint64_t at, uint32_t bytes)
{
    m->out->own_name = command_text(m, at, bytes);
    return m->out->own_name ? KHUB_OK : fail_damaged(m, "its own name doesn't end");
}

static int take_path(macho *m, uint64_t at, uint32_t bytes)
{
    const char *path = command_text(m, at, bytes);
    if (!path) return fail_damaged(m, "a place where it looks for libraries doesn't end");
    khub__names_add(&m->out->paths, path);
    return KHUB_OK;
}

static int take_symbols(macho *m, uint64_t at, uint32_t bytes)
{
    if (bytes < 24) return fail_damaged(m, "the command for its symbols is too short");
    m->symbols = u32(m, at + 8);
    m->symbol_count = u32(m, at + 12);
    m->strings = u32(m, at + 16);
    m->strings_bytes = u32(m, at + 20);
    return KHUB_OK;
}

static int take_version(macho *m, uint64_t at, uint32_t bytes)
{
    if (bytes < 16) return fail_damaged(m, "the command for the macOS that it needs is too short");
    if (!m->has_build_version) m->out->macos = u32(m, at + 8);
    return KHUB_OK;
}

static int take_build_version(macho *m, uint64_t at, uint32_t bytes)
{
    if (bytes < 24) return fail_damaged(m, "the command for the macOS that it needs is too short");
    m->has_build_version = 1;
    if (u32(m, at + 8) == MACOS)
        m->out->macos = u32(m, at + 12);
    else
        khub__names_add(&m->out->remarks, "is built for another system than macOS");
    return KHUB_OK;
}

static int take_signature(macho *m, uint64_t at, uint32_t bytes)
{
    (void)at;
    (void)bytes;
    m->out->is_signed = 1;
    return KHUB_OK;
}

/* Of its sections those that hold constructors: pointers, or offsets of 4 bytes. */
static int take_segment(macho *m, uint64_t at, uint32_t bytes)
{
    enum { SEGMENT = 72, SECTION = 80, POINTERS = 9, OFFSETS = 0x16 };
    uint32_t count = bytes >= SEGMENT ? u32(m, at + 64) : 0;
    if (bytes < SEGMENT || count > (bytes - SEGMENT) / SECTION)
        return fail_damaged(m, "a segment holds more sections than it has room for");
    uint32_t protection = u32(m, at + 60);
    if ((protection & 6) == 6) m->out->writable_code = 1;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t section = at + SEGMENT + (uint64_t)i * SECTION;
        uint64_t size = khub__view_little(&m->view, section + 40, 8);
        uint32_t kind = u32(m, section + 64) & 0xFF;
        if (kind == POINTERS) m->out->constructors += (size_t)(size / 8);
        if (kind == OFFSETS) m->out->constructors += (size_t)(size / 4);
    }
    return KHUB_OK;
}

static const struct {
    uint32_t command;
    take_fn *take;
} commands[] = {
    {0x2, take_symbols},       {0xC, take_needed},      {0xD, take_name},          {0x19, take_segment},
    {0x1D, take_signature},    {0x20, take_needed},     {0x24, take_version},      {0x32, take_build_version},
    {0x80000018, take_needed}, {0x8000001C, take_path}, {0x8000001F, take_needed}, {0x80000023, take_needed},
};

static int read_commands(macho *m, uint32_t count, uint32_t bytes)
{
    uint64_t at = HEADER, end = HEADER + (uint64_t)bytes;
    if (!khub__view_has(&m->view, HEADER, bytes))
        return fail_damaged(m, "its load commands lie outside of it");
    int rc = KHUB_OK;
    for (uint32_t i = 0; rc == KHUB_OK && i < count; i++) {
        uint32_t command = u32(m, at), size = u32(m, at + 4);
        if (m->view.outside || size < 8 || size > end - at)
            return fail_damaged(m, "a load command has an impossible size");
        for (size_t k = 0; rc == KHUB_OK && k < sizeof(commands) / sizeof(*commands); k++)
            if (commands[k].command == command) rc = commands[k].take(m, at, size);
        at += size;
    }
    if (rc == KHUB_OK && m->view.outside) rc = fail_damaged(m, "a load command is too short");
    return rc;
}

/* ---- symbols ---- */

static void add_symbol(macho *m, uint64_t at)
{
    enum { DEBUGGER = 0xE0, EXTERNAL = 1, PRIVATE = 0x10, KIND = 0x0E, WEAK_REFERENCE = 0x40 };
    unsigned type = (unsigned)khub__view_little(&m->view, at + 4, 1),
             description = (unsigned)khub__view_little(&m->view, at + 6, 2);
    uint64_t value = khub__view_little(&m->view, at + 8, 8);
    if ((type & DEBUGGER) || !(type & EXTERNAL) || (type & PRIVATE)) return;
    const char *name = khub__object_text(
        m->out, khub__view_text(&m->view, m->strings + u32(m, at), m->strings + m->strings_bytes));
    if (!name) return;
    khub__object_symbol s = {.name = *name == '_' ? name + 1 : name, .undefined = !(type & KIND) && !value};
    unsigned library = description >> 8; /* from 1 on; 253 to 255 and 0 are none of the list */
    if (s.undefined && library >= 1 && library <= m->out->needed.count)
        s.library = m->out->needed.items[library - 1];
    s.weak = s.undefined && (description & WEAK_REFERENCE) != 0;
    if (*s.name) khub__object_add(m->out, s);
}

static int read_symbols(macho *m)
{
    enum { SYMBOL = 16 };
    if (!khub__view_has(&m->view, m->symbols, m->symbol_count * SYMBOL) ||
        !khub__view_has(&m->view, m->strings, m->strings_bytes))
        return fail_damaged(m, "its symbols lie outside of it");
    for (uint64_t i = 0; i < m->symbol_count && !m->out->failed; i++)
        add_symbol(m, m->symbols + i * SYMBOL);
    return m->view.outside ? fail_damaged(m, "the name of a symbol lies outside of it") : KHUB_OK;
}

/* One part, or the whole of a file that isn't universal. */
static int read_part(khub__objects *out, khub__view view, const char *path, khub_error *err)
{
    khub__object *object = &out->items[out->count++];
    khub__object_begin(object, KHUB__MACHO, view.length);
    macho m = {.view = view, .path = path, .out = object, .err = err};
    uint32_t magic = u32(&m, 0), cpu = u32(&m, 4), kind = u32(&m, 12), count = u32(&m, 16),
             bytes = u32(&m, 20), flags = u32(&m, 24);
    if (magic != MAGIC_64)
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: is Mach-O for machines of 32 bits, or of the other byte order", path);
    if (!khub__view_has(&m.view, 0, HEADER)) return fail_damaged(&m, "its header ends outside of it");
    set_arch(object, cpu);
    if (kind != DYLIB && kind != BUNDLE)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is Mach-O, but no library (its kind is %u)", path,
                          (unsigned)kind);
    object->executable_stack = (flags & STACK_EXECUTION) != 0;
    int rc = read_commands(&m, count, bytes);
    return rc == KHUB_OK ? read_symbols(&m) : rc;
}

/* "CA FE BA BE" begins Java's files too, which have a version above 40 where this has the number of parts. */
static int read_universal(khub__objects *out, khub__view *view, int wide, const char *path, khub_error *err)
{
    uint64_t count = khub__view_big(view, 4, 4), entry = wide ? 32 : 20, number = wide ? 8 : 4;
    if (count == 0 || count > KHUB__OBJECTS_MAX)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is no library, or holds %llu of them", path,
                          (unsigned long long)count);
    int rc = KHUB_OK;
    for (uint64_t i = 0; rc == KHUB_OK && i < count; i++) {
        uint64_t at = 8 + i * entry, offset = khub__view_big(view, at + 8, number),
                 bytes = khub__view_big(view, at + 8 + number, number);
        if (view->outside || !khub__view_has(view, offset, bytes))
            return khub__fail(err, KHUB_E_FORMAT, "%s: is damaged: a part of it lies outside of it", path);
        rc = read_part(out, (khub__view){view->data + offset, (size_t)bytes, 0}, path, err);
    }
    return rc;
}

int khub__macho_is(const khub__bytes *file)
{
    static const char starts[][5] = {"\xCF\xFA\xED\xFE", "\xCE\xFA\xED\xFE", "\xFE\xED\xFA\xCF",
                                     "\xFE\xED\xFA\xCE", "\xCA\xFE\xBA\xBE", "\xCA\xFE\xBA\xBF"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (file->length >= 4 && !memcmp(file->data, starts[i], 4)) return 1;
    return 0;
}

int khub__macho_read(khub__objects *out, const khub__bytes *file, const char *path, khub_error *err)
{
    khub__view view = {file->data, file->length, 0};
    uint64_t magic = khub__view_big(&view, 0, 4);
    if (magic == 0xCAFEBABE || magic == 0xCAFEBABF)
        return read_universal(out, &view, magic == 0xCAFEBABF, path, err);
    return read_part(out, view, path, err);
}
