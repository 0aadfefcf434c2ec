#include "platform/cpu.h"

/* States of XCR0 that must be switched on: vector registers would lose their upper halves otherwise.
 * Intel's manual, volume 1, chapter 13: bit 1 SSE, 2 AVX, 5 to 7 AVX-512, 17 and 18 AMX. */
enum { NO_STATE = 0, YMM = 0x6, ZMM = 0xE6, TILE = 0x60000 };

enum leaf { LEAF1_ECX, LEAF7_EBX, LEAF7_ECX, LEAF7_EDX, LEAF7_1_EAX };

/* `needs` is an earlier row without which the feature can't be used. */
static const struct feature {
    const char *name;
    enum leaf leaf;
    int bit;
    uint64_t state;
    const char *needs;
} features[] = {
    {"sse4.2", LEAF1_ECX, 20, NO_STATE, NULL},
    {"bmi2", LEAF7_EBX, 8, NO_STATE, NULL},
    {"avx", LEAF1_ECX, 28, YMM, NULL},
    {"f16c", LEAF1_ECX, 29, YMM, "avx"},
    {"fma", LEAF1_ECX, 12, YMM, "avx"},
    {"avx2", LEAF7_EBX, 5, YMM, "avx"},
    {"avx_vnni", LEAF7_1_EAX, 4, YMM, "avx2"},
    {"avx512f", LEAF7_EBX, 16, ZMM, "avx2"},
    {"avx512cd", LEAF7_EBX, 28, ZMM, "avx512f"},
    {"avx512dq", LEAF7_EBX, 17, ZMM, "avx512f"},
    {"avx512bw", LEAF7_EBX, 30, ZMM, "avx512f"},
    {"avx512vl", LEAF7_EBX, 31, ZMM, "avx512f"},
    {"avx512vnni", LEAF7_ECX, 11, ZMM, "avx512f"},
    {"avx512bf16", LEAF7_1_EAX, 5, ZMM, "avx512f"},
    {"avx512fp16", LEAF7_EDX, 23, ZMM, "avx512f"},
    {"amx-tile", LEAF7_EDX, 24, TILE, NULL},
    {"amx-int8", LEAF7_EDX, 25, TILE, "amx-tile"},
    {"amx-bf16", LEAF7_EDX, 22, TILE, "amx-tile"},
};

static uint32_t leaf_of(const khub__x86_registers *r, enum leaf leaf)
{
    switch (leaf) {
    case LEAF1_ECX:
        return r->leaf1_ecx;
    case LEAF7_EBX:
        return r->leaf7_ebx;
    case LEAF7_ECX:
        return r->leaf7_ecx;
    case LEAF7_EDX:
        return r->leaf7_edx;
    case LEAF7_1_EAX:
        break;
    }
    return r->leaf7_1_eax;
}

static int has(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return 1;
    return 0;
}

size_t khub__x86_features(const char *names[KHUB__MAX_FEATURES], const khub__x86_registers *r)
{
    enum { OSXSAVE = 1 << 27 };
    uint64_t states = r->leaf1_ecx & OSXSAVE ? r->xcr0 : 0;
    size_t count = 0;
    for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++) {
        const struct feature *f = &features[i];
        if (!(leaf_of(r, f->leaf) >> f->bit & 1) || (states & f->state) != f->state) continue;
        if (!f->needs || has(names, count, f->needs)) names[count++] = f->name;
    }
    return count;
}

void khub__squeeze(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from == ' ' && (to == text || to[-1] == ' ')) continue;
        *to++ = *from;
    }
    if (to > text && to[-1] == ' ') to--;
    *to = 0;
}
