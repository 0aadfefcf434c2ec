#include "platform/dynamic.h"

#include "base/memory.h"
#include "platform/loader.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

/* Far above what a library has: libtorch's has 11 segments, 37 entries, 190 bytes of paths. */
enum { MAX_SEGMENTS = 64, MAX_ENTRIES = 1024, MAX_STRING = 4096, MAX_NEEDED = 256, CHUNK = 1 << 14 };

/* The file being read. */
typedef struct elf {
    int fd;
    uint64_t size;
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[MAX_SEGMENTS];
    size_t segment_count;
    khub__pool *pool;
} elf;

static int read_at(const elf *e, void *to, uint64_t bytes, uint64_t at)
{
    if (at > e->size || bytes > e->size - at) return 0;
    return pread(e->fd, to, (size_t)bytes, (off_t)at) == (ssize_t)bytes;
}

/* Where the file ends by its own account: segments, and the table of sections behind them. */
static uint64_t promised_size(const elf *e)
{
    uint64_t end = e->header.e_shoff + (uint64_t)e->header.e_shnum * e->header.e_shentsize;
    for (size_t i = 0; i < e->segment_count; i++) {
        uint64_t last = e->segments[i].p_offset + e->segments[i].p_filesz;
        if (last > end) end = last;
    }
    return end;
}

static const char *read_segments(elf *e)
{
    unsigned char head[64] = {0};
    long length = (long)pread(e->fd, head, sizeof(head), 0);
    const char *wrong = length < 0 ? "can't be read" : khub__library_judge(head, length);
    if (wrong) return wrong;
    if (length < (long)sizeof(e->header)) return "is cut off within its header";
    memcpy(&e->header, head, sizeof(e->header));
    e->segment_count = e->header.e_phnum;
    if (!e->segment_count || e->segment_count > MAX_SEGMENTS || e->header.e_phentsize != sizeof(*e->segments))
        return "isn't a library that the loader can read (no table of segments)";
    if (!read_at(e, e->segments, e->segment_count * sizeof(*e->segments), e->header.e_phoff))
        return "is cut off within its header";
    uint64_t promised = promised_size(e);
    if (promised <= e->size) return NULL;
    return khub__pool_textf(e->pool, "is cut off: %llu of %llu bytes are there", (unsigned long long)e->size,
                            (unsigned long long)promised);
}

/* The place in the file of what is at an address in memory, which 0 isn't; beyond the file: nowhere. */
static uint64_t place_of(const elf *e, uint64_t address)
{
    for (size_t i = 0; address && i < e->segment_count; i++) {
        const ElfW(Phdr) *s = &e->segments[i];
        if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz)
            return s->p_offset + (address - s->p_vaddr);
    }
    return e->size;
}

/* The string at an offset of the names; NULL: none that ends. */
static const char *string_at(const elf *e, const khub__dynamic *d, uint64_t offset)
{
    char text[MAX_STRING];
    if (offset >= d->names_bytes) return NULL;
    uint64_t left = d->names_bytes - offset, length = left < sizeof(text) ? left : sizeof(text);
    if (!read_at(e, text, length, d->names_at + offset) || !memchr(text, 0, (size_t)length)) return NULL;
    return khub__pool_text(e->pool, text);
}

/* As the loader has it: of several the last. */
static uint64_t value_of(const ElfW(Dyn) * entries, size_t count, int64_t tag)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
        if (entries[i].d_tag == tag) value = entries[i].d_un.d_val;
    return value;
}

static const char *take_entries(khub__dynamic *out, const elf *e, const ElfW(Dyn) * entries, size_t count)
{
    static const char bad[] = "isn't a library that the loader can read (a name in it doesn't end)";
    uint64_t rpath = value_of(entries, count, DT_RPATH), runpath = value_of(entries, count, DT_RUNPATH);
    out->names_at = place_of(e, value_of(entries, count, DT_STRTAB));
    out->names_bytes = value_of(entries, count, DT_STRSZ);
    if (out->names_at > e->size || out->names_bytes > e->size - out->names_at) return bad;
    if (rpath && !(out->rpath = string_at(e, out, rpath))) return bad;
    if (runpath && !(out->runpath = string_at(e, out, runpath))) return bad;
    out->needed = khub__pool_take(e->pool, MAX_NEEDED, sizeof(*out->needed));
    for (size_t i = 0; out->needed && i < count && entries[i].d_tag != DT_NULL; i++) {
        if (entries[i].d_tag != DT_NEEDED || out->needed_count == MAX_NEEDED) continue;
        const char *name = string_at(e, out, entries[i].d_un.d_val);
        if (!name) return bad;
        out->needed[out->needed_count++] = name;
    }
    return NULL;
}

static const char *read_dynamic(khub__dynamic *out, const elf *e)
{
    const ElfW(Phdr) *s = e->segments + e->segment_count; /* the last one, as the loader has it */
    while (s > e->segments && (--s)->p_type != PT_DYNAMIC)
        continue;
    size_t count = s->p_type == PT_DYNAMIC ? (size_t)(s->p_filesz / sizeof(ElfW(Dyn))) : 0;
    if (!count || count > MAX_ENTRIES) return "isn't a library that the loader can read (no dynamic section)";
    ElfW(Dyn) *entries = khub__malloc(count * sizeof(*entries));
    if (!entries) e->pool->failed = 1;
    const char *wrong = "can't be read";
    if (entries && read_at(e, entries, count * sizeof(*entries), s->p_offset))
        wrong = take_entries(out, e, entries, count);
    khub__free(entries);
    return wrong;
}

const char *khub__dynamic_read(khub__dynamic *out, const char *path, khub__pool *pool)
{
    struct stat st;
    elf e = {.pool = pool};
    memset(out, 0, sizeof(*out));
    e.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (e.fd < 0 || fstat(e.fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (e.fd >= 0) close(e.fd);
        const char *wrong = khub__not_a_library(path);
        return wrong ? wrong : "can't be read";
    }
    e.size = out->bytes = (uint64_t)st.st_size;
    const char *wrong = read_segments(&e);
    if (!wrong) wrong = read_dynamic(out, &e);
    close(e.fd);
    return wrong;
}

/* Pieces of the names, each with the end of the one before it, so that nothing is cut in two. */
static int search(int fd, const khub__dynamic *d, const char *piece)
{
    char buffer[CHUNK];
    size_t n = strlen(piece), kept = 0;
    for (uint64_t at = 0; at < d->names_bytes;) {
        uint64_t left = d->names_bytes - at;
        size_t want = left < CHUNK - kept ? (size_t)left : CHUNK - kept;
        if (pread(fd, buffer + kept, want, (off_t)(d->names_at + at)) != (ssize_t)want) return 0;
        if (memmem(buffer, kept + want, piece, n)) return 1;
        at += want;
        size_t have = kept + want;
        kept = have < n - 1 ? have : n - 1;
        memmove(buffer, buffer + have - kept, kept);
    }
    return 0;
}

int khub__dynamic_has(const khub__dynamic *dynamic, const char *path, const char *piece)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    int found = search(fd, dynamic, piece);
    close(fd);
    return found;
}
