/* Which instruction set the kernels of this library use. */
#ifndef KHUB_KERNELS_ISA_H
#define KHUB_KERNELS_ISA_H

#include <stddef.h>
#include <stdint.h>

/* In order of preference, the last that fits is taken. Each is the suffix of its functions (vec.h, PATH). */
#if defined(KHUB_ISA_CUDA)
#define ISA_LIST(X, ...) X(cuda, __VA_ARGS__)
#elif defined(__x86_64__)
#define ISA_LIST(X, ...) X(portable, __VA_ARGS__) X(avx2, __VA_ARGS__) X(avx512, __VA_ARGS__)
#elif defined(__aarch64__)
#define ISA_LIST(X, ...) X(portable, __VA_ARGS__) X(neon, __VA_ARGS__)
#else
#define ISA_LIST(X, ...) X(portable, __VA_ARGS__)
#endif

#define ISA_ENUM(isa, _) ISA_##isa,
typedef enum khub__isa { ISA_LIST(ISA_ENUM, _) ISA_COUNT } khub__isa;

/* The table of a kernel's paths: `const type NAME_portable, NAME_avx2, …`, each defined by a source that is
 * compiled for that path, gathered in NAME_paths[ISA_COUNT]. */
#define ISA_DECLARE(isa, type, name) extern const type name##_##isa;
#define ISA_ADDRESS(isa, name)       &name##_##isa,
#define ISA_PATHS(type, name)                                                                                \
    ISA_LIST(ISA_DECLARE, type, name)                                                                        \
    static const type *const name##_paths[ISA_COUNT] = {ISA_LIST(ISA_ADDRESS, name)}

/* What a processor with the path avx512 may have besides: AVX512-BF16, and of AMX the products of bfloat16
 * and of bytes. KHUB_KERNEL_ISA names them, too: avx512_bf16 is that path with AVX512-BF16 alone, amx the
 * path with AMX. */
enum { ISA_HAS_AVX512_BF16 = 1, ISA_HAS_AMX_BF16 = 2, ISA_HAS_AMX_INT8 = 4 };

/* The path to take: the best that processor and system have, or what the environment's KHUB_KERNEL_ISA names.
 * Decided once, at the first call; any thread. On a GPU there is one and nothing to decide. -1 when what
 * KHUB_KERNEL_ISA names can't be had. */
int khub__isa_get(void);
/* "avx2"; of what khub__isa_get returned, not -1. */
const char *khub__isa_name(int isa);
/* Says why not. */
void khub__isa_why(char *text, size_t size);

/* 1: the path that was taken may use VNNI, the products of bytes that some processors with AVX2 or AVX-512
 * have besides. Not when KHUB_KERNEL_ISA names the path: then it is that path and nothing more. Any thread.
 */
int khub__isa_has_vnni(void);

/* Those of ISA_HAS_… that may be used. Where AMX is among them the system has let this process use it: it is
 * asked once, by the first call, and a refusal takes AMX away. None when KHUB_KERNEL_ISA names a path without
 * any. Any thread. */
unsigned khub__isa_extras(void);

/* The decision itself, on x86-64, from what CPUID and XGETBV say: leaf 1's ECX, leaf 7's EBX, XCR0 (0 without
 * OSXSAVE). */
khub__isa khub__isa_of_x86(uint32_t leaf1_ecx, uint32_t leaf7_ebx, uint64_t xcr0);
/* And that of VNNI in a path: from leaf 7's ECX, and EAX of its subleaf 1. */
int khub__isa_vnni_of_x86(int isa, uint32_t leaf7_ecx, uint32_t leaf7_1_eax);
/* And that of what may come besides: from leaf 7's EDX, EAX of its subleaf 1, and XCR0; then what is left
 * when `ask` (0: granted), which is called only where there is AMX, refuses it. */
unsigned khub__isa_extras_of_x86(int isa, uint32_t leaf7_edx, uint32_t leaf7_1_eax, uint64_t xcr0);
unsigned khub__isa_permitted(unsigned extras, int (*ask)(void));

#endif
