/* The GPU code in a library: NVIDIA's fat binaries and clang's bundles, read for the architectures alone.
 * Neither format is documented; what is read here was seen in what nvcc 13.0 and clang write. */
#include "publish/gpu.h"

#include "base/memory.h"

#include <stdio.h>

enum { CODES_MAX = 256, BUNDLES_MAX = 65536 };

static const char TOO_MANY[] = "it holds GPU code for more architectures than khub reads (256)";

static uint64_t little(const char *data, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i > 0; i--)
        value = value << 8 | (unsigned char)data[i - 1];
    return value;
}

static void add_code(khub__object *out, const khub__gpu_code *code)
{
    for (size_t i = 0; i < out->code_count; i++)
        if (out->codes[i].ptx == code->ptx && !strcmp(out->codes[i].arch, code->arch)) return;
    if (out->code_count == CODES_MAX) {
        if (!khub__names_have(&out->remarks, TOO_MANY)) khub__names_add(&out->remarks, TOO_MANY);
        return;
    }
    if (out->failed) return;
    out->failed = khub__grow((void **)&out->codes, &out->code_capacity, out->code_count + 1, sizeof(*code),
                             CODES_MAX) != 0;
    if (out->failed) return;
    khub__gpu_code *added = &out->codes[out->code_count++];
    *added = *code;
    snprintf(added->label, sizeof(added->label), "%s%s", code->ptx ? "PTX " : "", code->arch);
}

/* One entry of a fat binary: kind at 0 (1: PTX, 2: machine code), size of this header at 4, of what follows
 * at 8, architecture at 28 (90 for 9.0), flags at 40, of which two tell "a" (this device alone) and "f" (its
 * family). */
enum { ENTRY = 64, PTX = 1, MACHINE_CODE = 2 };
static const uint64_t ALONE = 0x100000, FAMILY = 0x200000;

static void read_entry(khub__object *out, const char *entry)
{
    unsigned kind = (unsigned)little(entry, 2), arch = (unsigned)little(entry + 28, 4);
    uint64_t flags = little(entry + 40, 8);
    khub__gpu_code code = {.ptx = kind == PTX};
    if ((kind != PTX && kind != MACHINE_CODE) || arch < 10 || arch > 9999) return;
    snprintf(code.arch, sizeof(code.arch), "%u.%u%s", arch / 10, arch % 10,
             flags & ALONE    ? "a"
             : flags & FAMILY ? "f"
                              : "");
    add_code(out, &code);
}

/* The entries of one fat binary of `length` bytes. */
static void read_entries(khub__object *out, const char *data, uint64_t length)
{
    while (length >= ENTRY) {
        uint64_t header = little(data + 4, 4), size = little(data + 8, 8);
        if (header < ENTRY || header > length || size > length - header) return;
        read_entry(out, data);
        data += header + size;
        length -= header + size;
    }
}

void khub__cuda_read(khub__object *out, const char *data, size_t length)
{
    enum { HEADER = 16 };
    static const uint32_t magic = 0xBA55ED50;
    size_t at = 0;
    while (length - at >= HEADER) {
        uint64_t header = little(data + at + 6, 2), size = little(data + at + 8, 8);
        int is_one = little(data + at, 4) == magic && header >= HEADER && header <= length - at &&
                     size <= length - at - header;
        if (is_one) read_entries(out, data + at + header, size);
        at += is_one ? (size_t)(header + size) : 8; /* they start at multiples of 8 */
    }
}

/* "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+" */
static void read_target(khub__object *out, const char *name, size_t length)
{
    khub__gpu_code code = {.ptx = 0};
    for (size_t i = 0; i + 5 < length; i++) {
        if (memcmp(name + i, "--gfx", 5) != 0) continue;
        size_t n = length - i - 2;
        if (n >= sizeof(code.arch)) return;
        memcpy(code.arch, name + i + 2, n);
        add_code(out, &code);
        return;
    }
}

/* Where the names of a bundle's entries end. `length` bytes follow its magic word and count. */
static size_t read_bundle(khub__object *out, const char *data, size_t length, uint64_t count)
{
    enum { ENTRY_HEADER = 24 };
    size_t at = 0;
    for (uint64_t i = 0; i < count && length - at >= ENTRY_HEADER; i++) {
        uint64_t name = little(data + at + 16, 8);
        if (name > length - at - ENTRY_HEADER) break;
        read_target(out, data + at + ENTRY_HEADER, (size_t)name);
        at += ENTRY_HEADER + (size_t)name;
    }
    return at;
}

/* Bundles start at multiples of 8. Nothing is read twice, whatever they say that they hold. */
void khub__hip_read(khub__object *out, const char *data, size_t length)
{
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    enum { MAGIC = sizeof(magic) - 1, HEADER = MAGIC + 8 };
    size_t bundles = 0;
    for (size_t at = 0; at <= length && length - at >= HEADER;) {
        if (memcmp(data + at, magic, MAGIC) != 0) {
            at += 8;
            continue;
        }
        if (bundles++ == BUNDLES_MAX) {
            khub__names_add(&out->remarks, "it holds more bundles of GPU code than khub reads (65,536)");
            break;
        }
        uint64_t count = little(data + at + MAGIC, 8);
        at += HEADER + read_bundle(out, data + at + HEADER, length - at - HEADER, count);
        at = (at + 7) & ~(size_t)7;
    }
    if (length >= 4 && !memcmp(data, "CCOB", 4))
        khub__names_add(&out->remarks, "its GPU code is compressed, so khub can't tell what it is for");
}
