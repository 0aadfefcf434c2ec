/* AMX: products of tiles. Its instructions as text, so that a function for any processor with AVX-512 can
 * have them behind a condition; a test puts their meaning here. */
#ifndef KHUB_KERNELS_AMX_H
#define KHUB_KERNELS_AMX_H

#include "vec.h"

/* A tile: 16 rows of 64 bytes without gaps. */
enum { AMX_ROWS = 16, AMX_BYTES = 1024 };

/* What ldtilecfg reads: of palette 1 eight tiles, all of them whole. Rows and elements that aren't there are
 * zeros in memory, so that a row's result can't depend on how many there are. */
typedef struct amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} amx_config;
static const amx_config amx_whole_tiles = {
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

#if !defined(EMULATED_AMX)
/* Tiles are a thread's own. */
VEC void amx_configure(const amx_config *config)
{
    __asm__ volatile("ldtilecfg %0" : : "m"(*config));
}
/* Gives the tiles' registers back: a switch to another thread needn't save them. */
VEC void amx_release(void)
{
    __asm__ volatile("tilerelease");
}
/* Tiles by number, which stands in the instruction. */
#define amx_zero(t) __asm__ volatile("tilezero %%tmm" #t ::)
#define amx_load(t, from)                                                                                    \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(from), "r"((int64_t)64) : "memory")
#define amx_store(t, to)                                                                                     \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(to), "r"((int64_t)64) : "memory")
/* sum += x w, sum 16 rows of 16 columns: x 16 rows of 16 pairs of bfloat16, w 16 pairs of 16 columns; or of
 * four signed bytes in place of each pair, their products summed up as 32-bit integers. */
#define amx_dot(sum, x, w)       __asm__ volatile("tdpbf16ps %%tmm" #w ", %%tmm" #x ", %%tmm" #sum ::)
#define amx_dot_bytes(sum, x, w) __asm__ volatile("tdpbssd %%tmm" #w ", %%tmm" #x ", %%tmm" #sum ::)
#endif

#define AMX_BEGIN(t, from, add)                                                                              \
    do {                                                                                                     \
        if (add)                                                                                             \
            amx_load(t, from);                                                                               \
        else                                                                                                 \
            amx_zero(t);                                                                                     \
    } while (0)

/* Operands in memory: tiles of rows `x` and `below` them, of columns `w` and `beside` them, `steps` of each
 * one after the other; sums of x w, x beside, below w, below beside. NULL: there is no below, no beside. */
typedef struct amx_call {
    char *sum[4];
    const char *x, *below, *w, *beside;
    int64_t steps;
    int add; /* 0: `sum` is replaced */
} amx_call;

/* Defines NAME(call): one or two tiles of rows by one or two of columns. Sums are in tiles 0 … 3, x in 4 and
 * 5, w in 6 and 7. */
#define AMX_FUNCTION(NAME, DOT)                                                                              \
    VEC void NAME##_of(const amx_call *c, const int two_rows, const int two_columns)                         \
    {                                                                                                        \
        AMX_BEGIN(0, c->sum[0], c->add);                                                                     \
        if (two_columns) AMX_BEGIN(1, c->sum[1], c->add);                                                    \
        if (two_rows) AMX_BEGIN(2, c->sum[2], c->add);                                                       \
        if (two_rows && two_columns) AMX_BEGIN(3, c->sum[3], c->add);                                        \
        for (int64_t at = 0; at < c->steps * AMX_BYTES; at += AMX_BYTES) {                                   \
            amx_load(6, c->w + at);                                                                          \
            amx_load(4, c->x + at);                                                                          \
            DOT(0, 4, 6);                                                                                    \
            if (two_columns) amx_load(7, c->beside + at);                                                    \
            if (two_columns) DOT(1, 4, 7);                                                                   \
            if (two_rows) amx_load(5, c->below + at);                                                        \
            if (two_rows) DOT(2, 5, 6);                                                                      \
            if (two_rows && two_columns) DOT(3, 5, 7);                                                       \
        }                                                                                                    \
        amx_store(0, c->sum[0]);                                                                             \
        if (two_columns) amx_store(1, c->sum[1]);                                                            \
        if (two_rows) amx_store(2, c->sum[2]);                                                               \
        if (two_rows && two_columns) amx_store(3, c->sum[3]);                                                \
    }                                                                                                        \
    static void NAME(const amx_call *c)                                                                      \
    {                                                                                                        \
        if (c->below && c->beside)                                                                           \
            NAME##_of(c, 1, 1);                                                                              \
        else if (c->below)                                                                                   \
            NAME##_of(c, 1, 0);                                                                              \
        else if (c->beside)                                                                                  \
            NAME##_of(c, 0, 1);                                                                              \
        else                                                                                                 \
            NAME##_of(c, 0, 0);                                                                              \
    }

#endif
