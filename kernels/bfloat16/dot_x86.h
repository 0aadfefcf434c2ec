/* The instructions that multiply pairs of bfloat16: AVX512-BF16 and AMX. As text, so that a function for any
 * processor with AVX-512 can have them behind a condition; a test puts their meaning here. */
#ifndef KHUB_KERNELS_DOT_X86_H
#define KHUB_KERNELS_DOT_X86_H

#include "vec.h"

#include <immintrin.h>

/* What ldtilecfg reads: of palette 1 eight tiles of 16 rows of 64 bytes, all of them whole. Rows and elements
 * that aren't there are zeros in memory, so that a row's result can't depend on how many there are. */
typedef struct amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} amx_config;
#define AMX_WHOLE_TILES                                                                                      \
    {                                                                                                        \
        .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = { 16, 16, 16, 16, 16, 16, 16, 16 }  \
    }

#if !defined(EMULATED_DOT)
/* To each lane of sum the product of the upper halves, then that of the lower ones. */
VEC __m512 bf16_pairs(__m512 sum, __m512i x, __m512i w)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}

VEC void amx_configure(const amx_config *config)
{
    __asm__ volatile("ldtilecfg %0" : : "m"(*config));
}
/* Gives the tiles' registers back: a switch to another thread needn't save them. */
VEC void amx_release(void)
{
    __asm__ volatile("tilerelease");
}
/* Tiles by number, which stands in the instruction. A tile in memory has rows of 64 bytes without gaps. */
#define amx_zero(t) __asm__ volatile("tilezero %%tmm" #t ::)
#define amx_load(t, from)                                                                                    \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(from), "r"((int64_t)64) : "memory")
#define amx_store(t, to)                                                                                     \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(to), "r"((int64_t)64) : "memory")
/* sum += x w: x 16 rows of 16 pairs, w 16 pairs of 16 columns. */
#define amx_dot(sum, x, w) __asm__ volatile("tdpbf16ps %%tmm" #w ", %%tmm" #x ", %%tmm" #sum ::)
#endif

#endif
