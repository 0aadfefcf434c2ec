/* The two engines of dot_blocks.c that AVX-512 may bring along: AVX512-BF16 and AMX. */
#ifndef KHUB_KERNELS_DOT_ENGINES_H
#define KHUB_KERNELS_DOT_ENGINES_H

#include "amx.h"

#include <immintrin.h>

/* Sixteen elements as pairs, of each the first in the upper half. */
VEC void store_pairs(uint32_t to[PANEL / 2], v16 v)
{
    v_store_bf16(to, v);
    for (int i = 0; i < PANEL / 2; i++)
        to[i] = to[i] << 16 | to[i] >> 16;
}

/* Up to whole groups; for tiles, whole tiles. */
VEC_LONG void copy_pairs(block *b, const linear_call *c, int type, int engine, place at)
{
    int64_t end = dot_groups(at.count) * DOT_GROUP;
    for (int64_t r = 0; r < at.room; r++)
        for (int64_t k = 0; k < end; k += PANEL)
            store_pairs(engine == DOT_TILES
                            ? &b->x.tiles[r / TILE][k / DOT_GROUP][r % TILE][k % DOT_GROUP / 2]
                            : &b->x.pairs[r][k / 2],
                        read_x(c, type, at, r, k));
}

/* ---- AVX512-BF16 ---- */

#if !defined(EMULATED_PAIRS)
/* To each lane of sum the product of the upper halves, then that of the lower ones. As text, as in amx.h. */
VEC __m512 bf16_pairs(__m512 sum, __m512i x, __m512i w)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}
#endif

/* The operands of a tile of sums: rows of x PAIRS apart, panels of the weight w_panel bytes. */
typedef struct pairs_call {
    const uint32_t *x;
    const char *w;
    float *sum;
    int64_t w_panel, sum_panel, count; /* of pairs */
    int add;
} pairs_call;

VEC void pairs_compute(const pairs_call *c, const int rows, const int panels)
{
    __m512 sum[TILE_SUMS];
    UNROLLED for (int i = 0; i < rows * panels; i++) sum[i] = _mm512_set1_ps(0);
    for (int64_t k = 0; k < c->count; k++) {
        __m512i w[TILE_PANELS];
        UNROLLED for (int p = 0; p < panels; p++) w[p] =
            _mm512_loadu_si512(c->w + p * c->w_panel + k * DOT_ROW);
        UNROLLED for (int i = 0; i < rows * panels; i++) sum[i] =
            bf16_pairs(sum[i], _mm512_set1_epi32((int)c->x[i / panels * PAIRS + k]), w[i % panels]);
    }
    UNROLLED for (int i = 0; i < rows * panels; i++)
    {
        float *at = c->sum + i % panels * c->sum_panel + i / panels * PANEL;
        _mm512_storeu_ps(at, c->add ? _mm512_add_ps(_mm512_loadu_ps(at), sum[i]) : sum[i]);
    }
}

enum { PAIRS_ROWS = 6 };
#define PAIRS_FUNCTION(NAME, PANELS)                                                                         \
    static void NAME(const pairs_call *c, int64_t rows)                                                      \
    {                                                                                                        \
        switch (rows) {                                                                                      \
        case 1:                                                                                              \
            pairs_compute(c, 1, PANELS);                                                                     \
            break;                                                                                           \
        case 2:                                                                                              \
            pairs_compute(c, 2, PANELS);                                                                     \
            break;                                                                                           \
        case 3:                                                                                              \
            pairs_compute(c, 3, PANELS);                                                                     \
            break;                                                                                           \
        case 4:                                                                                              \
            pairs_compute(c, 4, PANELS);                                                                     \
            break;                                                                                           \
        case 5:                                                                                              \
            pairs_compute(c, 5, PANELS);                                                                     \
            break;                                                                                           \
        default:                                                                                             \
            pairs_compute(c, PAIRS_ROWS, PANELS);                                                            \
        }                                                                                                    \
    }
PAIRS_FUNCTION(pairs_1, 1)
PAIRS_FUNCTION(pairs_4, 4)

VEC_LONG void add_pairs(block *b, const linear_call *c, place at)
{
    for (int64_t p = 0, width; p < at.panels; p += width) {
        width = at.panels - p >= 4 ? 4 : 1;
        for (int64_t r = 0, share; r < at.rows; r += share) {
            int64_t left = at.rows - r, parts = (left + PAIRS_ROWS - 1) / PAIRS_ROWS;
            share = (left + parts - 1) / parts;
            pairs_call call = {.x = b->x.pairs[r],
                               .w = packed_at(c, at.g + p, at.k0),
                               .sum = b->sum + (p * at.room + r) * PANEL,
                               .w_panel = dot_groups(c->k) * DOT_GROUP_BYTES,
                               .sum_panel = at.room * PANEL,
                               .count = (at.count + 1) / 2,
                               .add = at.k0 > 0};
            (width == 4 ? pairs_4 : pairs_1)(&call, share);
        }
    }
}

/* ---- AMX ---- */

AMX_FUNCTION(multiply_tiles, amx_dot)

VEC_LONG void add_tiles(block *b, const linear_call *c, place at)
{
    enum { SUMS = AMX_BYTES / sizeof(float) };
    for (int64_t p = 0; p < at.panels; p += 2)
        for (int64_t r = 0; r < at.room; r += 2 * TILE) {
            float *first = b->sum + (p * at.room + r) * PANEL, *next = first + at.room * PANEL;
            float *const sum[4] = {first, next, first + SUMS, next + SUMS};
            const int two_rows = r + TILE < at.room, two_panels = p + 1 < at.panels;
            amx_call call = {.x = (const char *)b->x.tiles[r / TILE],
                             .below = two_rows ? (const char *)b->x.tiles[r / TILE + 1] : NULL,
                             .w = packed_at(c, at.g + p, at.k0),
                             .beside = two_panels ? packed_at(c, at.g + p + 1, at.k0) : NULL,
                             .steps = dot_groups(at.count),
                             .add = at.k0 > 0};
            for (int i = 0; i < 4; i++)
                call.sum[i] = (char *)sum[i];
            multiply_tiles(&call);
        }
}

#endif
