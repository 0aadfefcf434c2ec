/* Linear on pairs of bfloat16, compiled once per instruction set.
 *
 * The work goes in blocks as khub/linear's does (linear_blocks.c): rows of x by panels of the weight, over
 * chains along k. An element of the result is
 *     ((chain 0 + chain 1) + chain 2) + … + bias
 * chain i being one chain of fused multiply-adds over k = 128 i … 128 i + 127 in order, started at 0. That
 * holds where elements are widened and where AVX512-BF16 multiplies pairs; but the instruction takes
 * subnormal numbers, also those that it makes, for 0. AMX sums up the even and the odd elements of 32 along k
 * apart, in order, both from 0 on, and adds their sum to that of all before: the order is the instruction's,
 * the same for each row, since every tile is whole. So the bits depend on the instruction set, and on nothing
 * else. */
#include "dot.h"

#include "activation.h"
#include "tile.h"

enum {
    PANEL = LINEAR_PANEL,
    CHAIN = 128,
    BLOCK_ROWS = 96,
    BLOCK_PANELS = 24,
    PAIRS = CHAIN / 2,
    TILE = 16,         /* rows of a tile of AMX, and pairs */
    TILED_ROWS = 64,   /* a block's, with tiles */
    TILED_GROUPS = 16, /* along k, between which sums leave the tiles */
    TILED_CHAIN = TILED_GROUPS * DOT_GROUP
};

/* A block's share of everything. 225 KB of stack, of which few rows touch little. */
typedef struct block {
    union {
        _Alignas(64) float floats[BLOCK_ROWS][CHAIN];
        _Alignas(64) uint32_t pairs[BLOCK_ROWS][PAIRS]; /* the element before it in the upper half */
        _Alignas(64) uint32_t tiles[TILED_ROWS / TILE][TILED_GROUPS][TILE][TILE];
    } x;
    _Alignas(64) float w[TILE_PANELS][CHAIN * PANEL];          /* widened panels */
    _Alignas(64) float sum[BLOCK_PANELS * BLOCK_ROWS * PANEL]; /* (panels, room, PANEL) without gaps */
} block;

/* Where the work is: rows i0 … of x and out (`room` of them in the sums), panels g … of the weight, elements
 * k0 … k0 + count - 1. */
typedef struct place {
    int64_t i0, rows, room, g, panels, k0, count;
} place;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Elements k … k + 15 of a row of the block, rounded to bfloat16; 0 past its share, and past the last row. */
VEC v16 read_x(const linear_call *c, int type, place at, int64_t r, int64_t k)
{
    const char *row = c->x + (at.i0 + r) * c->x_step + at.k0 * ELEMENT_BYTES(type);
    return r < at.rows && k < at.count ? v_read(row, k, at.count, type) : v_set(0);
}

VEC_LONG void copy_floats(block *b, const linear_call *c, int type, place at)
{
    for (int64_t r = 0; r < at.rows; r++)
        for (int64_t k = 0; k < at.count; k += PANEL)
            v_store(b->x.floats[r] + k, v_rounded(read_x(c, type, at, r, k), BF16));
}

/* Where a panel lies from element k0 on, which is even. */
VEC const char *packed_at(const linear_call *c, int64_t panel, int64_t k0)
{
    return c->weight + panel * dot_groups(c->k) * DOT_GROUP_BYTES + k0 / 2 * DOT_ROW;
}

VEC uint32_t pair_at(const char *from, int64_t j)
{
    uint32_t pair;
    memcpy(&pair, from + 4 * j, sizeof(pair));
    return pair;
}

/* `to` and `from` don't overlap, so that compilers take sixteen pairs at once. */
static void widen_panel(float *restrict to, const char *restrict from, int64_t count)
{
    for (int64_t i = 0; i < (count + 1) / 2; i++, to += 2 * PANEL, from += DOT_ROW) {
        for (int64_t j = 0; j < PANEL; j++)
            to[j] = float_of(pair_at(from, j) & UINT32_C(0xffff0000));
        for (int64_t j = 0; j < PANEL; j++)
            to[PANEL + j] = float_of(pair_at(from, j) << 16);
    }
}

TILE_FUNCTION(tile_1, 1, CHAIN, 1, 1)
TILE_FUNCTION(tile_2, 2, CHAIN, 1, 1)
TILE_FUNCTION(tile_4, 4, CHAIN, 1, 1)

/* Where the panels lie that are read after those before p: the next ones, or the block's first, one chain
 * further on. */
VEC const char *next_panels(const linear_call *c, place at, int64_t p)
{
    if (p < at.panels) return packed_at(c, at.g + p, at.k0);
    return packed_at(c, at.g, at.k0 + CHAIN < c->k ? at.k0 + CHAIN : 0);
}

VEC_LONG void add_widened(block *b, const linear_call *c, place at)
{
    for (int64_t p = 0, width; p < at.panels; p += width) {
        width = tile_panels(at.rows, at.panels - p);
        for (int64_t i = 0; i < width; i++)
            widen_panel(b->w[i], packed_at(c, at.g + p + i, at.k0), at.count);
        tile_call t = {.x = b->x.floats[0],
                       .w = b->w[0],
                       .sum = b->sum + p * at.room * PANEL,
                       .w_panel = CHAIN * PANEL,
                       .sum_panel = at.room * PANEL,
                       .sum_row = PANEL,
                       .count = at.count,
                       .add = at.k0 > 0,
                       .ahead = next_panels(c, at, p + width),
                       .ahead_panel = dot_groups(c->k) * DOT_GROUP_BYTES,
                       .ahead_step = DOT_ROW / 2 * TILE_ROWS / (at.rows + TILE_ROWS - 1)};
        tile_rows(&t, width == 4 ? tile_4 : width == 2 ? tile_2 : tile_1, at.rows, (int)width, CHAIN);
    }
}

/* The block's sums become results. */
VEC_LONG void finish(const block *b, const linear_call *c, int type, place at)
{
    for (int64_t p = 0; p < at.panels; p++) {
        int64_t n = (at.g + p) * PANEL;
        v16 bias = c->bias ? v_read(c->bias, n, c->n, type) : v_set(0);
        for (int64_t r = 0; r < at.rows; r++) {
            v16 sum = v_load(b->sum + (p * at.room + r) * PANEL);
            if (c->bias) sum = v_add(sum, bias);
            v_write(c->out + (at.i0 + r) * c->out_step, n, c->n, type, v_activated_by(sum, c->activation));
        }
    }
}

#if defined(KHUB_ISA_AVX512)
#include "dot_engines.h"
#else
VEC void copy_pairs(block *b, const linear_call *c, int type, int engine, place at)
{
    (void)b, (void)c, (void)type, (void)engine, (void)at; /* never called */
}
VEC void add_pairs(block *b, const linear_call *c, place at)
{
    (void)b, (void)c, (void)at;
}
VEC void add_tiles(block *b, const linear_call *c, place at)
{
    (void)b, (void)c, (void)at;
}
#endif

VEC void add_chains(block *b, const linear_call *c, int type, int engine, place at)
{
    if (engine == DOT_WIDENED)
        copy_floats(b, c, type, at);
    else
        copy_pairs(b, c, type, engine, at);
    if (engine == DOT_TILES)
        add_tiles(b, c, at);
    else if (engine == DOT_PAIRS)
        add_pairs(b, c, at);
    else
        add_widened(b, c, at);
}

VEC_LONG void linear(const linear_call *c, int type, int engine)
{
    const int64_t most = engine == DOT_TILES ? TILED_ROWS : BLOCK_ROWS;
    const int64_t chain = engine == DOT_TILES ? TILED_CHAIN : CHAIN;
    block b;
    place at;
    for (at.i0 = 0; at.i0 < c->m; at.i0 += at.rows) {
        at.rows = least(most, c->m - at.i0);
        at.room = engine == DOT_TILES ? (at.rows + TILE - 1) / TILE * TILE : at.rows;
        for (at.g = 0; at.g < linear_panels(c->n); at.g += at.panels) {
            at.panels = least(BLOCK_PANELS, linear_panels(c->n) - at.g);
            at.k0 = 0;
            do { /* once for k = 0: it sets the sums to 0 */
                at.count = least(chain, c->k - at.k0);
                add_chains(&b, c, type, engine, at);
                at.k0 += chain;
            } while (at.k0 < c->k);
            finish(&b, c, type, at);
        }
    }
}

static void widened_f32(const linear_call *c)
{
    linear(c, F32, DOT_WIDENED);
}
static void widened_bf16(const linear_call *c)
{
    linear(c, BF16, DOT_WIDENED);
}

extern const dot_path PATH(dot);
#if defined(KHUB_ISA_AVX512)
static void pairs_f32(const linear_call *c)
{
    linear(c, F32, DOT_PAIRS);
}
static void pairs_bf16(const linear_call *c)
{
    linear(c, BF16, DOT_PAIRS);
}
/* Tiles are a thread's own: configured in each call, given back at its end. */
static void tiles_f32(const linear_call *c)
{
    amx_configure(&amx_whole_tiles);
    linear(c, F32, DOT_TILES);
    amx_release();
}
static void tiles_bf16(const linear_call *c)
{
    amx_configure(&amx_whole_tiles);
    linear(c, BF16, DOT_TILES);
    amx_release();
}
const dot_path PATH(dot) = {
    .linear = {{widened_f32, widened_bf16}, {pairs_f32, pairs_bf16}, {tiles_f32, tiles_bf16}}};
#else
const dot_path PATH(dot) = {.linear = {{widened_f32, widened_bf16}}};
#endif
