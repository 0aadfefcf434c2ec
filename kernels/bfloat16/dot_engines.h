/* The two engines of dot_blocks.c that AVX-512 may bring along: AVX512-BF16 and AMX. */
#ifndef KHUB_KERNELS_DOT_ENGINES_H
#define KHUB_KERNELS_DOT_ENGINES_H

#include "dot_x86.h"

static const amx_config whole_tiles = AMX_WHOLE_TILES;

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

#define AMX_BEGIN(t, from, add)                                                                              \
    do {                                                                                                     \
        if (add)                                                                                             \
            amx_load(t, from);                                                                               \
        else                                                                                                 \
            amx_zero(t);                                                                                     \
    } while (0)

/* One or two tiles of rows by one or two panels: sums in tiles 0 … 3, x in 4 and 5, the weight in 6 and 7.
 * `x` and `below` are the tiles of rows, group after group, `w` and `beside` the panels. */
VEC void tiles_compute(float *const sum[4], const uint32_t *x, const uint32_t *below, const char *w,
                       const char *beside, int64_t groups, int add, const int two_rows, const int two_panels)
{
    AMX_BEGIN(0, sum[0], add);
    if (two_panels) AMX_BEGIN(1, sum[1], add);
    if (two_rows) AMX_BEGIN(2, sum[2], add);
    if (two_rows && two_panels) AMX_BEGIN(3, sum[3], add);
    for (int64_t g = 0; g < groups; g++) {
        amx_load(6, w + g * DOT_GROUP_BYTES);
        amx_load(4, x + g * TILE * TILE);
        amx_dot(0, 4, 6);
        if (two_panels) amx_load(7, beside + g * DOT_GROUP_BYTES);
        if (two_panels) amx_dot(1, 4, 7);
        if (two_rows) amx_load(5, below + g * TILE * TILE);
        if (two_rows) amx_dot(2, 5, 6);
        if (two_rows && two_panels) amx_dot(3, 5, 7);
    }
    amx_store(0, sum[0]);
    if (two_panels) amx_store(1, sum[1]);
    if (two_rows) amx_store(2, sum[2]);
    if (two_rows && two_panels) amx_store(3, sum[3]);
}

VEC_LONG void add_tiles(block *b, const linear_call *c, place at)
{
    int64_t groups = dot_groups(at.count);
    for (int64_t p = 0; p < at.panels; p += 2)
        for (int64_t r = 0; r < at.room; r += 2 * TILE) {
            const int two_rows = r + TILE<at.room, two_panels = p + 1 < at.panels, add = at.k0> 0;
            float *first = b->sum + (p * at.room + r) * PANEL, *next = first + at.room * PANEL;
            float *const sum[4] = {first, next, first + TILE * PANEL, next + TILE * PANEL};
            const uint32_t *x = b->x.tiles[r / TILE][0][0],
                           *below = b->x.tiles[two_rows ? r / TILE + 1 : 0][0][0];
            const char *w = packed_at(c, at.g + p, at.k0),
                       *beside = packed_at(c, at.g + p + two_panels, at.k0);
            if (two_rows && two_panels)
                tiles_compute(sum, x, below, w, beside, groups, add, 1, 1);
            else if (two_rows)
                tiles_compute(sum, x, below, w, beside, groups, add, 1, 0);
            else if (two_panels)
                tiles_compute(sum, x, below, w, beside, groups, add, 0, 1);
            else
                tiles_compute(sum, x, below, w, beside, groups, add, 0, 0);
        }
}

#endif
