#include "kernel/posix/exports.h"

#include "base/error.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

static const char prefix[] = "__tvm_ffi_";
enum { PREFIX = sizeof(prefix) - 1 };

/* The dynamic symbols of a library in memory, which the loader has checked by using them. */
typedef struct table {
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t count;
} table;

/* The GNU hash table has no count: the last symbol is at the end of the chain that starts last. */
static size_t count_gnu(const uint32_t *hash)
{
    uint32_t buckets = hash[0], first = hash[1], words = hash[2];
    const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(const void *)(hash + 4) + words);
    const uint32_t *chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last) last = bucket[i];
    if (last < first) return first;
    while (!(chain[last - first] & 1))
        last++;
    return (size_t)last + 1;
}

static int read_table(table *out, void *handle)
{
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return 0;
    memset(out, 0, sizeof(*out));
    size_t gnu = 0;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        /* glibc has added the base already on most machines, not on all */
        ElfW(Addr) at = d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr : d->d_un.d_ptr;
        if (d->d_tag == DT_SYMTAB) out->symbols = (const void *)at;
        if (d->d_tag == DT_STRTAB) out->strings = (const void *)at;
        if (d->d_tag == DT_GNU_HASH) gnu = count_gnu((const void *)at);
        if (d->d_tag == DT_HASH) out->count = ((const uint32_t *)(const void *)at)[1];
    }
    if (!out->count) out->count = gnu;
    return out->symbols && out->strings && out->count;
}

/* The name behind "__tvm_ffi_" of an exported symbol; NULL for any other. */
static const char *name_of(const table *t, size_t i)
{
    const ElfW(Sym) *s = &t->symbols[i];
    if (s->st_shndx == SHN_UNDEF || (s->st_info >> 4 != STB_GLOBAL && s->st_info >> 4 != STB_WEAK))
        return NULL;
    const char *name = t->strings + s->st_name;
    return strncmp(name, prefix, PREFIX) == 0 ? name + PREFIX : NULL;
}

static int starts(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

static int is_function(const char *name)
{
    return name[0] && !starts(name, "_metadata_") && !starts(name, "_doc_") && !starts(name, "_library_");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const khub__library_function *)a)->name, ((const khub__library_function *)b)->name);
}

static khub__library_function *find(khub__library_function *list, size_t count, const char *name)
{
    khub__library_function key = {.name = name};
    return count ? bsearch(&key, list, count, sizeof(*list), by_name) : NULL;
}

static khub_call_fn address(void *handle, const char *name)
{
    void *at = dlsym(handle, name - PREFIX); /* the symbol's whole name stands in the string table */
    khub_call_fn f;
    memcpy(&f, &at, sizeof(f));
    return f;
}

/* Puts a "_metadata_NAME" or "_doc_NAME" beside its function, if there is one. */
static void attach(khub__library_function *list, size_t count, const char *name, void *handle)
{
    if (starts(name, "_metadata_")) {
        khub__library_function *f = find(list, count, name + strlen("_metadata_"));
        if (f) f->schema = address(handle, name);
    } else if (starts(name, "_doc_")) {
        khub__library_function *f = find(list, count, name + strlen("_doc_"));
        if (f) f->doc = address(handle, name);
    }
}

int khub__exports_read(khub__library_function **out, size_t *count, void *handle, const char *path,
                       khub_error *err)
{
    *out = NULL;
    *count = 0;
    table t;
    if (!read_table(&t, handle)) return khub__fail(err, KHUB_E_LOAD, "%s: has no symbol table", path);
    size_t wanted = 0;
    for (size_t i = 0; i < t.count; i++) {
        const char *name = name_of(&t, i);
        if (name && starts(name, "_library_"))
            return khub__fail(err, KHUB_E_UNSUPPORTED,
                              "%s: is a compiled tvm-ffi module (it exports %s%s), which khub can't set up",
                              path, prefix, name);
        wanted += name && is_function(name);
    }
    khub__library_function *list = khub__calloc(wanted, sizeof(*list));
    if (!list) return khub__fail_memory(err, "listing a library's functions");
    for (size_t i = 0; i < t.count; i++) {
        const char *name = name_of(&t, i);
        if (name && is_function(name))
            list[(*count)++] =
                (khub__library_function){.name = name, .function = {address(handle, name), NULL}};
    }
    qsort(list, *count, sizeof(*list), by_name);
    for (size_t i = 0; i < t.count; i++) {
        const char *name = name_of(&t, i);
        if (name && !is_function(name)) attach(list, *count, name, handle);
    }
    *out = list;
    return KHUB_OK;
}
